package main

import (
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// A step that failed and gave its lease back is known to nobody but its thread's
// row when the process is killed right then.
func TestAThreadGoesOnWithinAMinuteAfterAFailedStepAndAKill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    string
		fault fakegithub.Fault
	}{
		"killed when the lease is given back":   {"released", fakegithub.Fault{Route: "POST /repos/*/*/issues/comments/*/reactions", Status: 500}},
		"killed before the lease is given back": {"releasing", fakegithub.Fault{Route: "POST /repos/*/*/issues/comments/*/reactions", Status: 500}},
		"killed after the third failure":        {"released:3", fakegithub.Fault{Route: "POST /repos/*/*/issues/*/comments", Status: 502}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLives(t, map[string]string{"a.txt": "one\n"})
			l.Pause = 0 // by the true time
			l.Env = func(life int) []string {
				if life > 0 {
					return nil
				}
				return []string{"PAWL_CRASH_AT=" + c.at}
			}
			l.Agent("cat > /dev/null\necho two >> a.txt\n", "")
			c.fault.Times = -1
			l.World.Inject(c.fault)
			l.begin()
			l.Serving()
			n := l.Solve("A line", "Please add a line to a.txt.")
			l.Await("the kill", func() bool { return len(l.Died()) == 1 })
			l.World.ClearFaults()
			l.Serving()
			states := l.settled("the thread to go on", testrig.Patience, func(states map[string]thread.State) bool {
				// The last thing that a step does is the status comment.
				s := states[testrig.ThreadName(n)]
				return worked(s) == 1 && s.Acts["comment:status"].Done && len(l.World.Comments(testrig.Repo, n)) == 2
			})
			l.wentOnInTime(l.Died()[0])
			if s := states[testrig.ThreadName(n)]; s.Decision == nil || s.Decision.Action != policy.DoDone {
				t.Errorf("the thread ended with %+v, want done", s.Decision)
			}
			l.Invariants(states, testrig.Repo)
		})
	}
}
