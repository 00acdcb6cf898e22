package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/testrig"
)

// An agent that takes no notice of what its provider answers would ask for ever, and one
// whose provider answers nothing would, too.
func TestAnAgentThatGetsNowhereAtItsProviderIsEnded(t *testing.T) {
	t.Parallel()
	const hollow = "the provider's last 5 answers held neither a text nor a call of a tool"
	for _, tc := range []struct {
		name, scenario, question, form, why string
		most                                int // requests
	}{
		{"empty answers", "empty", "What is '$n' times 7?", "", hollow, 10},
		{"empty streams, each tried once more", "empty", "What is '$n' times 7?", `"stream":true,`, hollow, 15},
		{"the same request", "no-edit", "What is 6 times 7?", "", "the agent sent the same request 5 times in a row, and each was answered", 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			provider, err := fakeprovider.Start(fakeprovider.Options{Key: testrig.ProviderKey})
			r.Must(err)
			t.Cleanup(func() { provider.Close() })
			r.Agent(`cat > /dev/null
n=0
while [ $n -lt 100 ]; do n=$((n+1)); curl -sS -o /dev/null "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" \
	-H 'Content-Type: application/json' -d '{"model":"mock-model",`+tc.form+`"tools":[{"type":"function","function":{"name":"edit"}}],"messages":[{"role":"user","content":"`+tc.question+`"}]}'; done
echo done > a.txt
`, "provider: fake, model: mock-model")
			r.Config += fmt.Sprintf("providers: [{name: fake, protocol: openai, base_url: %q, key: %q}]\n", provider.URL(tc.scenario)+"/v1", testrig.ProviderKey)
			r.Start()
			n := r.Solve("A question", "How much is it?")
			s := r.Over(testrig.ThreadName(n))
			a := r.State(n).Attempts[0].Receipt
			if a.Ending != "no_answer" || !strings.Contains(a.Detail, tc.why) || s.State != "stopped" {
				t.Errorf("ending %s (%s), then %s by %s; want no_answer (%s), then stopped", a.Ending, a.Detail, s.State, s.Rule, tc.why)
			}
			if got := len(provider.Requests()); got < 5 || got > tc.most {
				t.Errorf("the provider was asked %d times, want it to end soon after 5", got)
			}
		})
	}
}

// A loop without edits: the same command with the same result.
func TestAnAgentThatPollsIsEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		round   string
		ending  string
		told    bool
		outcome string
	}{
		"forty times":                {`command 'gh run view'; sleep 0.01`, "loop", true, "loop"},
		"thirty times":               {`[ $i -gt 30 ] || command 'gh run view'`, "completed", true, "edited"},
		"with an edit after each":    {`echo $i >> f.txt; change f.txt; command 'go build ./...'`, "completed", false, "edited"},
		"another command every time": {`command "cat file$i"`, "completed", false, "edited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(testrig.CodexAgent+"echo kept > work.txt\nfor i in $(seq 1 60); do "+tc.round+"; done\n"+testrig.CodexEnd, "stream: codex")
			r.Start()
			n, _ := r.pullToWorkOn()
			r.Await("the end of the attempt", func() bool { a := r.State(n).Attempts; return len(a) > 0 && a[0].Receipt.Outcome != "" })
			a := r.State(n).Attempts[0].Receipt
			told := strings.Contains(strings.Join(a.Reasons, "; "), "the same call had the same result")
			if string(a.Ending) != tc.ending || string(a.Outcome) != tc.outcome || told != tc.told {
				t.Errorf("%s, %s, reasons %q; want %s, %s, told %v", a.Ending, a.Outcome, a.Reasons, tc.ending, tc.outcome, tc.told)
			}
			if a.Commit == "" {
				t.Error("what it did before was lost")
			}
			if cools := r.Status().Cooldowns; len(cools) != 0 {
				t.Errorf("cooldowns %+v, want none", cools)
			}
		})
	}
}
