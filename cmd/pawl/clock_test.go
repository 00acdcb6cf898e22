package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/server"
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

// paced is a rig whose clocks, GitHub's and the server's, move on by a minute, then two,
// and so on: whoever speaks after each call of later does not speak at a program's pace.
func paced(t *testing.T) (r *rig, start, later func()) {
	t.Helper()
	r = newRig(t, nil)
	var pause time.Duration
	return r, func() { r.startTimed() }, func() {
		pause += time.Minute
		r.clock.reach(r.clock.now().Add(pause))
	}
}

// timed is a server in this process whose time the test owns, with GitHub's.
type timed struct {
	*rig
	clock *clock
	node  *server.Server
}

// startTimed runs the server of the rig in this process.
func (r *rig) startTimed() *timed {
	r.t.Helper()
	cfg, err := config.Load(r.file(), os.LookupEnv)
	r.must(err)
	m := &timed{rig: r, clock: r.clock}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	m.node = server.New(cfg, server.Deps{Now: m.clock.now, Log: zerolog.New(r.log), Build: buildInfo()})
	served, err := m.node.Start(ctx)
	r.must(err)
	r.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Error(err)
		}
		if r.t.Failed() {
			r.t.Logf("log of the server:\n%s", r.log)
		}
	})
	r.addr, r.pages = m.node.Address(), m.node.PagesAddress()
	r.world.SetWebhookURL(r.url("/api/github/hook"))
	return m
}

// view is the thread as its comments and pages show it.
func (m *timed) view(n int) checkrun.View {
	m.t.Helper()
	v, err := m.node.View(m.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n})
	m.must(err)
	return v
}

// waits are those that the thread's log holds, each from the end of the attempt
// before it.
func (m *timed) waits(n int) []time.Duration {
	m.t.Helper()
	events, err := m.node.Store().Events(m.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n}, 0)
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
func (m *timed) idle(n int) checkrun.View {
	m.t.Helper()
	var v checkrun.View
	m.await("idleness", func() bool {
		ctx := m.t.Context()
		s, err := m.node.Store().Stats(ctx)
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
	m.must(m.node.Sweep(m.t.Context()))
}
