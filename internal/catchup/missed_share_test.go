package catchup

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/fakegithub"
)

// missMany makes Pawl miss n comments on one thread.
func (w *house) missMany(n int) {
	w.T.Helper()
	thread := w.Issue("Please.")
	w.Handle()
	w.GitHub.SetWebhookURL("")
	for i := range n {
		_, err := w.GitHub.Comment(houseRepo, thread.Number, "ada", fmt.Sprint("/pawl retry ", i))
		w.Must(err)
	}
	w.Must(w.GitHub.WaitDelivered(w.T.Context()))
	w.GitHub.SetWebhookURL(w.Hook)
	w.GitHub.ResetCalls()
}

// If GitHub's list breaks off, Pawl stores its beginning, and the rest once the list can be read.
func TestBrokenListKeepsItsDeliveries(t *testing.T) {
	w := newHouse(t)
	w.missMany(250)
	w.GitHub.Inject(fakegithub.Fault{Route: "GET /app/hook/deliveries", Status: 500, Skip: 1, Times: -1})
	c := w.watcher()
	m, err := c.Missed(t.Context())
	if err == nil || m.Taken < 90 {
		t.Errorf("took in %d, %v; want what the first page named, and an error", m.Taken, err)
	}
	w.GitHub.ClearFaults()
	w.missed(c, 250-m.Taken)
	if n := w.GitHub.Calls()[payloadRoute]; n != 250 {
		t.Errorf("%d payloads were fetched, want 250", n)
	}
}

// Three nodes start together, and only one looks: the others would find the same deliveries.
func TestOneNodeCatchesUp(t *testing.T) {
	w := newHouse(t)
	const missed, nodes = 300, 3
	w.missMany(missed)
	var wg sync.WaitGroup
	for n := range nodes {
		h := &handlers.Handlers{Store: w.h.Store, Forge: w.Client(), Solver: w.h.Solver, Now: w.h.Now, Log: w.h.Log}
		c := New(h, w.Store, w.duty(fmt.Sprint("node ", n)))
		c.bounds.quiet = 0 // nothing handles the stored deliveries
		wg.Go(func() { c.onDuty(t.Context()) })
	}
	wg.Wait()
	if n := w.GitHub.Calls()[payloadRoute]; n != missed {
		t.Errorf("%d payloads were fetched by %d nodes for %d missed deliveries", n, nodes, missed)
	}
	w.missed(w.watcher(), 0)
}

// Deliveries stored by the look itself must not postpone its reconciliation.
func TestReconciliationFollowsTheDeliveries(t *testing.T) {
	w := newHouse(t)
	thread := w.Issue("Please.")
	w.GitHub.Drop("issue_comment", 1)
	w.GitHub.Lose("issue_comment", 1)
	for _, text := range []string{"/pawl retry", "/pawl status"} {
		_, err := w.GitHub.Comment(houseRepo, thread.Number, "ada", text)
		w.Must(err)
	}
	c := New(w.h, &uneasy{Archive: w.Store, asked: w.Handle}, w.duty("node"))
	c.onDuty(t.Context())
	w.newRemarks(thread, "+ /pawl retry", "+ /pawl status")
}

// uneasy is an archive whose deliveries are handled right after each check for waiting ones.
type uneasy struct {
	Archive
	asked func()
}

func (u *uneasy) Untried(ctx context.Context) (int, error) {
	n, err := u.Archive.Untried(ctx)
	u.asked()
	return n, err
}
