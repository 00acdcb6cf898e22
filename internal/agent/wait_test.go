package agent_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
)

// Standard error of the CLIs, recorded from gemini 0.61.0 and opencode 1.18.33.
const (
	geminiAnHour  = "Ripgrep is not available.\nAttempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 1h0m0s.. Retrying after 3882907ms...\n"
	geminiSeconds = "Attempt 4 failed: You exceeded your current quota. Please retry in 2s.\nSuggested retry after 2s.. Retrying after 30078ms...\n"
	geminiTwoLine = "Attempt 1 failed: The model is overloaded.\nSuggested retry after 900s.. Retrying after 900100ms...\n"
	opencodeAsk   = "timestamp=2026-11-21T15:05:17.456Z level=INFO run=7006bc8f message=stream providerID=pawl modelID=m1 session.id=ses_e015 small=false agent=build mode=primary\n"
	opencodeNo    = `timestamp=2026-11-21T15:05:17.509Z level=ERROR run=7006bc8f message="stream error" providerID=pawl modelID=m1 session.id=ses_e015 small=false agent=build mode=primary error.error="AI_APICallError: `
	opencodeShort = opencodeNo + "Rate limit reached for mock-model. Please try again in 2s.\"\n"
	opencodeQuota = opencodeNo + "You exceeded your current quota, please check your plan and billing details.\"\n"
	opencodeDays  = opencodeNo + "You have reached your usage limit. Try again in 58 hours.\"\n"
	opencodeLong  = opencodeNo + "prompt is too long: 210000 tokens > 200000 maximum\"\n"
	geminiAtOnce  = "Attempt 1 failed: You exceeded your current quota. Please retry in 0s.. Retrying after 0ms...\n"
	opencodeWorks = `{"type":"text","sessionID":"ses_1","part":{"id":"p","text":"Go on."}}` + "\n"
	opencodeSide  = `timestamp=2026-11-21T15:05:17.509Z level=ERROR run=7006bc8f message="stream error" small=true agent=title error.error="AI_APICallError: no"` + "\n"
)

// The CLIs print these lines and then stay silent for a day.
func TestCLISleepingUntilAResetIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		cli    agent.Adapter
		stderr []string // one per second
		after  time.Duration
		want   policy.Ending
		resets time.Duration // from the end, zero for unknown
	}{
		"gemini, an hour":                    {stream(config.Gemini), []string{geminiAnHour}, 0, policy.UsageLimit, time.Hour},
		"gemini, cut in pieces":              {stream(config.Gemini), []string{geminiAnHour[:60], geminiAnHour[60:]}, time.Second, policy.UsageLimit, time.Hour},
		"gemini, in two lines":               {stream(config.Gemini), []string{geminiTwoLine}, 0, policy.Overloaded, 900 * time.Second},
		"gemini, seconds":                    {stream(config.Gemini), []string{geminiSeconds}, 24 * time.Hour, policy.RateLimited, time.Minute},
		"opencode, two days":                 {stream(config.OpenCode), []string{opencodeAsk, opencodeDays}, time.Second, policy.UsageLimit, 58 * time.Hour},
		"opencode, no time named":            {stream(config.OpenCode), []string{opencodeAsk, opencodeQuota}, agent.QuietWait + time.Second, policy.UsageLimit, 0},
		"opencode, longer than it says":      {stream(config.OpenCode), []string{opencodeShort}, agent.QuietWait, policy.RateLimited, time.Minute},
		"opencode asks again":                {stream(config.OpenCode), []string{opencodeAsk, opencodeQuota, opencodeAsk}, 24 * time.Hour, policy.UsageLimit, 0},
		"opencode, another session asks":     {stream(config.OpenCode), []string{opencodeQuota, strings.ReplaceAll(opencodeAsk, "ses_e015", "ses_2")}, agent.QuietWait, policy.UsageLimit, 0},
		"opencode, two sessions are refused": {stream(config.OpenCode), []string{opencodeQuota, strings.ReplaceAll(opencodeQuota, "ses_e015", "ses_2"), opencodeAsk}, agent.QuietWait + time.Second, policy.UsageLimit, 0},
		"opencode, the prompt is too long":   {stream(config.OpenCode), []string{opencodeLong}, 24 * time.Hour, policy.TimedOut, 0},
		"gemini, at once":                    {stream(config.Gemini), []string{geminiAtOnce}, 24 * time.Hour, policy.RateLimited, time.Minute},
		"opencode, a title request fails":    {stream(config.OpenCode), []string{opencodeSide}, 24 * time.Hour, policy.TimedOut, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := newScripted()
				began := time.Now()
				go func() {
					for i, text := range c.stderr {
						if i > 0 {
							time.Sleep(time.Second)
						}
						io.WriteString(s.err, text)
					}
				}()
				got, err := agent.Run(t.Context(), p, c.cli, agent.RunOptions{Total: 24 * time.Hour})
				if err != nil || got.Ending != c.want || !got.Killed || time.Since(began) != c.after {
					t.Errorf("%s after %s, want %s after %s; %q, error %v", got.Ending, time.Since(began), c.want, c.after, got.Reasons, err)
				}
				var resets time.Duration
				if got.Limit != nil && !got.Limit.ResetsAt.IsZero() {
					resets = time.Until(got.Limit.ResetsAt)
				}
				if resets != c.resets {
					t.Errorf("reset in %s, want %s", resets, c.resets)
				}
			})
		})
	}
}

