package main

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
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
	return r, r.start, func() {
		pause += time.Minute
		r.clock.reach(r.clock.now().Add(pause))
	}
}

// view is the thread as its comments and pages show it.
func (r *rig) view(n int) checkrun.View {
	r.t.Helper()
	v, err := r.node.View(r.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n})
	r.must(err)
	return v
}

// waits are those that the thread's log holds, each from the end of the attempt
// before it.
func (r *rig) waits(n int) []time.Duration {
	r.t.Helper()
	events, err := r.node.Store().Events(r.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n}, 0)
	r.must(err)
	var all []time.Duration
	var ended time.Time
	for _, e := range events {
		switch e.Kind {
		case thread.KindAttemptEnded:
			ended = e.At
		case thread.KindDecision:
			var d thread.Decided
			r.must(json.Unmarshal(e.Data, &d))
			if d.Action == policy.DoWait {
				all = append(all, d.Until.Sub(ended))
			}
		}
	}
	return all
}

// idle waits until nothing is to be done for the thread at this time, and
// returns how it stands then.
func (r *rig) idle(n int) checkrun.View {
	r.t.Helper()
	var v checkrun.View
	r.await("idleness", func() bool {
		ctx := r.t.Context()
		s, err := r.node.Store().Stats(ctx)
		r.must(err)
		v = r.view(n)
		return s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0 && v.State != checkrun.Running && v.State != ""
	})
	return v
}

// sweep has the server look for what is due, as it does every few seconds.
func (r *rig) sweep() {
	r.t.Helper()
	r.clock.reach(r.clock.now().Add(5 * time.Second))
	r.must(r.node.Sweep(r.t.Context()))
}
