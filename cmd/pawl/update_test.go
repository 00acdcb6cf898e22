package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// A server stops or dies while the agent resolves a conflict. It pushes no conflict markers, and the next server merges
// again.
func TestConflictResolutionSurvivesAServerStop(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, map[string]string{"a.txt": "one\nend\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
			r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\n"+
				"case $n in 1) sed -i 's/^one$/one\\ntwo/' a.txt ;; 2) echo unfinished >> b.txt; touch \"$CTRL/ready\"; sleep 300 ;; *) grep -v '^[<=>][<=>]' a.txt > c && mv c a.txt ;; esac\n", "")
			r.Start()
			n, pull := r.Solved()
			before := r.Head(pull)
			base := r.Push("main", "feat: three", "a.txt", "one\nthree\nend\n")
			_, err := r.World.Comment(testrig.Repo, pull, testrig.Writer, "/pawl update")
			r.Must(err)
			r.Await("the agent at work", func() bool { return r.Has("ready") })
			r.Stop(sig)
			r.Start()
			r.Await("the next agent", func() bool { return r.Calls() == 3 })
			if s := r.Ending(n); s.State != "done" {
				t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			if parents := r.Git("log", "-1", "--format=%P", "pawl/issue-1"); parents != before+" "+base {
				t.Errorf("the parents of the head are %s, want %s and %s", parents, before, base)
			}
			if log := r.Git("log", "-p", "-m", "--all", "--format="); strings.Contains(log, "<<<<<<<") || strings.Contains(log, "unfinished") {
				t.Errorf("GitHub got\n%s", log)
			}
		})
	}
}
