package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// clock is a time that a test moves. It also runs, as things that happen one
// after the other must not happen at the same time.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// reach moves the clock to just after a time, if it is not there yet.
func (c *clock) reach(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = max(c.ahead, time.Until(t)+time.Second)
}

// timed is a server in this process whose time the test owns.
type timed struct {
	*rig
	clock *clock
	node  *node
}

// startTimed runs the server of the rig in this process.
func (r *rig) startTimed() *timed {
	r.t.Helper()
	cfg, err := config.Load(r.file(), os.LookupEnv)
	r.must(err)
	m := &timed{rig: r, clock: &clock{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	m.node, err = startNode(ctx, cfg, m.clock.now, zerolog.New(r.log))
	r.must(err)
	served := make(chan error, 1)
	go func() { served <- m.node.serve(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Error(err)
		}
		if r.t.Failed() {
			r.t.Logf("log of the server:\n%s", r.log)
		}
	})
	r.addr = m.node.listener.Addr().String()
	r.world.SetWebhookURL(r.url("/api/github/hook"))
	return m
}

// view is the thread as its comments and pages show it.
func (m *timed) view(n int) checkrun.Facts {
	m.t.Helper()
	v, err := m.node.solver.View(m.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n})
	m.must(err)
	return v
}

// waits are those that the thread's log holds, each from the end of the attempt
// before it.
func (m *timed) waits(n int) []time.Duration {
	m.t.Helper()
	events, err := m.node.store.Events(m.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n}, 0)
	m.must(err)
	var all []time.Duration
	var ended time.Time
	for _, e := range events {
		switch e.Kind {
		case thread.KindAttemptEnded:
			ended = e.At
		case thread.KindDecision:
			var d thread.Decided
			m.must(json.Unmarshal(e.Data, &d))
			if d.Action == policy.DoWait {
				all = append(all, d.Until.Sub(ended))
			}
		}
	}
	return all
}

// idle waits until nothing is to be done for the thread at this time, and
// returns how it stands then.
func (m *timed) idle(n int) checkrun.Facts {
	m.t.Helper()
	var v checkrun.Facts
	m.await("idleness", func() bool {
		ctx := m.t.Context()
		s, err := m.node.store.Stats(ctx)
		m.must(err)
		v = m.view(n)
		return s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0 && v.State != checkrun.Running && v.State != ""
	})
	return v
}

// sweep has the server look for what is due, as it does every few seconds.
func (m *timed) sweep() {
	m.t.Helper()
	m.clock.reach(m.clock.now().Add(5 * time.Second))
	_, err := m.node.store.Sweep(m.t.Context(), m.clock.now())
	m.must(err)
	m.node.queue.Committed(true, nil)
}

// has reports whether the agent left a file of that name in $CTRL.
func (r *rig) has(name string) bool {
	_, err := os.Stat(filepath.Join(r.ctrl(), name))
	return err == nil
}

// touch makes a file in $CTRL, which the agent may wait for.
func (r *rig) touch(name string) {
	r.t.Helper()
	r.must(os.MkdirAll(r.ctrl(), 0o700))
	r.must(os.WriteFile(filepath.Join(r.ctrl(), name), nil, 0o600))
}

// left returns what the agent wrote into a file in $CTRL.
func (r *rig) left(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.ctrl(), name))
	r.must(err)
	return string(b)
}

// opened gives the server's database, open for reading beside it, to f.
func (r *rig) opened(f func(*store.Store)) {
	r.t.Helper()
	db, err := store.OpenReadOnly(r.t.Context(), "sqlite:"+filepath.Join(r.dir, "pawl.db"), store.Options{})
	r.must(err)
	defer db.Close()
	f(db)
}

// fold is the fold of a thread's log.
func (r *rig) fold(n int) (s thread.State) {
	r.t.Helper()
	r.opened(func(db *store.Store) {
		events, err := db.Events(r.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n}, 0)
		r.must(err)
		s, err = thread.Fold(events)
		r.must(err)
	})
	return s
}

// taken waits until all deliveries are handled, steps or not.
func (r *rig) taken() {
	r.t.Helper()
	r.await("the deliveries to be handled", func() bool { return r.counted(false) })
}

// quiet waits until the server has nothing left to do, also about what its own
// acts made GitHub deliver.
func (r *rig) quiet() {
	r.t.Helper()
	before := -1
	r.await("the server to rest", func() bool {
		rests := r.counted(true) && len(r.world.Deliveries()) == before
		before = len(r.world.Deliveries())
		return rests
	})
}

// counted reports whether no delivery, and with steps no step, is left.
func (r *rig) counted(steps bool) (none bool) {
	r.t.Helper()
	r.must(r.world.WaitDelivered(r.t.Context()))
	r.opened(func(db *store.Store) {
		s, err := db.Stats(r.t.Context())
		r.must(err)
		none = s.Deliveries[thread.Received] == 0 && (!steps || s.Queued == 0 && s.Running == 0)
	})
	return none
}

// ending waits until a thread's run has ended and the server rests, and returns
// how it ended.
func (r *rig) ending(n int) threadStatus {
	r.t.Helper()
	r.over(threadName(n))
	r.quiet()
	return r.over(threadName(n))
}
