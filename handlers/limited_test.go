package handlers

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

// An earlier retry would be refused again. The growing pauses of other failures would be too long.
func TestRateLimitedDeliveryIsHandledLater(t *testing.T) {
	w := newRig(t)
	issue := w.Opened("Please.")
	reset := w.Now().Add(20 * time.Minute)
	w.GitHub.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/collaborators/{login}/permission", Status: http.StatusForbidden, Message: "API rate limit exceeded",
		Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {strconv.FormatInt(reset.Unix(), 10)}}})
	w.Must(w.comments(issue.Number, "ada", "/pawl solve")())
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	d := w.newest()
	if err := w.h.Deliver(t.Context(), d); err == nil {
		t.Error("the delivery was handled although GitHub refused to report its sender's permission")
	}
	due := func() bool {
		claimed, err := w.Store.ClaimDeliveries(t.Context(), 1)
		w.Must(err)
		return len(claimed) > 0
	}
	w.Pass(15 * time.Minute)
	if due() {
		t.Error("the delivery is due before GitHub's limit ends")
	}
	w.Pass(6 * time.Minute)
	if !due() {
		t.Error("the delivery is not due after the limit has ended")
	}
	w.Must(w.h.Deliver(t.Context(), w.newest()))
	if got := w.newest(); got.State != thread.Handled || len(w.Judged(issue)) != 1 {
		t.Errorf("after the limit the delivery is %+v", got)
	}
}

// newest returns the last delivery without its payload.
func (w *rig) newest() thread.Delivery {
	w.T.Helper()
	list, err := w.Store.Deliveries(w.T.Context(), 1)
	w.Must(err)
	return list[0]
}
