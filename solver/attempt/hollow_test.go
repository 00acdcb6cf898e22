package attempt

import (
	"testing"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/policy"
)

// OpenCode 1.18.33 repeats its call endlessly after a page or an empty stream with status 200.
func TestConsecutiveBrokenAnswersDisconnect(t *testing.T) {
	broken := agent.Event{Kind: agent.StepEnded, Ending: policy.Disconnected}
	step, text := agent.Event{Kind: agent.StepEnded}, agent.Event{Kind: agent.Message}
	for name, tc := range map[string]struct {
		events []agent.Event
		want   policy.Ending
	}{
		"five in a row":     {[]agent.Event{broken, broken, broken, broken, broken}, policy.Disconnected},
		"a text in between": {[]agent.Event{broken, broken, broken, text, broken, broken}, ""},
		"good steps":        {[]agent.Event{step, step, step, step, step, step}, ""},
	} {
		var got policy.Ending
		l := &loopMonitor{}
		for _, e := range tc.events {
			l.event(e, func(cause error) { got = cause.(cut).ending })
		}
		if got != tc.want {
			t.Errorf("%s: ended as %q, want %q", name, got, tc.want)
		}
	}
}

func TestErrorPagesAndEmptyStreamsAreNotAnswers(t *testing.T) {
	for last, want := range map[policy.Ending]policy.Ending{policy.Disconnected: policy.Disconnected, policy.NoAnswer: policy.NoAnswer} {
		c := &checkout{Attempt: &Attempt{}, models: modelAccess{last: gateway.Last{Ending: last}}}
		c.cutOff(cut{ending: policy.NoAnswer, why: "the provider's last 5 answers contained neither text nor a tool call"})
		if got := c.Receipt.Ending; got != want {
			t.Errorf("the gateway saw %s: the attempt is %s, want %s", last, got, want)
		}
	}
}
