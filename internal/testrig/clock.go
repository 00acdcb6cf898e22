package testrig

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Clock is a clock that a test can move ahead. It also runs on its own, so that no two events share a time.
type Clock struct {
	Mu    sync.Mutex    // guards Ahead
	Ahead time.Duration // the lead over the machine's clock; Reach, Sleep and Pass increase it
}

func (c *Clock) Now() time.Time {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return time.Now().Add(c.Ahead)
}

// Reach moves the clock to just after t, unless it is already later.
func (c *Clock) Reach(t time.Time) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Ahead = max(c.Ahead, time.Until(t)+time.Second)
}

// Sleep moves the clock by d instead of waiting.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Ahead += d
	return context.Cause(ctx)
}

// Pass moves the clock by d. A server started afterwards immediately does the periodic work whose interval has passed:
// notifications, cleanup, missed deliveries.
func (c *Clock) Pass(d time.Duration) { c.Reach(c.Now().Add(d)) }

func (r *Rig) View(n int) checkrun.View {
	r.T.Helper()
	v, err := r.Node.View(r.T.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n})
	r.Must(err)
	return v
}

// Waits returns the waits in the thread's log, each measured from the end of the preceding attempt.
func (r *Rig) Waits(n int) []time.Duration {
	r.T.Helper()
	events, err := r.Node.Store().Events(r.T.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n}, 0)
	r.Must(err)
	var all []time.Duration
	var ended time.Time
	for _, e := range events {
		switch e.Kind {
		case thread.KindAttemptEnded:
			ended = e.At
		case thread.KindDecision:
			var d thread.Decided
			r.Must(json.Unmarshal(e.Data, &d))
			if d.Action == policy.DoWait {
				all = append(all, d.Until.Sub(ended))
			}
		}
	}
	return all
}

// Idle waits until nothing is due now and returns the thread.
func (r *Rig) Idle(n int) checkrun.View {
	r.T.Helper()
	var v checkrun.View
	r.Await("idleness", func() bool {
		ctx := r.T.Context()
		s, err := r.Node.Store().Stats(ctx)
		r.Must(err)
		v = r.View(n)
		return s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0 && v.State != checkrun.Running && v.State != ""
	})
	return v
}

// Sweep moves the clock by the sweep interval, five seconds, and makes the server look for due work.
func (r *Rig) Sweep() {
	r.T.Helper()
	r.Clock.Pass(queue.SweepInterval)
	r.Must(r.Node.Sweep(r.T.Context()))
}
