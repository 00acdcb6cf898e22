package gateway

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
)

// A provider reports its windows with answers and with refusals.
func TestUsageWindowsAreReported(t *testing.T) {
	reset := testNow().Add(time.Hour).Truncate(time.Second)
	headers := []string{
		"Anthropic-Ratelimit-Unified-5h-Utilization", "0.92",
		"Anthropic-Ratelimit-Unified-5h-Reset", fmt.Sprint(reset.Unix()),
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   []policy.Window
	}{
		"an answer":  {plain(200, `{"content":[{"type":"text","text":"42"}],"stop_reason":"end_turn"}`, headers...), []policy.Window{{Name: "5h", Used: 0.92}}},
		"a refusal":  {plain(429, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, headers...), []policy.Window{{Name: "5h", Used: 0.92}}},
		"no windows": {plain(200, `{"content":[{"type":"text","text":"42"}],"stop_reason":"end_turn"}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []policy.Window
			s := open(t, Anthropic, newProvider(t, c.answer).URL, func(g *Grant) {
				g.OnWindows = func(w []policy.Window) { got = append(got, w...) }
			})
			s.post(t, "/v1/messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
			for i := range c.want {
				c.want[i].SeenAt, c.want[i].ResetsAt, c.want[i].Length = testNow(), reset, 5*time.Hour
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// ChatGPT's service reports the windows in an event of the answer's stream.
func TestUsageWindowsInAStreamAreReported(t *testing.T) {
	events := `event: codex.rate_limits
data: {"type":"codex.rate_limits","plan_type":"plus","rate_limits":{"allowed":true,"limit_reached":false,"primary":{"used_percent":42,"window_minutes":300,"reset_after_seconds":3600},"secondary":null}}

event: response.completed
data: {"type":"response.completed","response":{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"42"}]}],"usage":{"input_tokens":1,"output_tokens":1}}}

`
	var got []policy.Window
	s := open(t, OpenAI, newProvider(t, plain(200, events, "Content-Type", "text/event-stream")).URL, func(g *Grant) {
		g.OnWindows = func(w []policy.Window) { got = append(got, w...) }
	})
	s.post(t, "/v1/responses", `{"model":"m","input":"x","stream":true}`)
	want := []policy.Window{{Name: "5h", Used: 0.42, ResetsAt: testNow().Add(time.Hour), SeenAt: testNow(), Length: 5 * time.Hour}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The pause is a lower bound: a busy machine takes longer.
func TestNextCallWaitsForAMinutesLimit(t *testing.T) {
	const answer = `{"content":[{"type":"text","text":"42"}],"stop_reason":"end_turn"}`
	const pause = 300 * time.Millisecond
	s := open(t, OpenAI, newProvider(t, plain(200, answer, "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", pause.String())).URL, nil)
	call := func() time.Duration {
		began := time.Now()
		s.post(t, "/v1/responses", `{"model":"m","input":"x"}`)
		return time.Since(began)
	}
	call()
	if took := call(); took < pause {
		t.Errorf("the second call took %s, want at least the pause of %s", took, pause)
	}
	if n := s.Usage().Requests; n != 2 {
		t.Errorf("%d requests, want both calls sent", n)
	}
}
