package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// mostAttempts is how many attempts a thread may have in a day by default
// (policy.restarts.max_per_thread_per_day).
const mostAttempts = 60

// goOnWithin is how soon a thread goes on after a crash at the latest: the lease
// of the dead, 30 s, and room for a start and a sweep.
const goOnWithin = time.Minute

// attemptsWrong says which attempts of a thread nothing accounts for. Each has one
// cause: a remark that it is the first to take, a death that cut the one before
// off, or an agent that showed no sign of life, or ended without a word, once a run,
// or too early with the work moved on. No cause serves twice, so the number of attempts is bounded by
// what people, deaths and agents did.
func attemptsWrong(s thread.State, deaths []death) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	silent := map[int]bool{} // runs in which one was repeated for having said nothing
	for i, a := range s.Attempts {
		if a.EndedAt.IsZero() {
			add("attempt %d has no end", a.N)
		}
		var before thread.Attempt
		if i > 0 && s.Attempts[i-1].Run == a.Run {
			before = s.Attempts[i-1]
		}
		caused := false
		switch rule := a.Decision.Rule; rule {
		case "feedback":
			caused = slices.ContainsFunc(s.Feedback, func(f thread.Request) bool { return f.Taken == a.N })
		case "interrupted":
			caused = before.Receipt.Outcome == policy.Interrupted
		case "silent":
			caused = before.Receipt.Silent != ""
		case "no_answer":
			caused = before.Receipt.Ending == policy.NoAnswer && !silent[a.Run]
			silent[a.Run] = true
		case "progress":
			r := before.Receipt
			caused = r.Ending != policy.Completed && r.StartTree != "" && r.EndTree != "" && r.StartTree != r.EndTree
		}
		if !caused {
			add("attempt %d by rule %q has no cause; the one before it: %+v", a.N, a.Decision.Rule, before.Receipt)
		}
		if a.Receipt.Outcome == policy.Interrupted && !slices.ContainsFunc(deaths, func(d death) bool {
			return d.at.After(a.At) && (i+1 == len(s.Attempts) || d.at.Before(s.Attempts[i+1].At))
		}) {
			add("attempt %d was interrupted from %s to %s, and nobody died", a.N, a.At, a.EndedAt)
		}
		day := 0
		for _, b := range s.Attempts[:i+1] {
			if b.At.After(a.At.Add(-24 * time.Hour)) {
				day++
			}
		}
		if day > mostAttempts {
			add("attempt %d is the %d. in a day", a.N, day)
		}
	}
	return wrong
}

// judged counts the remarks in a log by what they are.
func judged(events []thread.Event) map[thread.Target]int {
	times := map[thread.Target]int{}
	for _, e := range events {
		var f thread.Feedback
		if slices.Contains([]thread.Kind{thread.KindFeedback, thread.KindIgnored, thread.KindControl, thread.KindQuestion}, e.Kind) &&
			json.Unmarshal(e.Data, &f) == nil {
			times[f.Target]++
		}
	}
	return times
}

// wentOn checks that after each death the thread went on soon, by the clock of
// the servers, if its log said that there was something to go on with.
func (l *lives) wentOn(t thread.ID) {
	l.t.Helper()
	var events []thread.Event
	l.read(func(db *store.Store) {
		var err error
		events, err = db.Events(l.t.Context(), t, 0)
		l.must(err)
	})
	deaths := l.died()
	for i, d := range deaths {
		if i+1 < len(deaths) && !deaths[i+1].at.After(nextWork(events, d.at).At) {
			continue // the next life ended before it could
		}
		if late := wentOnAfter(events, d.at); late > goOnWithin {
			l.t.Errorf("%s went on %s after the death at %s, want %s", t, late, d.point, goOnWithin)
		}
	}
}

// wentOnAfter is how long after a death a thread's log goes on; zero where
// nothing was left to be done.
func wentOnAfter(events []thread.Event, at time.Time) time.Duration {
	before := slices.IndexFunc(events, func(e thread.Event) bool { return e.At.After(at) })
	if before < 1 {
		return 0
	}
	s, err := thread.Fold(events[:before])
	if _, running := s.Running(); err != nil || !running && !s.Open() {
		return 0
	}
	return nextWork(events, at).At.Sub(at)
}

// nextWork is the first event after a time that is work on the thread, or asks for
// it; the zero value when there is none. Others, such as what Pawl's own push
// brings, say nothing of whether it goes on.
func nextWork(events []thread.Event, at time.Time) thread.Event {
	for _, e := range events {
		if e.At.After(at) && e.Kind != thread.KindIgnored && e.Kind != thread.KindThread {
			return e
		}
	}
	return thread.Event{}
}

func TestAnAttemptThatNothingAccountsForIsSeen(t *testing.T) {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	attempt := func(n int, rule policy.Rule, r policy.Receipt) thread.Attempt {
		at := began.Add(time.Duration(n) * time.Minute)
		return thread.Attempt{Started: thread.Started{N: n, Run: 1, Decision: policy.Decision{Rule: rule}}, At: at, EndedAt: at.Add(10 * time.Second), Receipt: r}
	}
	cut, silent, well := policy.Receipt{Outcome: policy.Interrupted}, policy.Receipt{Ending: policy.NoAnswer}, policy.Receipt{Ending: policy.Completed}
	asked := []thread.Request{{Taken: 1}}
	died := []death{{at: began.Add(time.Minute + time.Second)}}
	for _, c := range []struct {
		name     string
		attempts []thread.Attempt
		want     int
	}{
		{"all are accounted for", []thread.Attempt{attempt(1, "feedback", cut), attempt(2, "interrupted", silent), attempt(3, "no_answer", well)}, 0},
		{"one remark is taken twice", []thread.Attempt{attempt(1, "feedback", well), attempt(2, "feedback", well)}, 1},
		{"one death cuts off twice", []thread.Attempt{attempt(1, "feedback", cut), attempt(2, "interrupted", cut)}, 1},
		{"what was not cut off is repeated", []thread.Attempt{attempt(1, "feedback", well), attempt(2, "interrupted", well)}, 1},
		{"what moved nothing is repeated", []thread.Attempt{attempt(1, "feedback", silent), attempt(2, "progress", well)}, 1},
		{"silence is repeated twice", []thread.Attempt{attempt(1, "feedback", silent), attempt(2, "no_answer", silent), attempt(3, "no_answer", well)}, 1},
	} {
		if wrong := attemptsWrong(thread.State{Attempts: c.attempts, Feedback: asked}, died); len(wrong) != c.want {
			t.Errorf("%s: %q, want %d", c.name, wrong, c.want)
		}
	}
}
