package forge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangesOfACheckRunWhileItsWriteWaitsAreOneRequestWithTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := bubble(t, nil)
		var wg sync.WaitGroup
		h.fail(issueRoute, message(429, "slow down", "Retry-After", "5"))
		wg.Go(func() {
			if _, err := c.Issue(t.Context(), testRepo, 3); err != nil {
				t.Error(err)
			}
		})
		_ = sleep(t.Context(), time.Second)
		var changes atomic.Int64
		asked := 0
		say := func() CheckRun {
			return CheckRun{Name: "pawl", HeadSHA: "abc", Status: "in_progress", Title: fmt.Sprint("change ", changes.Load()), Summary: "S"}
		}
		wg.Go(func() {
			for range 20 {
				_ = sleep(t.Context(), 200*time.Millisecond)
				changes.Add(1)
			}
		})
		_, err := c.UpdateCheckRun(t.Context(), testRepo, 1, say(), func(context.Context) CheckRun { asked++; return say() })
		wg.Wait()
		sent := h.calls("PATCH /repos/octo/hello/check-runs/1")
		if err != nil || len(sent) != 1 || asked != 1 || !strings.Contains(fmt.Sprint(sent[0].body), "change 20") {
			t.Errorf("%v; asked %d times, sent %v", err, asked, sent)
		}
	})
}

func TestAnotherCheckRunIsNotSentInPlaceOfTheOneThatIsUpdated(t *testing.T) {
	h, c := start(t)
	for _, odd := range []CheckRun{{}, {Name: "other", HeadSHA: "abc"}, {Name: "pawl", HeadSHA: "def"}} {
		run := CheckRun{Name: "pawl", HeadSHA: "abc", Status: "in_progress", Title: "as asked", Summary: "S"}
		if _, err := c.UpdateCheckRun(t.Context(), testRepo, 1, run, func(context.Context) CheckRun { return odd }); err != nil {
			t.Fatal(err)
		}
		sent := h.calls("PATCH /repos/octo/hello/check-runs/1")
		if !strings.Contains(fmt.Sprint(sent[len(sent)-1].body), "as asked") {
			t.Errorf("%+v: sent %v", odd, sent[len(sent)-1].body)
		}
	}
}
