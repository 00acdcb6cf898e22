package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// In the incident, an agent at its usage limit was restarted 1,249 times. These tests cover the four cases that our
// plan listed afterwards.

// solving returns a world with one backend and one thread whose first attempt runs.
func solving(t *testing.T, change func(*Limits)) (*world, *simThread) {
	l := Defaults()
	if change != nil {
		change(&l)
	}
	w := newWorld(t, l, 1, Backend{Name: "codex", Account: "main", CanEscalate: true})
	w.say(w.threads[0], "solve")
	return w, w.threads[0]
}

// attemptsAre checks the number of attempts and the last decision.
func (s *simThread) attemptsAre(t *testing.T, n int, action Action, rule Rule) {
	t.Helper()
	if len(s.attempts) != n || s.last.Action != action || s.last.Rule != rule {
		t.Fatalf("want %d attempts, then %s by %s; got %s", n, action, rule, s.stands())
	}
}

func TestImmediateUsageLimitStopsAfterThree(t *testing.T) {
	for name, reset := range map[string]time.Duration{"the reset is known": 5 * time.Hour, "the reset is unknown": 0, "the reset is past": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			w, s := solving(t, nil)
			limit := func() {
				w.pass(2 * time.Second)
				a := atLimit(time.Time{})
				if reset != 0 {
					a.Limit.ResetsAt = w.now.Add(reset)
				}
				w.end(s, a)
			}
			limit()
			s.attemptsAre(t, 1, DoStop, "usage_limit")
			w.say(s, "")
			limit()
			s.attemptsAre(t, 2, DoStop, "usage_limit")
			w.say(s, "solve")
			limit()
			s.attemptsAre(t, 3, DoStop, "usage_limit_breaker")
			// The incident: the description's timestamp changed and comments appeared repeatedly.
			for range 1249 {
				w.say(s, "")
				w.pass(2 * time.Second)
			}
			s.attemptsAre(t, 3, DoStop, "usage_limit_breaker")
			if !strings.Contains(s.last.Reasons.String(), "3 × usage_limit in a row") {
				t.Errorf("reasons %q", s.last.Reasons)
			}
			w.say(s, "resume")
			if reset > 0 {
				s.attemptsAre(t, 3, DoStop, "usage_limit_breaker")
				w.pass(reset)
				w.say(s, "resume")
			}
			s.attemptsAre(t, 4, DoAttempt, "feedback")
			limit()
			s.attemptsAre(t, 4, DoStop, "usage_limit_breaker")
		})
	}
}

func TestThreeUsageLimitsStopDespiteAutoContinue(t *testing.T) {
	w, s := solving(t, func(l *Limits) { l.UsageLimit.AutoContinue = true })
	for range 2 {
		w.end(s, atLimit(w.now.Add(5*time.Hour)))
		w.until(s)
	}
	s.attemptsAre(t, 3, DoAttempt, "limit_reset")
	w.end(s, atLimit(w.now.Add(5*time.Hour)))
	s.attemptsAre(t, 3, DoStop, "usage_limit_breaker")
}

func TestThreeUsageLimitsCountOverThreads(t *testing.T) {
	w := newWorld(t, Defaults(), 4, Backend{Name: "codex", Account: "main"})
	for _, s := range w.threads[:3] {
		w.say(s, "solve")
		w.end(s, atLimit(w.now.Add(time.Hour)))
	}
	fourth := w.threads[3]
	w.say(fourth, "resume")
	fourth.attemptsAre(t, 0, DoStop, "usage_limit_breaker")
}

func TestEditedDescriptionRestartsOnlyWithNewContent(t *testing.T) {
	for _, tc := range []struct {
		name     string
		feedback bool // whether package feedback accepts the edit as feedback
		how      Attempt
		attempts int
		rule     Rule
	}{
		{"a moved timestamp and no progress", false, fruitless(), 1, "no_progress"},
		{"a ticked checkbox and no progress", false, fruitless(), 1, "no_progress"},
		{"a moved timestamp, but progress", false, timedOut(), 2, "progress"},
		{"changed content, without progress", true, fruitless(), 2, "feedback"},
		{"changed content and a usage limit", true, atLimit(time.Time{}), 1, "usage_limit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, s := solving(t, nil)
			if tc.feedback {
				w.say(s, "")
			}
			w.end(s, tc.how)
			action := DoStop
			if tc.attempts > 1 {
				action = DoAttempt
			}
			s.attemptsAre(t, tc.attempts, action, tc.rule)
		})
	}
}

func TestFiftyRestartsStopWithAReason(t *testing.T) {
	w, s := solving(t, nil)
	var waits []string
	for s.open {
		if s.last.Action == DoWait {
			waits = append(waits, s.last.Until.Sub(w.now).String())
			w.until(s)
			continue
		}
		w.pass(time.Minute)
		w.end(s, timedOut())
	}
	s.attemptsAre(t, 51, DoStop, "restart_limit")
	if got := s.last.Reasons.String(); got != "the work was restarted 50 times since a user typed something new, which is its limit" {
		t.Errorf("reasons %q", got)
	}
	want := []string{"2s", "4s", "8s", "16s", "32s", "1m4s", "2m8s", "4m16s"}
	for len(want) < 40 {
		want = append(want, "5m0s")
	}
	if fmt.Sprint(waits) != fmt.Sprint(want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestAutoContinueWaitsUntilTheResetAndThenAttempts(t *testing.T) {
	w, s := solving(t, func(l *Limits) { l.UsageLimit.AutoContinue = true })
	reset := w.now.Add(3*time.Hour + 7*time.Minute)
	w.end(s, atLimit(reset))
	s.attemptsAre(t, 1, DoWait, "usage_limit")
	if !s.last.Until.Equal(reset) {
		t.Fatalf("the thread waits until %s, want %s", Clock(s.last.Until), Clock(reset))
	}
	w.pass(reset.Sub(w.now) - time.Second)
	s.attemptsAre(t, 1, DoWait, "usage_limit")
	w.pass(time.Second)
	s.attemptsAre(t, 2, DoAttempt, "limit_reset")
	w.end(s, finished())
	s.attemptsAre(t, 2, DoDone, "done")
}
