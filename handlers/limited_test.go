package handlers

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver"
)

// Tried again before, it could only be refused again; by the growing pauses of
// other failures it would be tried long after.
func TestADeliveryThatGitHubsLimitHeldUpIsHandledWhenItEnds(t *testing.T) {
	w := newHouse(t)
	n, err := w.gh.OpenIssue(houseRepo, "ada", "A title", "Please.")
	w.must(err)
	w.handle()
	reset := w.now().Add(20 * time.Minute)
	w.gh.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/collaborators/{login}/permission", Status: http.StatusForbidden, Message: "API rate limit exceeded",
		Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {strconv.FormatInt(reset.Unix(), 10)}}})
	_, err = w.gh.Comment(houseRepo, n, "ada", "/pawl solve")
	w.must(err)
	w.must(w.gh.WaitDelivered(t.Context()))
	d := w.newest()
	if err := w.h.Deliver(t.Context(), d); err == nil {
		t.Error("the delivery was handled although GitHub refused to say what its sender may do")
	}
	due := func() bool {
		woken, err := w.store.Stale(t.Context(), w.now())
		w.must(err)
		return woken.Deliveries > 0
	}
	w.pass(15 * time.Minute)
	if due() {
		t.Error("it is tried again before GitHub wants to be asked")
	}
	w.pass(6 * time.Minute)
	if !due() {
		t.Error("it is not tried again when the limit has ended")
	}
	w.must(w.h.Deliver(t.Context(), w.newest()))
	if got := w.newest(); got.State != solver.Handled || len(w.judged(solver.Thread{Owner: "acme", Name: "widgets", Number: n})) != 1 {
		t.Errorf("after the limit the delivery is %+v", got)
	}
}

// newest is the delivery that came last, without its payload.
func (w *house) newest() solver.Delivery {
	w.t.Helper()
	list, err := w.store.Deliveries(w.t.Context(), 1)
	w.must(err)
	return list[0]
}
