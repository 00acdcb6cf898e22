package server_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// stormSize is the number of webhooks. Our choice.
const stormSize = 10_000

// stored sends a webhook repeatedly, like GitHub's redelivery, until the server has stored it. On a busy machine, the
// database may respond too late.
func (r *rig) stored(body []byte, header map[string]string) bool {
	r.T.Helper()
	for range 10 {
		if status, _ := r.Hook(body, header); status/100 == 2 {
			return true
		}
	}
	return false
}

// A reader's remarks arrive as fast as the server accepts them. A writer's command is among them.
func TestCommandAmongTenThousandEventsIsObeyed(t *testing.T) {
	t.Parallel()
	needs.All(t, "ten thousand webhooks")
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A second line", "Please.")
	r.Must(err)
	r.Writes(n, testrig.Reader, "What a nice day it is")
	r.Settle()
	remark := r.delivered("issue_comment")
	asked := len(r.World.Requests())

	var sent, refused atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := sent.Add(1); i <= stormSize; i = sent.Add(1) {
				// Each remark has its own id.
				body := bytes.Replace(remark.Payload, []byte(`"comment":{"id":`), fmt.Appendf(nil, `"comment":{"id":%d`, i), 1)
				guid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
				header := map[string]string{"X-GitHub-Event": "issue_comment", "X-GitHub-Delivery": guid}
				if !r.stored(body, header) {
					refused.Add(1)
				}
				if i == stormSize/2 {
					if err := r.Commenting(n, testrig.Writer, "/pawl solve")(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if got := refused.Load(); got != 0 {
		t.Errorf("%d of %d webhooks were refused ten times", got, stormSize)
	}
	if s := r.Ending(n); s.State != "done" || r.Calls() != 1 {
		t.Errorf("%s (%s %q) after %d calls, want done after 1", s.State, s.Rule, s.Reasons, r.Calls())
	}
	for state, got := range r.Stats().Deliveries {
		if handled := state == thread.Handled; handled && got < stormSize || !handled && got > 0 {
			t.Errorf("%d deliveries are %s, want all %d handled", got, state, stormSize)
		}
	}
	if calls := len(r.World.Requests()) - asked; calls > 100 {
		t.Errorf("%d requests to GitHub for %d events without a command, want only one run's requests", calls, stormSize)
	}
}
