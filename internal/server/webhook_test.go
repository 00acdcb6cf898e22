package server_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

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

func TestWebhookIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Gate()
	r.Start()
	n := r.Solve("A second line", "Please.")
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	// From here on, GitHub does not respond.
	r.World.Inject(fakegithub.Fault{Route: "* **", Times: -1, Latency: time.Hour})
	r.Writes(n, testrig.Writer, "/pawl solve also a third line")
	r.Must(r.World.WaitDelivered(t.Context()))
	d := r.delivered("issue_comment")
	if d.StatusCode != http.StatusOK {
		t.Errorf("the webhook was answered %d, want 200", d.StatusCode)
	}
	if d := r.DeliveryOf(d.GUID); d.State != thread.Received {
		t.Errorf("the delivery is %s, want it stored and not yet handled", d.State)
	}
	r.World.ClearFaults()
	r.Open()
}

func TestForeignWebhookAddressesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.World.SetHookRanges("192.30.252.0/22")
	r.More = `, hooks_from: github, proxies: ["127.0.0.0/8"]`
	r.Start()
	ping := func(from string) int {
		status, _ := r.Hook([]byte(`{"zen": "Keep it logically awesome."}`), map[string]string{"X-Forwarded-For": from})
		return status
	}
	r.Await("GitHub's ranges", func() bool { return ping("198.51.100.1") == http.StatusForbidden })
	if got := ping("192.30.252.9"); got != http.StatusOK {
		t.Errorf("from GitHub: %d, want 200", got)
	}
	// After a start while GitHub is down, the server still knows the ranges.
	r.Stop(syscall.SIGTERM)
	r.World.Inject(fakegithub.Fault{Route: "GET /meta", Status: http.StatusServiceUnavailable, Times: -1})
	r.Start()
	if got := ping("198.51.100.1"); got != http.StatusForbidden {
		t.Errorf("from elsewhere, after a start without GitHub: %d, want 403", got)
	}
}
