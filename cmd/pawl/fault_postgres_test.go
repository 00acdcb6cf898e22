package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// PostgreSQL ends under a server and is started again: what was answered is
// there, and what runs goes on.
func TestARestartOfPostgreSQLLosesNothing(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.agent("cat > /dev/null\n"+gated+"echo two >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
	c.join()
	thread := c.issue(rigRepo, "A second line")
	c.await("the agent at work", func() bool { return c.has("ready") })
	before, code := c.send(100)
	if code != http.StatusOK {
		t.Fatalf("answered %d", code)
	}
	db.Kill()
	for range 3 {
		if _, code := c.send(100); code != http.StatusServiceUnavailable {
			t.Errorf("answered %d without a database, want 503", code)
		}
	}
	if code, said := c.ready(); code != http.StatusServiceUnavailable || said.part(t, "database").OK {
		t.Errorf("/readyz: %d %+v, want not ready because of the database", code, said)
	}
	db.Restart(t)
	var after string
	c.await("a webhook to be stored again", func() bool {
		var code int
		after, code = c.send(100)
		return code == http.StatusOK
	})
	c.touch("go")
	c.await("the end of the run", func() bool { return !c.states([]solver.Thread{thread})[0].Open() })
	c.settle()
	c.read(func(s *store.Store) {
		for _, guid := range []string{before, after} {
			if _, err := s.Delivery(t.Context(), guid); err != nil {
				t.Errorf("a delivery that was answered: %v", err)
			}
		}
	})
	c.finished(thread, 2) // one, where PostgreSQL was back within the lease's time
}

// finished checks that a run is done after so many attempts at most, of which
// all but the last were interrupted.
func (c *cluster) finished(thread solver.Thread, most int) (attempts int) {
	c.t.Helper()
	s := c.states([]solver.Thread{thread})[0]
	attempts = len(s.Attempts)
	c.t.Logf("done after %d attempts", attempts)
	if s.Decision.Action != policy.DoDone || attempts > most || c.calls() != attempts {
		c.t.Errorf("%+v after attempts %+v and %d calls, want done after %d at most", s.Decision, s.Attempts, c.calls(), most)
	}
	for _, a := range s.Attempts[:max(attempts-1, 0)] {
		if a.Receipt.Outcome != policy.Interrupted {
			c.t.Errorf("attempt %d: %+v, want an interruption", a.N, a.Receipt)
		}
	}
	c.once(thread.Number)
	return attempts
}

// An attempt that ends while nothing can be written down is made anew.
func TestAnAttemptThatEndsWithoutPostgreSQLIsMadeAnew(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.agent("cat > /dev/null\n"+gated+"echo two >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
	m := c.join()
	thread := c.issue(rigRepo, "A second line")
	c.await("the agent at work", func() bool { return c.has("ready") })
	db.Kill()
	c.touch("go")
	// Pawl knows the attempt's end and cannot log it; or its lease has run out.
	c.await("the attempt's end", func() bool {
		said := m.log.String()
		return strings.Contains(said, `"message":"attempt ended"`) || strings.Contains(said, solver.ErrLeaseLost.Error())
	})
	db.Restart(t)
	c.await("the end of the run", func() bool { return !c.states([]solver.Thread{thread})[0].Open() })
	c.settle()
	if got := c.finished(thread, 2); got != 2 {
		t.Errorf("%d attempts, want the one that could not be logged and another one", got)
	}
}
