package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// saysUsedUp is what Codex prints where its plan is used up, and what any program can print.
const saysUsedUp = `echo '{"type":"thread.started","thread_id":"019a72db-80ed-7911-8a8a-94994ffc009b"}'
echo '{"type":"turn.started"}'
echo '{"type":"turn.failed","error":{"message":"You'"'"'ve hit your usage limit. Try again in 6 days."}}'
exit 1
`

// TestALimitThatTheGatewayDidNotSeeIsNone has an agent print one after its provider answered well, and after no
// call at all.
func TestALimitThatTheGatewayDidNotSeeIsNone(t *testing.T) {
	t.Parallel()
	ask := `curl -sS -o /dev/null "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' \
	-d '{"model":"mock-model","messages":[{"role":"user","content":"What is 6 times 7?"}]}'
`
	for name, before := range map[string]string{"after an answer": ask, "without a call": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			provider, err := fakeprovider.Start(fakeprovider.Options{Key: testrig.ProviderKey})
			r.Must(err)
			t.Cleanup(func() { provider.Close() })
			r.Agent("cat > /dev/null\n"+before+saysUsedUp, "stream: codex, provider: fake, model: mock-model")
			r.Config += fmt.Sprintf("providers: [{name: fake, protocol: openai, base_url: %q, key: %q}]\n", provider.URL("no-edit")+"/v1", testrig.ProviderKey)
			r.Start()
			n := r.Solve("A question", "How much is it?")
			s := r.Over(testrig.ThreadName(n))
			a := r.State(n).Attempts[0].Receipt
			if a.Ending != policy.Crashed || a.Limit != nil || !strings.Contains(strings.Join(a.Reasons, " "), "the gateway saw") {
				t.Errorf("ending %s, limit %v, reasons %q; want crashed", a.Ending, a.Limit, a.Reasons)
			}
			if held := r.Status().Breakers; len(held) != 0 {
				t.Errorf("%s by %s; the account is held to be limited: %+v", s.State, s.Rule, held)
			}
		})
	}
}

// TestALimitThatOnlyAnAgentTellsHoldsForItsThread until a second thread's attempt meets it, too.
func TestALimitThatOnlyAnAgentTellsHoldsForItsThread(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null\n: >> \"$CTRL/calls\"; echo x >> \"$CTRL/asked\"\n"+saysUsedUp, "stream: codex, account: main")
	r.Start()
	first := r.Solve("A question", "How much is it?")
	if s := r.Over(testrig.ThreadName(first)); !strings.Contains(strings.Join(s.Reasons, " "), "account main hit its usage limit") {
		t.Errorf("%s by %s %q; want the thread to believe its agent", s.State, s.Rule, s.Reasons)
	}
	b := r.Status().Breakers
	if len(b) != 1 || b[0].Consecutive != 0 || b[0].Claim.Thread != testrig.ThreadName(first) {
		t.Fatalf("one thread limits the account: %+v", b)
	}
	second := r.Solve("Another", "And how much is that?")
	r.Over(testrig.ThreadName(second))
	if got := len(r.State(second).Attempts); got != 1 {
		t.Errorf("the second thread made %d attempts, want one", got)
	}
	if b = r.Status().Breakers; len(b) != 1 || b[0].Consecutive != 2 || b[0].Kind != policy.UsageLimit {
		t.Errorf("two threads do not limit the account: %+v", b)
	}
}

// TestAnOutageOfTheProviderUsesUpNothing has an agent send large requests to a provider that is overloaded: no tokens and
// no money where no model said a word, and no budget that ends the run.
func TestAnOutageOfTheProviderUsesUpNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	provider, err := fakeprovider.Start(fakeprovider.Options{Key: testrig.ProviderKey})
	r.Must(err)
	t.Cleanup(func() { provider.Close() })
	r.Config = "policy: {budget: {tokens_per_attempt: 1000}, transient: {backoff_start: 1s, backoff_cap: 1s}}\n"
	r.Agent(`cat > /dev/null; : >> "$CTRL/calls"
{ printf '{"model":"mock-model","stream":true,"messages":[{"role":"user","content":"'; head -c 200000 /dev/zero | tr '\0' x; printf '"}]}'; } > "$HOME/body"
for n in 1 2 3; do
	curl -sS -o /dev/null "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' --data-binary "@$HOME/body"
done
`+away529, "stream: codex, provider: fake, model: mock-model")
	r.Config += fmt.Sprintf("providers: [{name: fake, protocol: openai, base_url: %q, key: %q, prices: [{model: mock-model, input: 1000, output: 1000}]}]\n", provider.URL("overload-529")+"/v1", testrig.ProviderKey)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Over(testrig.ThreadName(n))
	all := r.State(n).Attempts
	if s.Rule != policy.RuleTransient || len(all) != 5 {
		t.Errorf("%d attempts, %s by %s %q; want five that meet an overload", len(all), s.State, s.Rule, s.Reasons)
	}
	for _, a := range all {
		if got := a.Receipt; got.Ending != policy.Overloaded || got.Tokens != (policy.Tokens{}) || got.CostUSD != nil && *got.CostUSD != 0 || got.Budget != "" {
			t.Errorf("attempt %d ended %s and used %+v for %v, budget %q", a.N, got.Ending, got.Tokens, got.CostUSD, got.Budget)
		}
	}
}
