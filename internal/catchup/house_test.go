package catchup

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/handlers/handlerstest"
	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

const houseRepo = handlerstest.Repo

// house connects the real ingress, handlers and SQLite store to a fake GitHub.
type house struct {
	*handlerstest.World
	h *handlers.Handlers
}

func newHouse(t *testing.T) *house {
	t.Helper()
	w := &house{World: handlerstest.New(t)}
	w.h = &handlers.Handlers{Store: w.Store, Forge: w.Forge, Now: w.Now, Solver: &solver.Solver{Env: attempt.Env{Store: w.Store, Now: w.Now}}}
	w.Deliver = w.h.Deliver
	w.serve(handlerstest.Secret)
	w.Install()
	return w
}

// serve handles webhooks signed with a secret.
func (w *house) serve(secret string) {
	w.T.Helper()
	in, err := handlers.NewIngress([]string{secret}, w.h.EventHandlers(), w.Store, w.Now, zerolog.Nop())
	w.Must(err)
	w.Serve(in)
}

// duty returns a node's side of the duty to catch up.
func (w *house) duty(node string) *cluster.Duty {
	return cluster.NewDuty(w.Store, "catch-up", node, 5*time.Minute)
}

func (w *house) watcher() *Watcher { return New(w.h, w.Store, w.duty("node")) }

// missed looks once and checks the number of stored deliveries.
func (w *house) missed(c *Watcher, want int) {
	w.T.Helper()
	m, err := c.Missed(w.T.Context())
	w.Must(err)
	if m.Taken != want {
		w.T.Errorf("took in %d missed deliveries of %d listed, want %d", m.Taken, m.Listed, want)
	}
}

// reconciled looks once and checks the number of found events.
func (w *house) reconciled(c *Watcher, want int) {
	w.T.Helper()
	n, err := c.Reconcile(w.T.Context())
	w.Must(err)
	if n != want {
		w.T.Errorf("found %d events, want %d", n, want)
	}
}

// newRemarks checks the remarks on a thread after the first one, which made Pawl track the thread.
func (w *house) newRemarks(t thread.ID, want ...string) {
	w.T.Helper()
	got := w.Judged(t)[1:]
	if diff := cmp.Diff(want, slices.Clip(got)); diff != "" {
		w.T.Errorf("judged (-want +got)\n%s", diff)
	}
}
