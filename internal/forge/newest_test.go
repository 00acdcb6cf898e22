package forge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
)

func TestChangesOfACheckRunWhileItsWriteWaitsAreOneRequestWithTheNewest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, h *hub, c *Client) {
		run := h.checkRun()
		var wg sync.WaitGroup
		h.fail(issueRoute, message(429, "slow down", "Retry-After", "5"))
		wg.Go(func() {
			if _, err := c.Issue(t.Context(), h.repo, 1); err != nil {
				t.Error(err)
			}
		})
		_ = wait.For(t.Context(), time.Second)
		var changes atomic.Int64
		asked := 0
		say := func() CheckRun {
			return CheckRun{Name: "pawl", HeadSHA: run.HeadSHA, Status: "in_progress", Output: Output{Title: fmt.Sprint("change ", changes.Load()), Summary: "S"}}
		}
		wg.Go(func() {
			for range 20 {
				_ = wait.For(t.Context(), 200*time.Millisecond)
				changes.Add(1)
			}
		})
		_, err := c.UpdateCheckRun(t.Context(), h.repo, run.ID, say(), func(context.Context) CheckRun { asked++; return say() })
		wg.Wait()
		sent := h.calls(updateRoute)
		if err != nil || len(sent) != 1 || asked != 1 || !strings.Contains(fmt.Sprint(sent[0].body), "change 20") {
			t.Errorf("%v; asked %d times, sent %v", err, asked, sent)
		}
	})
}

func TestAnotherCheckRunIsNotSentInPlaceOfTheOneThatIsUpdated(t *testing.T) {
	h, c := start(t)
	made := h.checkRun()
	for _, odd := range []CheckRun{{}, {Name: "other", HeadSHA: made.HeadSHA}, {Name: "pawl", HeadSHA: "def"}} {
		run := CheckRun{Name: "pawl", HeadSHA: made.HeadSHA, Status: "in_progress", Output: Output{Title: "as asked", Summary: "S"}}
		if _, err := c.UpdateCheckRun(t.Context(), h.repo, made.ID, run, func(context.Context) CheckRun { return odd }); err != nil {
			t.Fatal(err)
		}
		sent := h.calls(updateRoute)
		if !strings.Contains(fmt.Sprint(sent[len(sent)-1].body), "as asked") {
			t.Errorf("%+v: sent %v", odd, sent[len(sent)-1].body)
		}
	}
}
