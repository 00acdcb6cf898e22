package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// Attempts on one repository use up the day of all those of its installation.
func TestTheDayOfAnInstallationIsThatOfAllItsRepositories(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const other = "acme/gadgets"
	r.Must(r.World.AddRepo(t.Context(), other, map[string]string{"a.txt": "one\n"}))
	r.Must(r.World.Install(other))
	r.Must(r.World.AddUser("olga", 1003, map[string]string{testrig.Repo: "write", other: "write"}))
	r.Agent(testrig.PlainAgent, "")
	r.Config += "policy: {caps: {per_installation_per_day: 2}}\n"
	r.Start()
	r.Solved()
	ask := func(repo string) (thread string) {
		n, err := r.World.OpenIssue(repo, "olga", "A line", "Please add a line to a.txt.")
		r.Must(err)
		_, err = r.World.Comment(repo, n, "olga", "/pawl solve")
		r.Must(err)
		return fmt.Sprintf("%s#%d", repo, n)
	}
	if s := r.Over(ask(other)); s.State != "done" {
		t.Fatalf("%s is %s (%s %v), want done", s.Thread, s.State, s.Rule, s.Reasons)
	}
	for _, repo := range []string{testrig.Repo, other} {
		name := ask(repo)
		r.Await(name+" to wait", func() bool { return r.Thread(name).State == "waiting" })
		s := r.Thread(name)
		if why := strings.Join(s.Reasons, "; "); s.Rule != "cap" || !strings.Contains(why, "2 attempts on this installation of the App in 24 hours; its limit is 2") {
			t.Errorf("%s waits by %s because %s", name, s.Rule, why)
		}
	}
	r.Settle()
	if got := r.Calls(); got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
}

// An account whose day is used up is left for another one; without one work waits.
func TestAnAccountsDayIsItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "account: free")
	argv := strings.Split(strings.Split(r.Config, "argv: [")[1], "]")[0]
	r.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%s], account: paid}\npolicy: {caps: {per_account_per_day: 1}}\n", argv)
	r.Start()
	for i, want := range []string{"free", "paid"} {
		if s := r.Ending(r.Solve(fmt.Sprintf("Line %d", i), "Please add a line to a.txt.")); s.State != "done" {
			t.Fatalf("%+v, want it done on account %s", s, want)
		}
	}
	third := r.Solve("Line 3", "Please add a line to a.txt.")
	name := fmt.Sprintf("%s#%d", testrig.Repo, third)
	r.Await("the third to wait", func() bool { s := r.Thread(name); return s.State == "waiting" && s.Rule == "cap" })
	why := strings.Join(r.Thread(name).Reasons, "; ")
	var levels []string
	for _, l := range r.Status().Levels {
		levels = append(levels, l.Level+": "+l.String())
	}
	for _, account := range []string{"free", "paid"} {
		if !strings.Contains(why, "1 attempt on account "+account+" in 24 hours; its limit is 1") {
			t.Errorf("it waits because %s", why)
		}
		if want := "account " + account + ": 1 of 1 attempt (0 left), "; !strings.Contains(strings.Join(levels, "\n"), want) {
			t.Errorf("status lists %q, want %q", levels, want)
		}
	}
}

// A workflow that opens an issue for each pull request of Pawl's, and labels it or orders it at once, goes on for
// ever. A person's comment begins a new chain.
func TestAChainOfPawlsOwnWorkEndsUntilAPersonAsks(t *testing.T) {
	t.Parallel()
	for how, asks := range map[string]func(r *rig, issue int) error{
		"by the label":          func(r *rig, n int) error { return r.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawl") },
		"in a comment, at once": func(r *rig, n int) error { return r.Says(n, testrig.Writer, "/pawl solve")() },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(testrig.PlainAgent, "")
			r.Start()
			_, pull := r.Solved()
			var last int
			for generation := 1; generation <= 3; generation++ {
				issue, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Follow-up", fmt.Sprintf("Please add a line to a.txt, as in #%d.", pull))
				r.Must(err)
				r.Must(asks(r, issue))
				last = issue
				s := r.Ending(issue)
				if generation == 3 {
					if s.State != "stopped" || s.Rule != "generations" || !strings.Contains(strings.Join(s.Reasons, " "), "it refers to Pawl's own work on "+testrig.Repo) {
						t.Fatalf("generation 3: %s by %s because %s", s.State, s.Rule, s.Reasons)
					}
					break
				}
				if s.State != "done" {
					t.Fatalf("generation %d: %s by %s because %s", generation, s.State, s.Rule, s.Reasons)
				}
				pull = r.PullOf(issue)
			}
			if got := r.Calls(); got != 3 {
				t.Errorf("%d attempts, want 3", got)
			}
			r.Must(r.Says(last, testrig.Writer, "/pawl solve")())
			if s := r.Ending(last); s.State != "done" {
				t.Errorf("after a person asked: %s by %s because %s", s.State, s.Rule, s.Reasons)
			}
		})
	}
}
