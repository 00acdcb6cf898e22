package solver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// waiting is an agent whose first attempt leaves a file and waits to be ended.
const waiting = `if [ ! -f "$CTRL/begun" ]; then echo half > half.txt; touch "$CTRL/begun"; exec sleep 600; fi
cat > "$CTRL/prompt"; head -c 90 /dev/urandom | base64 > more.txt; echo "I added more.txt."
`

// handOver stops the server during the next step, which begins an attempt on the thread. Another server then has the
// handed-over attempt. stops is called with each logged batch and with the function that stops the server.
func (a *acts) handOver(n int, stops func(b thread.Batch, stop func())) {
	a.T.Helper()
	ctx, cancel := context.WithCancel(a.T.Context())
	a.solver.Env.Stopping = make(chan struct{})
	stopped := false
	a.before = func(b thread.Batch) error {
		stops(b, func() {
			if !stopped {
				close(a.solver.Env.Stopping)
			}
			stopped = true
			cancel()
		})
		return nil
	}
	if err := a.solver.Step(ctx, widgets(n)); !errors.Is(err, context.Canceled) {
		a.T.Logf("the step ended with %v", err)
	}
	a.before = nil
	if a.state(n).Unfinished == nil {
		a.T.Fatal("nothing was handed over")
	}
	a.Clock.Reach(a.Clock.Now().Add(thread.LeaseTime + time.Second))
	a.solver = a.process("node-2")
}

// A round that was handed over must not restore commits that a user removed meanwhile.
func TestHandedOverRoundRestoresNothing(t *testing.T) {
	logs := func(b thread.Batch, kind thread.Kind, key string) bool {
		return slices.ContainsFunc(b.Events, func(e thread.NewEvent) bool {
			act, _ := e.Data.(thread.Act)
			return e.Kind == kind && strings.HasPrefix(act.Key, key)
		})
	}
	beforeThePush := func(*acts) func(thread.Batch, func()) {
		return func(b thread.Batch, stop func()) {
			if logs(b, thread.KindActStarted, "push:feature") {
				stop()
			}
		}
	}
	for name, c := range map[string]struct {
		agent   string
		stops   func(a *acts) func(b thread.Batch, stop func())
		webhook bool // the push's webhook arrives before the other server begins
		rule    policy.Rule
	}{
		"with its receipt":                    {mending, beforeThePush, false, policy.RuleMoved},
		"with its receipt, after the webhook": {mending, beforeThePush, true, policy.RuleMoved},
		"with its files":                      {waiting, stopsOnce, false, policy.RuleMoved},
		"with its files, after the webhook":   {waiting, stopsOnce, true, policy.RuleNothingLeft},
	} {
		t.Run(name, func(t *testing.T) {
			a, n := newWatched(t, c.agent)
			a.green(n, "unit")
			first := a.Head(n)
			removed := a.Push("feature", "a mistake", "m.txt", "m\n")
			a.comments(n, testrig.Writer, "/pawl watch")
			a.ends(a.Head(n), "unit", "failure", job("go test ./...", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/x\t0.003s"))
			a.deliverAll()
			a.Clock.Reach(a.Clock.Now().Add(time.Minute))
			a.handOver(n, c.stops(a))
			a.Must(a.World.ResetBranch(t.Context(), testrig.Repo, testrig.Writer, "feature", first))
			if c.webhook {
				a.deliverAll()
			}
			a.Clock.Reach(a.Clock.Now().Add(time.Minute))
			a.Must(a.solver.Step(t.Context(), widgets(n)))
			a.settle()
			if a.Head(n) != first {
				t.Errorf("the head is %s, want the user's %s; log:\n%s", a.Head(n), first, a.Git("log", "--oneline", "feature"))
			}
			if s := a.state(n); s.Decision.Rule != c.rule || s.Unfinished != nil || a.Calls() != 1 {
				t.Errorf("%d attempts, unfinished %+v; the decision is %+v", a.Calls(), s.Unfinished, s.Decision)
			}
			a.red(n, "unit", "TestB")
			a.pass(70 * time.Minute)
			log := a.Git("log", "--format=%H", "feature")
			if a.Calls() != 2 || strings.Contains(log, removed) || a.Head(n) == first {
				t.Errorf("%d attempts; the branch has\n%s", a.Calls(), a.Git("log", "--oneline", "feature"))
			}
		})
	}
}

// stopsOnce stops the server once the waiting agent has left its file.
func stopsOnce(a *acts) func(b thread.Batch, stop func()) {
	return func(b thread.Batch, stop func()) {
		begins := func(e thread.NewEvent) bool { return e.Kind == thread.KindAttemptStarted }
		if !slices.ContainsFunc(b.Events, begins) {
			return
		}
		go func() {
			for {
				if _, err := os.Stat(filepath.Join(a.Ctrl(), "begun")); err == nil {
					stop()
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
}
