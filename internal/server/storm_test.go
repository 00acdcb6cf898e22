package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// stormSize is the number of events that the issue of durability names for a
// minute.
const stormSize = 10_000

// TestTenThousandEventsAreAllTakenInAndOneOrderAmongThemIsObeyed sends remarks of
// a reader as fast as the server takes them, each under a GUID of its own, and in
// their midst the order of somebody who may write.
func TestTenThousandEventsAreAllTakenInAndOneOrderAmongThemIsObeyed(t *testing.T) {
	t.Parallel()
	needs.All(t, "ten thousand webhooks")
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A second line", "Please.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Reader, "What a nice day it is")
	r.Must(err)
	r.Settle()
	remark := r.delivered("issue_comment")
	asked := len(r.World.Requests())

	began := time.Now()
	var sent atomic.Int64
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for {
				i := sent.Add(1)
				if i > stormSize {
					return
				}
				// Each is a remark of its own, with an id that no other has.
				body := bytes.Replace(remark.Payload, []byte(`"comment":{"id":`), fmt.Appendf(nil, `"comment":{"id":%d`, i), 1)
				guid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
				if status, _ := r.Hook(body, map[string]string{"X-GitHub-Event": "issue_comment", "X-GitHub-Delivery": guid}); status/100 != 2 {
					refused.Add(1)
				}
				if i == stormSize/2 {
					if _, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	answered := time.Since(began)
	if got := refused.Load(); got != 0 {
		t.Errorf("%d of %d webhooks were refused", got, stormSize)
	}
	if s := r.Over(testrig.ThreadName(n)); s.State != "done" || r.Calls() != 1 {
		t.Errorf("%s (%s %q) after %d calls, want done after 1", s.State, s.Rule, s.Reasons, r.Calls())
	}
	r.Settle()
	t.Logf("%d webhooks were answered within %s (%.0f a minute), and all handled within %s", stormSize, answered.Round(time.Second),
		stormSize/answered.Minutes(), time.Since(began).Round(time.Second))
	if s := r.Stats(); s.Deliveries[thread.Handled] < stormSize || s.Deliveries[thread.Failed]+s.Deliveries[thread.Unparsable]+s.Deliveries[thread.Received] != 0 {
		t.Errorf("deliveries %v, want at least %d handled and no other", s.Deliveries, stormSize)
	}
	if len(r.State(n).Feedback) != 1 {
		t.Errorf("%d remarks were accepted, want 1", len(r.State(n).Feedback))
	}
	if calls := len(r.World.Requests()) - asked; calls > 100 {
		t.Errorf("%d requests to GitHub for %d events that ask for nothing, want those of one run", calls, stormSize)
	}
	if code, _ := r.Get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d after the storm", code)
	}
}
