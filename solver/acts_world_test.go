package solver_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// acts is the world for tests of the solver's acts on GitHub. It has a solver, the fake GitHub on the wire and an
// SQLite file, all in the test's process. There is no server and no queue. settle handles GitHub's deliveries, steps
// each due thread, and moves the clock to the next wake-up.
type acts struct {
	*testrig.Rig
	cfg    config.Server
	store  *store.Store
	forge  *forge.Client
	solver *solver.Solver
	read   int                        // deliveries that were handled
	before func(b thread.Batch) error // called before each batch is logged; nil for nothing
}

func newActs(t *testing.T, files map[string]string, change ...func(*fakegithub.Options)) *acts {
	t.Helper()
	clock := &testrig.Clock{}
	change = slices.DeleteFunc(change, func(f func(*fakegithub.Options)) bool { return f == nil })
	a := &acts{Rig: testrig.NewAt(t, files, clock.Now, change...)}
	a.Clock = clock
	return a
}

// begin creates the solver with the rig's current configuration.
func (a *acts) begin() {
	a.T.Helper()
	var err error
	a.cfg, err = config.Load(a.File(), os.LookupEnv)
	a.Must(err)
	a.Must(os.MkdirAll(a.cfg.DataDir, 0o700))
	a.forge, err = forge.New(forge.Config{
		WebURL:     a.cfg.GitHub.WebURL,
		APIURL:     a.cfg.GitHub.V3APIURL,
		AppID:      1,
		PrivateKey: a.World.PrivateKeyPEM(),
		UserAgent:  "pawl/test",
		Now:        a.Clock.Now,
		Sleep:      a.sleep,
		Log:        zerolog.Nop(),
	})
	a.Must(err)
	a.store, err = store.Open(a.T.Context(), "sqlite:"+filepath.Join(a.Dir, "pawl.db"), store.Options{Now: a.Clock.Now})
	a.Must(err)
	a.T.Cleanup(func() { a.store.Close() })
	a.solver = a.process("node-1")
}

// process returns a new solver, as after a restart.
func (a *acts) process(name string) *solver.Solver {
	a.T.Helper()
	box, err := sandbox.New(a.T.Context(), sandbox.None)
	a.Must(err)
	s := &solver.Solver{Host: solver.GitHub{Forge: a.forge}, Env: attempt.Env{
		Store:   watched{a.store, a},
		Config:  a.cfg,
		Sandbox: box,
		Node:    name,
		Now:     a.Clock.Now,
		Log:     zerolog.New(a.Log),
		Lookup:  os.LookupEnv,
	}}
	s.Env.UseLayers(attempt.LayersIn(a.cfg.DataDir))
	return s
}

// sleep moves the clock when the GitHub client waits between writes.
func (a *acts) sleep(ctx context.Context, d time.Duration) error {
	a.Clock.Reach(a.Clock.Now().Add(d))
	return ctx.Err()
}

// watched is a store that checks each batch before it is logged, and may refuse it.
type watched struct {
	thread.Store
	a *acts
}

func (w watched) AppendLeased(ctx context.Context, l thread.Lease, b thread.Batch) error {
	if w.a.before != nil {
		if err := w.a.before(b); err != nil {
			return err
		}
	}
	return w.Store.AppendLeased(ctx, l, b)
}

// during runs a function once in the next attempt: after the fetch, before its agent runs.
func (a *acts) during(happens func()) {
	a.before = func(b thread.Batch) error {
		if slices.ContainsFunc(b.Events, func(e thread.NewEvent) bool { return e.Kind == thread.KindAttemptStarted }) {
			a.before = nil
			happens()
		}
		return nil
	}
}

// deliver handles GitHub's deliveries since the last call. It reports whether there were any.
func (a *acts) deliver() bool {
	a.T.Helper()
	h := &handlers.Handlers{Store: a.store, Forge: a.forge, Solver: a.solver, Now: a.Clock.Now, Log: zerolog.New(a.Log)}
	news := a.World.Deliveries()[a.read:]
	for _, d := range news {
		a.read++
		// A review arrives in several parts, and a step would wait some seconds for the rest.
		if strings.HasPrefix(d.Event, "pull_request_review") {
			a.Clock.Reach(a.Clock.Now().Add(4 * time.Second))
		}
		stored := thread.Delivery{GUID: d.GUID, Event: d.Event, Payload: d.Payload, ReceivedAt: a.Clock.Now(), State: thread.Received}
		_, err := a.store.Receive(a.T.Context(), stored)
		a.Must(err)
		a.Must(h.Deliver(a.T.Context(), stored))
	}
	return len(news) > 0
}

// patience limits how far settle moves the clock.
const patience = 2 * time.Minute

// settle works until nothing is due now or within patience. It then ends the current second, because GitHub's times
// are whole seconds.
func (a *acts) settle() {
	a.T.Helper()
	if a.solver == nil {
		a.begin()
	}
	for end := a.Clock.Now().Add(patience); a.turn(end); {
	}
	a.Clock.Reach(a.Clock.Now().Add(time.Second))
}

// turn handles GitHub's deliveries, steps due threads, or moves the clock to the next wake-up before a time. It
// returns false if there was nothing to do.
func (a *acts) turn(end time.Time) bool {
	a.T.Helper()
	if a.deliver() {
		return true
	}
	leases, err := a.store.Claim(a.T.Context(), "node-1", 1)
	a.Must(err)
	for _, l := range leases {
		a.Must(a.solver.Work(a.T.Context(), l, time.Now()))
	}
	if len(leases) > 0 {
		return true
	}
	var wake sql.NullInt64
	a.Must(a.store.DB().QueryRow("SELECT min(wake_at) FROM threads WHERE wake_at > 0").Scan(&wake))
	next := time.UnixMicro(wake.Int64)
	if !wake.Valid || next.After(end) {
		return false
	}
	a.Clock.Reach(next)
	return true
}

// pass moves the clock while Pawl works.
func (a *acts) pass(d time.Duration) {
	a.T.Helper()
	end := a.Clock.Now().Add(d)
	for a.turn(end) {
	}
	a.Clock.Reach(end)
	a.settle()
}

// comments posts a comment and lets Pawl work.
func (a *acts) comments(n int, who, words string) {
	a.T.Helper()
	a.Writes(n, who, words)
	a.settle()
}

// solve opens the writer's issue, requests it, and lets Pawl work.
func (a *acts) solve(title, body string) int {
	a.T.Helper()
	n := a.Solve(title, body)
	a.settle()
	return n
}

func widgets(n int) thread.ID { return thread.ID{Owner: "acme", Name: "widgets", Number: n} }

func (a *acts) state(n int) thread.State {
	a.T.Helper()
	_, s, err := thread.Load(a.T.Context(), a.store, widgets(n))
	a.Must(err)
	return s
}
