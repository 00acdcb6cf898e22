package server_test

import (
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// again sends what GitHub delivered last under an event once more, with the same
// GUID.
func (r *rig) again(d fakegithub.Delivery) int {
	r.T.Helper()
	status, _ := r.Hook(d.Payload, map[string]string{"X-GitHub-Event": d.Event, "X-GitHub-Delivery": d.GUID})
	return status
}

// delivered returns the newest delivery of an event.
func (r *rig) delivered(event string) fakegithub.Delivery {
	r.T.Helper()
	var found fakegithub.Delivery
	for _, d := range r.World.Deliveries() {
		if d.Event == event {
			found = d
		}
	}
	if found.GUID == "" {
		r.T.Fatalf("GitHub delivered no %s", event)
	}
	return found
}

func TestARepeatedDeliveryHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	command := r.delivered("issue_comment")
	for _, d := range r.World.Deliveries() {
		if d.Event == "issue_comment" && strings.Contains(string(d.Payload), "/pawl solve") {
			command = d
		}
	}
	before := r.Thread(testrig.ThreadName(n))
	if got := r.again(command); got != http.StatusOK {
		t.Errorf("a repeated GUID was answered %d, want 200", got)
	}
	r.Settle()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.Start()
	if got := r.again(command); got != http.StatusOK {
		t.Errorf("a repeated GUID was answered %d after a restart, want 200", got)
	}
	r.Settle()
	if got := r.Thread(testrig.ThreadName(n)); r.Calls() != 1 || got.Run != before.Run {
		t.Errorf("%d calls of the agent in run %d, want 1 in run %d", r.Calls(), got.Run, before.Run)
	}
}

func TestAWebhookWaitsNeitherForGitHubNorForAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Gate()
	r.Start()
	n := r.Solve("A second line", "Please.")
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	// From here on GitHub answers nothing.
	r.World.Inject(fakegithub.Fault{Route: "* **", Times: -1, Latency: time.Hour})
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve also a third line")
	r.Must(err)
	r.Must(r.World.WaitDelivered(t.Context()))
	if d := r.delivered("issue_comment"); d.StatusCode != http.StatusOK {
		t.Errorf("the webhook was answered %d, want 200", d.StatusCode)
	}
	if d := r.DeliveryOf(r.delivered("issue_comment").GUID); d.State != thread.Received {
		t.Errorf("the delivery is %s, want it stored and not yet handled", d.State)
	}
	r.World.ClearFaults()
}

func TestFiftyDeliveriesUnderOneGUIDAreOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A second line", "Please.")
	r.Must(err)
	r.World.Hold()
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
	r.Must(err)
	command := r.World.Held()[0]
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := r.again(command); got != http.StatusOK {
				t.Errorf("answered %d, want 200", got)
			}
		})
	}
	wg.Wait()
	r.World.Release()
	r.Over(testrig.ThreadName(n))
	r.Settle()
	if s := r.State(n); r.Calls() != 1 || len(s.Feedback) != 1 {
		t.Errorf("%d calls of the agent and %d remarks, want 1 and 1", r.Calls(), len(s.Feedback))
	}
}
