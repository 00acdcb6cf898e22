package main

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
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
	for i, l := range all {
		states := l.settled("the line", patience, func(states map[string]solver.State) bool {
			return len(l.died()) == 1 && worked(states[threadName(1)]) == 1
		})
		l.invariants(states, rigRepo)
		at := l.died()[0].at
		l.openDB(func(db *store.Store) {
			events, err := db.Events(t.Context(), threadOf(rigRepo, 1), 0)
			l.must(err)
			e := nextWork(events, at)
			late := e.At.Sub(at)
			t.Logf("killed at %s: %s came %s later", points[i], e.Kind, late.Round(100*time.Millisecond))
			if e.Kind == "" || late > goOnWithin {
				t.Errorf("killed at %s: the thread went on after %s, want %s", points[i], late, goOnWithin)
			}
		})
	}
}
