package solver_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

var errDied = errors.New("the process died")

// dies takes steps until the process dies while logging a batch. Then another process may take over.
func (a *acts) dies(at func(b thread.Batch) bool) {
	a.T.Helper()
	a.before = func(b thread.Batch) error {
		if at(b) {
			return errDied
		}
		return nil
	}
	if err := a.solver.Step(a.T.Context(), widgets(1)); !errors.Is(err, errDied) {
		a.T.Fatalf("the step ended with %v, want the death of the process", err)
	}
	a.before = nil
	a.Clock.Reach(a.Clock.Now().Add(thread.LeaseTime + time.Second))
	a.solver = a.process("node-2")
}

// askedFor returns a world with a requested issue before any step.
func askedFor(t *testing.T) *acts {
	t.Helper()
	a := newActs(t, nil)
	a.Agent(testrig.PlainAgent, "")
	a.Solve("A second line", "Please add a second line to a.txt.")
	a.begin()
	a.deliver()
	return a
}

func TestStopBeforeTheAttemptIsObeyed(t *testing.T) {
	t.Parallel()
	a := askedFor(t)
	a.Agent("exec sleep 600\n", "")
	a.during(func() {
		_, err := a.store.Append(t.Context(), widgets(1), true, thread.NewEvent{Kind: thread.KindControl, At: a.Clock.Now(),
			Data: thread.Feedback{Command: "stop", By: feedback.Actor{Login: testrig.Writer}}})
		a.Must(err)
	})
	a.Must(a.solver.Step(t.Context(), widgets(1)))
	s := a.state(1)
	if s.Decision.Rule != "cancelled" || len(s.Attempts) != 1 || s.Attempts[0].Receipt.Outcome != "cancelled" {
		t.Errorf("%+v, attempts %+v; want one, cancelled", s.Decision, s.Attempts)
	}
}

func TestClosedUnloggedPullRequestIsNotReopened(t *testing.T) {
	t.Parallel()
	a := askedFor(t)
	a.dies(func(b thread.Batch) bool { return b.Alias != 0 })
	pulls := a.World.Pulls(testrig.Repo)
	if len(pulls) != 1 {
		t.Fatalf("%d pull requests, want 1", len(pulls))
	}
	a.Must(a.World.ClosePull(testrig.Repo, pulls[0].Number, testrig.Writer))
	a.Must(a.solver.Step(t.Context(), widgets(1)))
	if pulls := a.World.Pulls(testrig.Repo); len(pulls) != 1 || a.state(1).Pull != pulls[0].Number {
		t.Errorf("%d pull requests, and the thread's is #%d; want only the closed one", len(pulls), a.state(1).Pull)
	}
}

func TestUnloggedEditIsCorrected(t *testing.T) {
	t.Parallel()
	a := askedFor(t)
	a.Must(a.solver.Step(t.Context(), widgets(1)))
	without := a.StatusComment(1)
	a.cfg.HTTP.PublicURL = "https://pawl.test"
	a.solver = a.process("node-1")
	a.dies(func(b thread.Batch) bool {
		return slices.ContainsFunc(b.Events, func(e thread.NewEvent) bool {
			act, ok := e.Data.(thread.Act)
			return ok && e.Kind == thread.KindActDone && act.Key == thread.ActStatus && act.Hash != ""
		})
	})
	if a.StatusComment(1) == without {
		t.Fatal("the comment was not edited")
	}
	a.cfg.HTTP.PublicURL = ""
	a.solver = a.process("node-3")
	a.Must(a.solver.Step(t.Context(), widgets(1)))
	if diff := cmp.Diff(without, a.StatusComment(1)); diff != "" {
		t.Errorf("the comment (-want +got):\n%s", diff)
	}
}
