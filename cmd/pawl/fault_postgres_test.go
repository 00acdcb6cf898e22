package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// PostgreSQL ends under a server and is started again: what was answered is
// there, and what runs goes on.
func TestARestartOfPostgreSQLLosesNothing(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.Agent("cat > /dev/null\n"+testrig.Gated+"echo two >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
	c.join()
	issue := c.issue(testrig.Repo, "A second line")
	c.Await("the agent at work", func() bool { return c.Has("ready") })
	c.Get("/") // signed in before the database is away
	before, code := c.Send(100)
	if code != http.StatusOK {
		t.Fatalf("answered %d", code)
	}
	db.Kill()
	for range 3 {
		if _, code := c.Send(100); code != http.StatusServiceUnavailable {
			t.Errorf("answered %d without a database, want 503", code)
		}
	}
	if code, said := c.Ready(); code != http.StatusServiceUnavailable || said.Part(t, "database").OK {
		t.Errorf("/readyz: %d %+v, want not ready because of the database", code, said)
	}
	db.Restart(t)
	var after string
	c.Await("a webhook to be stored again", func() bool {
		var code int
		after, code = c.Send(100)
		return code == http.StatusOK
	})
	c.Touch("go")
	c.Await("the end of the run", func() bool { return !c.states([]thread.ID{issue})[0].Open() })
	c.settle()
	c.Read(func(s *store.Store) {
		for _, guid := range []string{before, after} {
			if _, err := s.Delivery(t.Context(), guid); err != nil {
				t.Errorf("a delivery that was answered: %v", err)
			}
		}
	})
	c.finishedAtOnce(issue)
}

// finishedAtOnce checks that a run is done after one attempt.
func (c *cluster) finishedAtOnce(issue thread.ID) {
	c.T.Helper()
	s := c.states([]thread.ID{issue})[0]
	if s.Decision.Action != policy.DoDone || len(s.Attempts) != 1 || c.Calls() != 1 {
		c.T.Errorf("%+v after attempts %+v and %d calls, want done after one", s.Decision, s.Attempts, c.Calls())
	}
	c.Once(issue.Number)
}

// An attempt that goes on while no node reaches the database, for longer than its
// lease lasts, and ends meanwhile, is written down when the database is back.
func TestAnAttemptThatEndsWithoutPostgreSQLIsKept(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.Agent("cat > /dev/null\n"+testrig.Gated+"echo two >> a.txt; touch \"$CTRL/done\"\n", "startup_timeout: 20m, idle_timeout: 20m")
	c.join()
	c.join()
	issue := c.issue(testrig.Repo, "A second line")
	c.Await("the agent at work", func() bool { return c.Has("ready") })
	db.Kill()
	away := time.Now()
	c.Await("the lease to run out", func() bool { return time.Since(away) > thread.LeaseTime+thread.HeartbeatTime })
	c.Touch("go")
	c.Await("the agent's end", func() bool { return c.Has("done") })
	db.Restart(t)
	c.Await("the end of the run", func() bool { return !c.states([]thread.ID{issue})[0].Open() })
	c.settle()
	c.finishedAtOnce(issue)
}
