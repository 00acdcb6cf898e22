package forge

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// arrivals are the times at which writes of an installation arrive at a hub.
type arrivals struct {
	*hub
	mu    sync.Mutex
	times []time.Time
}

func (a *arrivals) client(t *testing.T, shared Shared) *Client {
	t.Helper()
	c := a.hub.client(t, shared)
	c.plain = inside{http.HandlerFunc(a.serve), func() time.Duration { return 50 * time.Millisecond }}
	return c
}

func (a *arrivals) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.Header.Get("Authorization") != "" {
		a.mu.Lock()
		a.times = append(a.times, time.Now())
		a.mu.Unlock()
	}
	a.hub.serve(w, r)
}

// closest is the least time between two writes.
func (a *arrivals) closest() time.Duration {
	least := time.Hour
	for i := 1; i < len(a.times); i++ {
		least = min(least, a.times[i].Sub(a.times[i-1]))
	}
	return least
}

// A fence that asks a slow store, or a process that stands still there, lets a
// write miss its place. Sent then, it would meet the write of another node.
func TestAWriteThatIsTooLateForItsPlaceTakesAnother(t *testing.T) {
	for name, slow := range map[string]time.Duration{"by less than a second": 900 * time.Millisecond, "by as much as another node waits": 5500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := &memory{now: time.Now}
				h, _ := bubble(t, nil)
				at := &arrivals{hub: h}
				a, b := at.client(t, shared), at.client(t, shared)
				for _, c := range []*Client{a, b} {
					if _, err := c.Token(t.Context(), testRepo); err != nil {
						t.Fatal(err)
					}
				}
				fences := 0
				fenced := a.Fenced(func(ctx context.Context) error {
					if fences++; fences == 1 {
						return sleep(ctx, slow)
					}
					return nil
				})
				var wg sync.WaitGroup
				wg.Go(func() {
					if err := fenced.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
						t.Error(err)
					}
				})
				wg.Go(func() {
					_ = sleep(t.Context(), 10*time.Millisecond)
					for range 3 {
						if err := b.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
							t.Error(err)
						}
					}
				})
				wg.Wait()
				if len(at.times) != 4 || at.closest() < time.Second || (fences == 1) != (slow < time.Second) {
					t.Errorf("%d writes, the closest %v apart, after %d questions to the fence", len(at.times), at.closest(), fences)
				}
			})
		})
	}
}

func TestAWriteThatIsLateEachTimeIsLeftToTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := bubble(t, nil)
		fenced := c.Fenced(func(ctx context.Context) error { return sleep(ctx, lateMost+time.Second) })
		var limit *RateLimited
		if err := fenced.React(t.Context(), testRepo, OnIssue, 3, "eyes"); !errors.As(err, &limit) || !limit.Until.After(time.Now()) {
			t.Errorf("err = %v, want a time to come", err)
		}
		if n := len(h.calls("POST /repos/octo/hello/issues/3/reactions")); n != 0 {
			t.Errorf("%d writes were sent", n)
		}
		if l := c.limiter(testRepo.Installation); l.underWay != 0 || len(l.writes.waiting) != 0 {
			t.Errorf("%d under way, %d waiting", l.underWay, len(l.writes.waiting))
		}
	})
}

func TestATokenThatIsRevokedWhileARequestWaitsForItsPlaceIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := bubble(t, nil)
		if _, err := c.Token(t.Context(), testRepo); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := c.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { // behind all of these
			if _, err := c.CreatePull(t.Context(), testRepo, NewPull{Title: "T", Head: "b", Base: "main"}); err != nil {
				t.Errorf("the pull request: %v", err)
			}
		})
		for range 3 {
			_ = sleep(t.Context(), 3*time.Second)
			h.revoke()
		}
		wg.Wait()
		if h.tokens != 4 {
			t.Errorf("%d tokens were made, want one and one after each revocation", h.tokens)
		}
	})
}

// A step that waited longer would keep others from working.
func TestNoCallOfAStepWaitsLongerThanHalfAMinuteForLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := bubble(t, nil)
		c.maxWait = defaultMaxWait
		if _, err := c.Token(t.Context(), testRepo); err != nil {
			t.Fatal(err)
		}
		slow := message(429, "slow down", "Retry-After", "20")
		h.fail(issueRoute, slow, slow)
		began := time.Now()
		var limit *RateLimited
		if _, err := c.Issue(t.Context(), testRepo, 3); !errors.As(err, &limit) || time.Since(began) > defaultMaxWait {
			t.Errorf("after two refusals of 20 s: %v after %v", err, time.Since(began))
		}
		_ = sleep(t.Context(), time.Until(limit.Until))
		h.fail(issueRoute, message(403, "You have exceeded a secondary rate limit."))
		began = time.Now()
		if _, err := c.Issue(t.Context(), testRepo, 3); !errors.As(err, &limit) || time.Since(began) > time.Second {
			t.Errorf("after a refusal without a time: %v after %v", err, time.Since(began))
		}
		// What nobody waits for sits out the minute.
		h.fail("GET /app/hook/deliveries/7", message(403, "You have exceeded a secondary rate limit."))
		h.fail("GET /app/hook/deliveries/7", status(http.StatusOK, `{"id":7,"request":{"payload":{"a":1}}}`))
		if _, err := c.DeliveryPayload(t.Context(), 7); err != nil {
			t.Error(err)
		}
	})
}
