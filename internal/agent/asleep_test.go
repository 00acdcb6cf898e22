package agent

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What the CLIs print on standard error, recorded from gemini 0.61.0 and
// opencode 1.18.33.
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

// TestSleepsOfAWholeResetAreNotWaitedFor has CLIs print what they print and
// then stay silent for a day.
func TestSleepsOfAWholeResetAreNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		cli    Adapter
		stderr []string // each a second after the one before
		after  time.Duration
		want   Ending
		resets time.Duration // from the end, zero for unknown
	}{
		"gemini, an hour":               {geminiAdapter(), []string{geminiAnHour}, 0, UsageLimit, time.Hour},
		"gemini, cut in pieces":         {geminiAdapter(), []string{geminiAnHour[:60], geminiAnHour[60:]}, time.Second, UsageLimit, time.Hour},
		"gemini, in two lines":          {geminiAdapter(), []string{geminiTwoLine}, 0, Overloaded, 900 * time.Second},
		"gemini, seconds":               {geminiAdapter(), []string{geminiSeconds}, 24 * time.Hour, RateLimited, time.Minute},
		"opencode, two days":            {opencodeAdapter(), []string{opencodeAsk, opencodeDays}, time.Second, UsageLimit, 58 * time.Hour},
		"opencode, not told":            {opencodeAdapter(), []string{opencodeAsk, opencodeQuota}, quietSleep + time.Second, UsageLimit, 0},
		"opencode, longer than it says": {opencodeAdapter(), []string{opencodeShort}, quietSleep, RateLimited, time.Minute},
		"opencode asks again":           {opencodeAdapter(), []string{opencodeAsk, opencodeQuota, opencodeAsk}, 24 * time.Hour, UsageLimit, 0},
		"opencode, another asks":        {opencodeAdapter(), []string{opencodeQuota, strings.ReplaceAll(opencodeAsk, "ses_e015", "ses_2")}, quietSleep, UsageLimit, 0},
		"opencode, two are refused":     {opencodeAdapter(), []string{opencodeQuota, strings.ReplaceAll(opencodeQuota, "ses_e015", "ses_2"), opencodeAsk}, quietSleep + time.Second, UsageLimit, 0},
		"opencode, too long":            {opencodeAdapter(), []string{opencodeLong}, 24 * time.Hour, TimedOut, 0},
		"gemini, at once":               {geminiAdapter(), []string{geminiAtOnce}, 24 * time.Hour, RateLimited, time.Minute},
		"opencode, of a title":          {opencodeAdapter(), []string{opencodeSide}, 24 * time.Hour, TimedOut, 0},
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
				got, err := Run(t.Context(), p, c.cli, RunOptions{Total: 24 * time.Hour})
				if err != nil || got.Ending != c.want || !got.Killed || time.Since(began) != c.after {
					t.Errorf("%s after %s, want %s after %s; %q, error %v", got.Ending, time.Since(began), c.want, c.after, got.Reasons, err)
				}
				var resets time.Duration
				if got.Limit != nil && got.Limit.ResetsAt != nil {
					resets = time.Until(*got.Limit.ResetsAt)
				}
				if resets != c.resets {
					t.Errorf("reset in %s, want %s", resets, c.resets)
				}
			})
		})
	}
}

// TestACLIThatWorksIsNotAsleep has opencode refused in one conversation, which
// does not ask again, and work on in another.
func TestACLIThatWorksIsNotAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		began := time.Now()
		go func() {
			io.WriteString(s.err, opencodeQuota)
			time.Sleep(time.Second)
			io.WriteString(s.out, opencodeWorks)
		}()
		got, err := Run(t.Context(), p, opencodeAdapter(), RunOptions{Total: time.Hour})
		if err != nil || time.Since(began) != time.Hour {
			t.Errorf("%s after %s; %q, error %v", got.Ending, time.Since(began), got.Reasons, err)
		}
	})
}

// TestARefusalThatWasOvercomeIsForgotten has opencode log a refusal and finish.
func TestARefusalThatWasOvercomeIsForgotten(t *testing.T) {
	out := `{"type":"step_start","sessionID":"ses_1","part":{}}` + "\n" + `{"type":"text","sessionID":"ses_1","part":{"id":"p","text":"Done."}}` + "\n" +
		`{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":5,"output":1},"cost":0}}` + "\n"
	got, err := Inspect(strings.NewReader(out), opencodeAdapter(), InspectOptions{Stderr: opencodeAsk + opencodeQuota + opencodeAsk, Exit: &Exit{}})
	if err != nil || got.Ending != Completed || got.CostUSD != nil {
		t.Errorf("%+v, error %v", got, err)
	}
	got, _ = Inspect(strings.NewReader(""), opencodeAdapter(), InspectOptions{Stderr: opencodeAsk + "Error: it broke\n", Exit: &Exit{Code: 1}})
	if got.Ending != Crashed || got.Failure != "Error: it broke" {
		t.Errorf("the log stands in the failure: %+v", got)
	}
}

func TestOverlongLinesOfStandardErrorAreLookedAtInPart(t *testing.T) {
	var told []nap
	w := &napWatch{asleep: geminiAsleep, told: func(n nap) { told = append(told, n) }}
	for range 100 {
		io.WriteString(w, strings.Repeat("x", 1<<20))
	}
	io.WriteString(w, "\n"+geminiAnHour)
	if len(told) != 1 || told[0].wait.Round(time.Second) != 3883*time.Second || max(cap(w.line), cap(w.last)) > 4*maxNapLine {
		t.Errorf("%+v; %d and %d bytes held", told, cap(w.line), cap(w.last))
	}
	if slices.ContainsFunc(told, func(n nap) bool { return n.over }) {
		t.Error("a wait was taken for its end")
	}
}
