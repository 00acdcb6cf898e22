package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// After a backend's third severe loop in a repository within a week, only a user's command lets it work there again.
func TestThirdSevereLoopInAWeekNeedsAUser(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.CodexAgent+`for i in $(seq 1 600); do if [ $((i%2)) = 0 ]; then echo 'value: A' > f.txt; else echo 'value: B' > f.txt; fi; change f.txt; sleep 0.01; done
`+testrig.CodexEnd, "stream: codex")
	r.Start()
	comment := func(n int, text string) {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, text)
		r.Must(err)
	}
	loops := func(n, attempts int) {
		r.Await(fmt.Sprintf("loop %d of #%d", attempts, n), func() bool {
			a := r.State(n).Attempts
			return len(a) == attempts && a[attempts-1].Receipt.Outcome == "edit_loop"
		})
	}
	var last int
	for i := range 3 {
		last = r.Solve(fmt.Sprintf("Task %d", i), fmt.Sprintf("Please write the value of task %d.", i))
		if i > 0 { // the backend is in cooldown after the previous loop
			r.Await("the wait", func() bool { return r.Thread(testrig.ThreadName(last)).Rule == "cooldown" })
			comment(last, "/pawl resume")
		}
		loops(last, 1)
	}
	r.Await("the stop", func() bool {
		s := r.Thread(testrig.ThreadName(last))
		return s.Rule == "runaway" && s.State == "stopped"
	})
	cools := r.Status().Cooldowns
	if len(cools) != 1 || cools[0].Class != "runaway" || len(cools[0].Severe) != 3 {
		t.Errorf("cooldowns %+v, want one that only a user can end", cools)
	}
	r.Await("the check run of the kept work", func() bool {
		return strings.Contains(r.Check(r.World.Branches(testrig.Repo)[fmt.Sprintf("pawl/kept-%d-1", last)], "pawl/severity").Summary,
			"**Next:** this was the backend's third severe edit loop in this repository within a week. Its cooldown lasts until a user comments `/pawl resume`, `retry`, `escalate` or `raise`")
	})
	_, out, _ := pawl(t, r.Dir, nil, "status", "--config", filepath.Join(r.Dir, "pawl.yml"))
	if want := "mine on acme/widgets: 3 severe edit loops in a week; it is in cooldown until a user comments /pawl resume"; !strings.Contains(out, want) {
		t.Errorf("pawl status does not contain %q:\n%s", want, out)
	}
	if _, page := r.Get("/accounts"); !strings.Contains(page, "it is in cooldown until a user comments /pawl resume") {
		t.Errorf("the accounts page does not report that a user must end the cooldown:\n%s", page)
	}
	decided := func() (n int) {
		for _, e := range r.Events(last) {
			if e.Kind == thread.KindDecision {
				n++
			}
		}
		return n
	}
	before := decided()
	comment(last, "/pawl solve it in another way")
	r.Await("the next decision", func() bool { return decided() > before })
	if n := len(r.State(last).Attempts); n != 1 || r.Thread(testrig.ThreadName(last)).Rule != "runaway" {
		t.Fatalf("%d attempts after /pawl solve, want 1", n)
	}
	comment(last, "/pawl resume")
	loops(last, 2)
	r.Settle()
	if cools := r.Status().Cooldowns; len(cools) != 1 || cools[0].Class != "severe" || len(cools[0].Severe) != 1 {
		t.Errorf("cooldowns %+v, want the one loop since the command", cools)
	}
	if d := r.State(last).Attempts[1].Decision; !d.Lifts || !strings.Contains(d.Reasons.String(), "a user's command ends the cooldown") {
		t.Errorf("decision %+v, want a reason that names the command that ended the cooldown", d)
	}
}
