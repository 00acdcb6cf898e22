package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// A question is an attempt with all the bounds: those of the day, and the breaker of its account.
func TestAQuestionIsBoundedAsEverythingElse(t *testing.T) {
	t.Parallel()
	ask := func(r *rig, words string) (n int) {
		t.Helper()
		n, err := r.world.OpenIssue(rigRepo, writer, "A question", "Where is it?")
		r.must(err)
		_, err = r.world.Comment(rigRepo, n, writer, words)
		r.must(err)
		return n
	}
	for _, database := range []string{"sqlite", "postgres"} {
		begin := func(t *testing.T, agent, more, policies string) *rig {
			t.Helper()
			if database == "sqlite" {
				r := newRig(t, nil)
				r.agent(agent, more)
				r.config += policies
				r.start()
				return r
			}
			c := newCluster(t, startPostgres(t))
			c.agent(agent, more)
			c.config += policies
			c.join()
			return c.rig
		}
		t.Run(database+": attempts of the day", func(t *testing.T) {
			t.Parallel()
			r := begin(t, asked, "", "policy: {caps: {per_repository_per_day: 1}}\n")
			n := ask(r, "/pawl ask Where is the number?")
			r.await("the answer", func() bool { return len(r.commentsWith(n, anAnswer)) == 1 })
			for _, words := range []string{"/pawl ask And the other?", "/pawl plan"} {
				n = ask(r, words)
				r.await("the wait", func() bool { s := r.thread(threadName(n)); return s.State == "waiting" && s.Rule == policy.RuleCap })
			}
			if r.calls() != 1 {
				t.Errorf("%d calls of the agent, want one", r.calls())
			}
		})
		t.Run(database+": the breaker of the account", func(t *testing.T) {
			t.Parallel()
			r := begin(t, fmt.Sprintf(limited, resetText(time.Now().Add(3*time.Hour))), "stream: codex", "policy: {usage_limit: {max_consecutive: 1}}\n")
			// Without a gateway an account's breaker opens once a second thread confirms the limit.
			for i, words := range []string{"/pawl ask Where is the number?", "/pawl plan", "/pawl ask And the other?"} {
				n := ask(r, words)
				r.await("the stop", func() bool { return r.thread(threadName(n)).State == "stopped" })
				if s := r.thread(threadName(n)); r.calls() != min(i+1, 2) || !strings.HasPrefix(string(s.Rule), "usage_limit") {
					t.Errorf("question %d: %d calls, then %s (%q)", i+1, r.calls(), s.Rule, s.Reasons)
				}
			}
		})
	}
}
