package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// A question is an attempt with all the bounds: those of the day, and the breaker of its account.
func TestAQuestionIsBoundedAsEverythingElse(t *testing.T) {
	t.Parallel()
	ask := func(r *rig, words string) (n int) {
		t.Helper()
		n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A question", "Where is it?")
		r.Must(err)
		_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, words)
		r.Must(err)
		return n
	}
	for _, database := range []string{"sqlite", "postgres"} {
		begin := func(t *testing.T, agent, more, policies string) *rig {
			t.Helper()
			if database == "sqlite" {
				r := newRig(t, nil)
				r.Agent(agent, more)
				r.Config += policies
				r.Start()
				return r
			}
			c := newCluster(t, startPostgres(t))
			c.Agent(agent, more)
			c.Config += policies
			c.join()
			return c.rig
		}
		t.Run(database+": attempts of the day", func(t *testing.T) {
			t.Parallel()
			r := begin(t, testrig.Asked, "", "policy: {caps: {per_repository_per_day: 1}}\n")
			n := ask(r, "/pawl ask Where is the number?")
			r.Await("the answer", func() bool { return len(r.CommentsWith(n, testrig.AnAnswer)) == 1 })
			for _, words := range []string{"/pawl ask And the other?", "/pawl plan"} {
				n = ask(r, words)
				r.Await("the wait", func() bool {
					s := r.Thread(testrig.ThreadName(n))
					return s.State == "waiting" && s.Rule == policy.RuleCap
				})
			}
			if r.Calls() != 1 {
				t.Errorf("%d calls of the agent, want one", r.Calls())
			}
		})
		t.Run(database+": the breaker of the account", func(t *testing.T) {
			t.Parallel()
			r := begin(t, fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(3*time.Hour))), "stream: codex", "policy: {usage_limit: {max_consecutive: 1}}\n")
			// Without a gateway an account's breaker opens once a second thread confirms the limit.
			for i, words := range []string{"/pawl ask Where is the number?", "/pawl plan", "/pawl ask And the other?"} {
				n := ask(r, words)
				r.Await("the stop", func() bool { return r.Thread(testrig.ThreadName(n)).State == "stopped" })
				if s := r.Thread(testrig.ThreadName(n)); r.Calls() != min(i+1, 2) || !strings.HasPrefix(string(s.Rule), "usage_limit") {
					t.Errorf("question %d: %d calls, then %s (%q)", i+1, r.Calls(), s.Rule, s.Reasons)
				}
			}
		})
	}
}
