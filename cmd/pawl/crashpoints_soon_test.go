package main

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// The other tests of crash points move the clock over the lease of the dead. Here
// it runs as it does for people, for all places at once.
func TestAServerThatIsKilledAndStartedAgainGoesOnWithinAMinute(t *testing.T) {
	t.Parallel()
	var all []*lives
	points := []string{"received", "stored", "delivery_claimed", "event_appended", "claimed", "account_entered", "attempt_logged", "cloned",
		"agent_started", "agent_done", "push_begun", "pushed", "attempt_ending", "attempt_ended", "pull_begun", "decided", "act_logged"}
	for i, point := range points {
		l := newLives(t, nil)
		l.pause = 0
		l.env = func(life int) []string {
			if life == 0 {
				return []string{"PAWL_CRASH_AT=" + point}
			}
			return nil
		}
		l.agent(diligent(nap(600+i), "0.1"), "")
		l.begin()
		l.serving()
		l.solve("A line", "Please add a line to a.txt.")
		all = append(all, l)
	}
	for _, l := range all {
		states := l.settled("the line", patience, func(states map[string]thread.State) bool {
			return len(l.died()) == 1 && worked(states[threadName(1)]) == 1
		})
		l.invariants(states, rigRepo)
		l.wentOnInTime(l.died()[0])
	}
}

// wentOnInTime checks when work on the first thread went on after a death.
func (l *lives) wentOnInTime(d death) {
	l.t.Helper()
	l.read(func(db *store.Store) {
		events, err := db.Events(l.t.Context(), threadOf(rigRepo, 1), 0)
		l.must(err)
		e := nextWork(events, d.at)
		late := e.At.Sub(d.at)
		l.t.Logf("killed at %s: %s came %s later", d.point, e.Kind, late.Round(100*time.Millisecond))
		if e.Kind == "" || late > goOnWithin {
			l.t.Errorf("killed at %s: the thread went on after %s, want %s", d.point, late, goOnWithin)
		}
	})
}
