package main

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// goOnWithin is how soon a thread goes on after a crash at the latest: the lease
// of the dead, 30 s, and room for a start and a sweep.
const goOnWithin = time.Minute

// The other tests of crash points move the clock over the lease of the dead. Here
// it runs as it does for people, for all places at once.
func TestAServerThatIsKilledAndStartedAgainGoesOnWithinAMinute(t *testing.T) {
	t.Parallel()
	var all []*lives
	points := []string{"received", "stored", "delivery_claimed", "event_appended", "claimed", "probe_acquired", "attempt_logged", "cloned",
		"agent_started", "agent_done", "push_begun", "pushed", "attempt_ending", "attempt_ended", "pull_begun", "decided", "act_logged"}
	for i, point := range points {
		l := newLives(t, nil)
		l.Pause = 0
		l.Env = func(life int) []string {
			if life == 0 {
				return []string{"PAWL_CRASH_AT=" + point}
			}
			return nil
		}
		l.Agent(diligent(testrig.Nap(600+i), "0.1"), "")
		l.begin()
		l.Serving()
		l.Solve("A line", "Please add a line to a.txt.")
		all = append(all, l)
	}
	for _, l := range all {
		states := l.settled("the line", testrig.Patience, func(states map[string]thread.State) bool {
			return len(l.Died()) == 1 && worked(states[testrig.ThreadName(1)]) == 1
		})
		l.Invariants(states, testrig.Repo)
		l.wentOnInTime(l.Died()[0])
	}
}

// wentOnInTime checks when work on the first thread went on after a death.
func (l *lives) wentOnInTime(d crashtest.Death) {
	l.T.Helper()
	l.Read(func(db *store.Store) {
		events, err := db.Events(l.T.Context(), rigThread(1), 0)
		l.Must(err)
		e := nextWork(events, d.At)
		late := e.At.Sub(d.At)
		l.T.Logf("killed at %s: %s came %s later", d.Point, e.Kind, late.Round(100*time.Millisecond))
		if e.Kind == "" || late > goOnWithin {
			l.T.Errorf("killed at %s: the thread went on after %s, want %s", d.Point, late, goOnWithin)
		}
	})
}

// wentOn checks that after each death the thread went on soon, by the clock of
// the servers, if its log said that there was something to go on with.
func (l *lives) wentOn(t thread.ID) {
	l.T.Helper()
	var events []thread.Event
	l.Read(func(db *store.Store) {
		var err error
		events, err = db.Events(l.T.Context(), t, 0)
		l.Must(err)
	})
	deaths := l.Died()
	for i, d := range deaths {
		if i+1 < len(deaths) && !deaths[i+1].At.After(nextWork(events, d.At).At) {
			continue // the next life ended before it could
		}
		if late := wentOnAfter(events, d.At); late > goOnWithin {
			l.T.Errorf("%s went on %s after the death at %s, want %s", t, late, d.Point, goOnWithin)
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
