package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// asker is an agent that calls its model until a call is refused. It pauses while $CTRL/hold exists.
const asker = `cat > /dev/null
n=0
ask() {
	n=$((n+1))
	code=$(curl -sS -o /dev/null -w '%{http_code}' "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" \
		-H 'Content-Type: application/json' -d '{"model":"mock-model","max_tokens":1000,"messages":[{"role":"user","content":"What is '$n' times 7?"}]}')
	echo "$PAWL_ATTEMPT $code" >> "$CTRL/codes"
	[ "$code" = 200 ]
}
while ask; do
	while [ -f "$CTRL/hold" ]; do sleep 0.05; done
done
echo refused >&2
exit 1
`

// The node that takes over a killed node's thread counts the killed attempt's tokens in the receipt and in the daily
// budget. At most two calls are lost: the call in flight and the call before it. The agent gets an answer a moment
// before the answer is counted.
func TestDailyBudgetSurvivesANodeKill(t *testing.T) {
	t.Parallel()
	const aCall = 1234 // tokens, by the fake provider
	const budget, lost = 50 * aCall, 2 * aCall
	c := newCluster(t, startPostgres(t))
	provider, err := fakeprovider.Start(fakeprovider.Options{Key: testrig.ProviderKey})
	c.Must(err)
	t.Cleanup(func() { provider.Close() })
	c.Agent(asker, "provider: fake, model: mock-model")
	c.Config += fmt.Sprintf("providers: [{name: fake, protocol: openai, base_url: %q, key: %q}]\n", provider.URL("no-edit")+"/v1", testrig.ProviderKey)
	c.Config += fmt.Sprintf("policy: {budget: {tokens_per_thread_per_day: %d}}\n", budget)
	used := func() (n int64) {
		for _, q := range provider.Requests() {
			if q.Method == http.MethodPost { // a starting server lists the models, which is free
				n += aCall
			}
		}
		return n
	}
	nodes := []*testrig.Member{c.join(), c.join()}
	n := c.issue("A question")
	paused := func(attempts int) func() bool {
		return func() bool {
			s := c.State(n)
			ended := len(s.Attempts) == attempts && !s.Attempts[attempts-1].EndedAt.IsZero()
			if !ended || s.Decision == nil {
				return false
			}
			return s.Decision.Action == policy.DoWait && s.Decision.Rule == policy.RuleBudget
		}
	}
	c.Await("the agent at its calls", func() bool { return c.Calls() > 0 && used() > 20*aCall })
	c.Touch("hold")
	if nodes[0].Began(testrig.ThreadName(n)) {
		c.to(nodes[1])
	} else {
		c.to(nodes[0])
		nodes[0], nodes[1] = nodes[1], nodes[0]
	}
	c.leave(nodes[0], syscall.SIGKILL)
	before := used()
	c.Must(os.Remove(filepath.Join(c.Ctrl(), "hold")))
	c.Await("the pause", paused(2))
	c.Writes(n, testrig.Writer, "/pawl retry") // does not override the budget
	c.Await("the command", func() bool { return len(c.State(n).Feedback) == 2 })
	if !paused(2)() {
		t.Errorf("after a command: %+v, want the pause to continue", c.State(n).Decision)
	}
	tokens := func(a thread.Attempt) int64 { return a.Receipt.Tokens.Input + a.Receipt.Tokens.Output }
	killed, second := c.State(n).Attempts[0], c.State(n).Attempts[1]
	if killed.Receipt.Outcome != policy.Interrupted || tokens(killed) > before || tokens(killed) < before-lost {
		t.Errorf("the killed attempt is %+v, want the %d tokens before the kill, or up to %d fewer", killed.Receipt, before, lost)
	}
	if !second.Receipt.Paused || second.Receipt.Ending != policy.TurnLimit || tokens(second) != used()-before {
		t.Errorf("the next attempt is %+v, want a pause after %d tokens\n%s", second.Receipt, used()-before, c.Left("codes"))
	}
	if sum := tokens(killed) + tokens(second); sum < budget || sum >= budget+aCall {
		t.Errorf("the receipts count %d tokens, want the budget of %d plus less than one call", sum, budget)
	}
	// /pawl raise allows the same budget again.
	before = used()
	c.Writes(n, testrig.Writer, "/pawl raise")
	c.Await("the next pause", paused(3))
	if more := used() - before; more < budget || more >= budget+aCall {
		t.Errorf("the provider counted %d more tokens, want the budget of %d plus less than one call", more, budget)
	}
	if codes := c.Left("codes"); strings.Count(codes, " 200\n") < 2*budget/aCall {
		t.Errorf("the agent got too few 200s:\n%s", codes)
	}
}
