package testrig

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Clock is a time that a test moves. It also runs, as things that happen one
// after the other must not happen at the same time.
type Clock struct {
	Mu    sync.Mutex
	Ahead time.Duration
}

func (c *Clock) Now() time.Time {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return time.Now().Add(c.Ahead)
}

// Reach moves the clock to just after a time, if it is not there yet.
func (c *Clock) Reach(t time.Time) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Ahead = max(c.Ahead, time.Until(t)+time.Second)
}

// View is the thread as its comments and pages show it.
func (r *Rig) View(n int) checkrun.View {
	r.T.Helper()
	v, err := r.Node.View(r.T.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n})
	r.Must(err)
	return v
}

// Waits are those that the thread's log holds, each from the end of the attempt
// before it.
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

// Idle waits until nothing is to be done for the thread at this time, and
// returns how it stands then.
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

// Sweep has the server look for what is due, as it does every few seconds.
func (r *Rig) Sweep() {
	r.T.Helper()
	r.Clock.Reach(r.Clock.Now().Add(5 * time.Second))
	r.Must(r.Node.Sweep(r.T.Context()))
}
