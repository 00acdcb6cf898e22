package main

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/needs"
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
	r.agent(plainAgent, "")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "A second line", "Please.")
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, reader, "What a nice day it is")
	r.must(err)
	r.settle()
	remark := r.delivered("issue_comment")
	asked := len(r.world.Requests())

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
				if status, _ := r.hook(body, map[string]string{"X-GitHub-Event": "issue_comment", "X-GitHub-Delivery": guid}); status/100 != 2 {
					refused.Add(1)
				}
				if i == stormSize/2 {
					if _, err := r.world.Comment(rigRepo, n, writer, "/pawl solve"); err != nil {
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
	if s := r.over(threadName(n)); s.State != "done" || r.calls() != 1 {
		t.Errorf("%s (%s %q) after %d calls, want done after 1", s.State, s.Rule, s.Reasons, r.calls())
	}
	r.settle()
	t.Logf("%d webhooks were answered within %s (%.0f a minute), and all handled within %s", stormSize, answered.Round(time.Second),
		stormSize/answered.Minutes(), time.Since(began).Round(time.Second))
	if s := r.stats(); s.Deliveries[thread.Handled] < stormSize || s.Deliveries[thread.Failed]+s.Deliveries[thread.Unparsable]+s.Deliveries[thread.Received] != 0 {
		t.Errorf("deliveries %v, want at least %d handled and no other", s.Deliveries, stormSize)
	}
	if len(r.state(n).Feedback) != 1 {
		t.Errorf("%d remarks were accepted, want 1", len(r.state(n).Feedback))
	}
	if calls := len(r.world.Requests()) - asked; calls > 100 {
		t.Errorf("%d requests to GitHub for %d events that ask for nothing, want those of one run", calls, stormSize)
	}
	if code, _ := r.get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d after the storm", code)
	}
}
