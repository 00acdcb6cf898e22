package handlers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

const createCheck = "POST /repos/{owner}/{repo}/check-runs"

// configPushes returns deliveries of one push that changes the repository's configuration.
func (w *rig) configPushes(times int) (all []thread.Delivery) {
	w.T.Helper()
	w.GitHub.SetWebhookURL("")
	_, err := w.GitHub.PushCommit(w.T.Context(), testRepo, "ada", fakegithub.Commit{Branch: "topic", Message: "A file", Files: map[string]string{config.RepoFile: "verify: [make]\n"}})
	w.Must(err)
	w.Must(w.GitHub.WaitDelivered(w.T.Context()))
	w.GitHub.SetWebhookURL(w.Hook)
	for _, d := range w.GitHub.Deliveries() {
		for range times {
			if d.Event == "push" && strings.Contains(string(d.Payload), config.RepoFile) {
				w.GitHub.Send("push", d.Payload)
			}
		}
	}
	w.Must(w.GitHub.WaitDelivered(w.T.Context()))
	list, err := w.Store.Deliveries(w.T.Context(), 5000)
	w.Must(err)
	for _, d := range list {
		if d.State != thread.Handled {
			all = append(all, d)
		}
	}
	if len(all) != times {
		w.T.Fatalf("%d deliveries wait, want %d", len(all), times)
	}
	return all
}

func (w *rig) configChecks() (n int) {
	for _, c := range w.GitHub.CheckRuns(testRepo) {
		if c.Name == checkrun.NameConfig {
			n++
		}
	}
	return n
}

// Another node handles the same commit while the first node's request is in flight and GitHub has no check run yet.
func TestConcurrentDeliveriesMakeOneCheckRun(t *testing.T) {
	w := newRig(t)
	pushes := w.configPushes(3)
	other := *w.h
	other.Forge = w.Client()
	w.GitHub.Inject(fakegithub.Fault{Route: createCheck, Answer: func(rw http.ResponseWriter, r *http.Request, github http.Handler) {
		if err := other.Deliver(t.Context(), pushes[1]); err != nil {
			t.Error(err)
		}
		github.ServeHTTP(rw, r)
	}})
	w.Must(w.h.Deliver(t.Context(), pushes[0]))
	w.Must(other.Deliver(t.Context(), pushes[2]))
	if n := w.configChecks(); n != 1 {
		t.Errorf("%d check runs, want 1", n)
	}
	for i, want := range []string{"has no error", "another delivery creates", "exists"} {
		if d, err := w.Store.Delivery(t.Context(), pushes[i].GUID); err != nil || d.State != thread.Handled || !strings.Contains(d.Note, want) {
			t.Errorf("delivery %d: %s, %q, %v; want %q", i, d.State, d.Note, err, want)
		}
	}
}

// The delivery that claimed the check run creates it when it is retried, even if the answer was lost.
func TestFailedDeliveryMakesItsCheckRunLater(t *testing.T) {
	for name, fault := range map[string]fakegithub.Fault{
		"refused": {Status: http.StatusBadGateway}, "lost": {AbortAfter: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRig(t)
			pushes := w.configPushes(2)
			fault.Route, fault.Times = createCheck, -1
			w.GitHub.Inject(fault)
			if err := w.h.Deliver(t.Context(), pushes[0]); err == nil && name == "refused" {
				t.Error("the delivery succeeded although GitHub refused the check run")
			}
			w.Must(w.h.Deliver(t.Context(), pushes[1]))
			w.GitHub.ClearFaults()
			w.Must(w.h.Deliver(t.Context(), pushes[0]))
			if n := w.configChecks(); n != 1 {
				t.Errorf("%d check runs, want 1", n)
			}
		})
	}
}
