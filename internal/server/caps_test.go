package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// Attempts on one repository use up its installation's daily limit.
func TestInstallationLimitCoversAllItsRepositories(t *testing.T) {
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

// A workflow that opens and labels an issue for each of Pawl's pull requests would never end. A user's comment begins a
// new chain.
func TestChainOfPawlsOwnIssuesEndsUntilAUserComments(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	_, pull := r.Solved()
	for generation := 1; ; generation++ {
		issue, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Follow-up", fmt.Sprintf("Please add a line to a.txt, as in #%d.", pull))
		r.Must(err)
		r.Must(r.World.AddLabel(testrig.Repo, issue, testrig.Writer, "pawl"))
		s := r.Ending(issue)
		if generation < 3 && s.State == "done" {
			pull = r.PullOf(issue)
			continue
		}
		if generation != 3 || s.State != "stopped" || s.Rule != "generations" || r.Calls() != 3 {
			t.Fatalf("generation %d: %s by %s because %s, after %d calls", generation, s.State, s.Rule, s.Reasons, r.Calls())
		}
		r.Writes(issue, testrig.Writer, "/pawl solve")
		if s := r.Ending(issue); s.State != "done" {
			t.Errorf("after a user asked: %s by %s because %s", s.State, s.Rule, s.Reasons)
		}
		return
	}
}
