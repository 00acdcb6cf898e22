package handlers

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/solver/thread"
)

func TestDamagedThreadsDeliveryIsHandledOnce(t *testing.T) {
	w := newRig(t)
	n, err := w.GitHub.OpenIssue(testRepo, "ada", "A title", "/pawl solve")
	w.Must(err)
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	w.Must(w.Deliver(t.Context(), w.newest()))
	_, err = w.Store.DB().ExecContext(t.Context(), "UPDATE events SET data = 'x' WHERE kind = 'feedback'")
	w.Must(err)
	leases, err := w.Store.Claim(t.Context(), "node-1", 1)
	w.Must(err)
	w.Must(w.Store.Release(t.Context(), leases[0], nil))
	_, err = w.GitHub.Comment(testRepo, n, "ada", "/pawl retry")
	w.Must(err)
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	w.Must(w.Deliver(t.Context(), w.newest()))
	if d := w.newest(); d.State != thread.Handled || !strings.Contains(d.Note, "the log is damaged") {
		t.Errorf("the delivery is %s (%s), want handled, with the damage", d.State, d.Note)
	}
	again, err := w.Store.Claim(t.Context(), "node-1", 1)
	w.Must(err)
	if len(again) == 0 {
		t.Error("no step reports the damage")
	}
}