// The CLIs announce a wait after a refusal and then fail for another reason, alone or because Pawl kills them.
func TestFailureAfterALongWaitCountsAsTheRefusal(t *testing.T) {
	geminiLost := `{"type":"result","status":"error","error":{"type":"Error","message":"fetch failed"},"stats":{}}` + "\n"
	for name, c := range map[string]struct {
		stderr, stdout string
		want           policy.Ending
	}{
		"an hour, then a lost connection": {geminiAnHour, geminiLost, policy.UsageLimit},
		"some minutes":                    {geminiTwoLine, geminiLost, policy.Overloaded},
		"seconds, then a lost connection": {geminiSeconds, geminiLost, policy.Disconnected},
		"an hour, then another refusal":   {geminiAnHour, strings.ReplaceAll(geminiLost, "fetch failed", "API key not valid"), policy.Auth},
		"no refusal":                      {"", geminiLost, policy.Disconnected},
		"an hour, and an unknown error":   {geminiAnHour, strings.ReplaceAll(geminiLost, "fetch failed", "The operation went wrong"), policy.UsageLimit},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := agent.Inspect(strings.NewReader(c.stdout), stream(config.Gemini), agent.InspectOptions{Stderr: c.stderr, Exit: &agent.Exit{Code: 1}, Now: time.Now()})
			if err != nil || got.Ending != c.want {
				t.Errorf("%s, want %s; %q, error %v", got.Ending, c.want, got.Reasons, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		kill := p.Kill
		p.Kill = func() { s.say(strings.TrimSuffix(geminiLost, "\n")); time.Sleep(time.Second); kill() }
		go io.WriteString(s.err, geminiAnHour)
		got, err := agent.Run(t.Context(), p, stream(config.Gemini), agent.RunOptions{Total: 24 * time.Hour})
		if err != nil || got.Ending != policy.UsageLimit || !got.Killed {
			t.Errorf("%s; %q, error %v", got.Ending, got.Reasons, err)
		}
	})
}

// One conversation of opencode is refused and does not ask again. Another one continues.
func TestWorkingCLIIsNotTakenForASleepingOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		began := time.Now()
		go func() {
			io.WriteString(s.err, opencodeQuota)
			time.Sleep(time.Second)
			io.WriteString(s.out, opencodeWorks)
		}()
		got, err := agent.Run(t.Context(), p, stream(config.OpenCode), agent.RunOptions{Total: time.Hour})
		if err != nil || time.Since(began) != time.Hour {
			t.Errorf("%s after %s; %q, error %v", got.Ending, time.Since(began), got.Reasons, err)
		}
	})
}

// opencode logs a refusal and then finishes its work.
func TestRefusalThatTheCLIOvercameDoesNotCount(t *testing.T) {
	out := `{"type":"step_start","sessionID":"ses_1","part":{}}` + "\n" + `{"type":"text","sessionID":"ses_1","part":{"id":"p","text":"Done."}}` + "\n" +
		`{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":5,"output":1},"cost":0}}` + "\n"
	got, err := agent.Inspect(strings.NewReader(out), stream(config.OpenCode), agent.InspectOptions{Stderr: opencodeAsk + opencodeQuota + opencodeAsk, Exit: &agent.Exit{}})
	if err != nil || got.Ending != policy.Completed || got.CostUSD != nil {
		t.Errorf("%+v, error %v", got, err)
	}
	got, _ = agent.Inspect(strings.NewReader(""), stream(config.OpenCode), agent.InspectOptions{Stderr: opencodeAsk + "Error: it broke\n", Exit: &agent.Exit{Code: 1}})
	if got.Ending != policy.Crashed || got.Failure != "Error: it broke" {
		t.Errorf("the failure contains the log: %+v", got)
	}
}
