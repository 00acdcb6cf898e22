package solver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// tries runs due steps for a day and counts them.
func (a *acts) tries() (steps int) {
	a.T.Helper()
	for range 6 * 24 {
		leases, err := a.store.Claim(a.T.Context(), "node-1", 1)
		a.Must(err)
		for _, l := range leases {
			steps++
			_ = a.solver.Work(a.T.Context(), l, time.Now()) // the store has the time of the next try
		}
		a.Clock.Reach(a.Clock.Now().Add(10 * time.Minute))
	}
	return steps
}

func (a *acts) count(query string) (n int) {
	a.T.Helper()
	a.Must(a.store.DB().QueryRowContext(a.T.Context(), query).Scan(&n))
	return n
}

func TestDamagedThreadAppendsNothing(t *testing.T) {
	answers := func(status int) func(a *acts) error {
		return func(a *acts) error {
			a.World.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/issues/{number}/comments", Times: -1, Status: status, Message: "Resource not accessible by integration"})
			return nil
		}
	}
	for name, c := range map[string]struct {
		happens func(a *acts) error
		steps   int // within a day
	}{
		"nothing":     {func(*acts) error { return nil }, 1},
		"renamed":     {func(a *acts) error { return a.World.RenameRepo(testrig.Repo, "gadgets") }, 1},
		"deleted":     {func(a *acts) error { return a.World.DeleteRepo(testrig.Repo) }, 1},
		"uninstalled": {func(a *acts) error { return a.World.Uninstall(testrig.Repo) }, 1},
		"suspended":   {func(a *acts) error { return a.World.Suspend(testrig.Repo) }, 1},
		"403":         {answers(403), 1},
		"404":         {answers(404), 1},
		"410":         {answers(410), 1},
		"500":         {answers(500), 6 * 24},
		"401":         {answers(401), 6 * 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t, nil)
			a.Agent(testrig.PlainAgent, "")
			aLine(a)
			_, err := a.store.DB().ExecContext(t.Context(), "UPDATE events SET data = 'x' WHERE kind = 'decision'")
			a.Must(err)
			a.Must(c.happens(a))
			_, err = a.store.Append(t.Context(), widgets(1), true)
			a.Must(err)
			rows := a.count("SELECT count(*) FROM events")
			a.World.ResetCalls()
			if steps := a.tries(); steps == 0 || steps > c.steps {
				t.Errorf("%d steps in a day, want at most %d", steps, c.steps)
			}
			if more := a.count("SELECT count(*) FROM events") - rows; more > 0 {
				t.Errorf("%d rows were appended", more)
			}
			for call, n := range a.World.Calls() {
				if n > 8*c.steps { // clients retry a call a few times
					t.Errorf("%d times %s", n, call)
				}
			}
		})
	}
}

// A panic in the reading of every agent's output ends attempts, and three of them end the run.
func TestPanicInEveryAttemptCostsFewAgentRuns(t *testing.T) {
	t.Parallel()
	a := askedFor(t)
	a.solver.Env.OnEvent = func(agent.Event) { panic("index out of range") }
	steps := a.tries()
	runs := a.count("SELECT count(*) FROM events WHERE kind = 'attempt_started'")
	t.Logf("%d attempts in %d steps of a day", runs, steps)
	if runs == 0 || runs > 3 {
		t.Errorf("%d attempts in %d steps of a day, want 1 to 3", runs, steps)
	}
	if s := a.StatusComment(1); !strings.Contains(s, "the server's log has the stack") {
		t.Error(s)
	}
}

// A thread whose acts on GitHub always fail records the error once.
func TestFailingPublisherAppendsFewRows(t *testing.T) {
	t.Parallel()
	a := askedFor(t)
	a.before = func(b thread.Batch) error {
		for _, e := range b.Events {
			if e.Kind == thread.KindActStarted || e.Kind == thread.KindActDone {
				panic("nil map")
			}
		}
		return nil
	}
	rows := a.count("SELECT count(*) FROM events")
	steps := a.tries()
	more := a.count("SELECT count(*) FROM events") - rows
	t.Logf("%d rows in %d steps of a day", more, steps)
	if more > 15 {
		t.Errorf("%d rows in %d steps of a day, want at most 15", more, steps)
	}
	if n := a.count(`SELECT count(*) FROM events WHERE data LIKE '%"rule":"repeated_error"%'`); n != 1 {
		t.Errorf("reported %d times, want once", n)
	}
}

func TestPanickingStepIsReportedOnce(t *testing.T) {
	for _, kind := range []thread.Kind{thread.KindDecision, thread.KindAttemptStarted} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			a := askedFor(t)
			reports := 0
			a.before = func(b thread.Batch) error {
				for _, e := range b.Events {
					d, decided := e.Data.(*thread.Decided)
					switch {
					case decided && d.Rule == policy.RuleRepeatedError:
						reports++
					case e.Kind == kind:
						panic("index out of range")
					}
				}
				return nil
			}
			if steps := a.tries(); steps > 6*24 {
				t.Errorf("%d steps in a day", steps)
			}
			if reports != 1 {
				t.Errorf("reported %d times, want once", reports)
			}
			if s := a.StatusComment(1); !strings.Contains(s, "the server's log has the stack") {
				t.Error(s)
			}
		})
	}
}
