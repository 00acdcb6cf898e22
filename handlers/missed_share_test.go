package handlers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
)

// missMany lets so many comments be missed on one thread.
func (w *house) missMany(n int) {
	w.t.Helper()
	thread := w.issue("Please.")
	w.handle()
	w.gh.SetWebhookURL("")
	for i := range n {
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", fmt.Sprint("/pawl retry ", i))
		w.must(err)
	}
	w.must(w.gh.WaitDelivered(w.t.Context()))
	w.gh.SetWebhookURL(w.hook)
	w.gh.ResetCalls()
}

// Of a long list whose end GitHub does not give, the beginning is taken in, and
// the rest when the list can be read.
func TestAListThatBreaksOffLosesNothingThatItNamed(t *testing.T) {
	w := newHouse(t)
	w.missMany(250)
	w.gh.Inject(fakegithub.Fault{Route: "GET /app/hook/deliveries", Status: 500, Skip: 1, Times: -1})
	c := NewCatchUp(w.h, w.store)
	m, err := c.Missed(t.Context())
	if err == nil || m.Taken < 90 {
		t.Errorf("took in %d, %v; want what the first page named, and an error", m.Taken, err)
	}
	w.gh.ClearFaults()
	w.missed(c, 250-m.Taken)
	if n := w.gh.Calls()[payloadRoute]; n != 250 {
		t.Errorf("%d payloads were fetched, want 250", n)
	}
}

// Three nodes that begin together at the same list share the work: before, each
// fetched every payload.
func TestNodesThatCatchUpTogetherShareThePayloads(t *testing.T) {
	w := newHouse(t)
	const missed, nodes = 300, 3
	w.missMany(missed)
	var wg sync.WaitGroup
	for range nodes {
		client, err := forge.New(forge.Config{
			WebURL: w.gh.WebURL(), APIURL: w.gh.APIURL(), AppID: 1, PrivateKey: w.gh.PrivateKeyPEM(), Now: w.now,
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		})
		w.must(err)
		h := &Handlers{Store: w.h.Store, Forge: client, Solver: w.h.Solver, Now: w.h.Now, Log: w.h.Log, Trace: w.h.Trace}
		wg.Go(func() {
			if _, err := NewCatchUp(h, w.store).Missed(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := w.gh.Calls()[payloadRoute]
	t.Logf("%d payloads fetched by %d nodes for %d deliveries", n, nodes, missed)
	if n > missed*3/2 {
		t.Errorf("%d payloads were fetched by %d nodes for %d missed deliveries", n, nodes, missed)
	}
	w.missed(NewCatchUp(w.h, w.store), 0)
}

// What the look itself took in must not put the reconciliation off until the next.
func TestTheReconciliationFollowsTheDeliveriesInTheSameLook(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	w.gh.Drop("issue_comment", 1)
	w.gh.Lose("issue_comment", 1)
	for _, text := range []string{"/pawl retry", "/pawl status"} {
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", text)
		w.must(err)
	}
	c := NewCatchUp(w.h, &uneasy{Archive: w.store, asked: w.handle})
	c.pass(t.Context())
	w.newRemarks(thread, "+ /pawl retry", "+ /pawl status")
}

// uneasy is an archive whose deliveries are handled just after somebody asked
// whether they are.
type uneasy struct {
	Archive
	asked func()
}

func (u *uneasy) Unhandled(ctx context.Context) (int, error) {
	n, err := u.Archive.Unhandled(ctx)
	u.asked()
	return n, err
}
