package forge

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/wait"
)

func TestTokenRevokedWhileQueuedIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.branch()
		h.token(c)
		var wg sync.WaitGroup
		for range 36 { // 26 at once, then one each 1.25 s
			wg.Go(func() {
				if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { // queued after all of them
			if _, err := c.PullRequests.Create(t.Context(), h.repo, NewPull{Title: render.Subject("T", 72), Head: "pawl/issue-1", Base: "main"}); err != nil {
				t.Errorf("the pull request: %v", err)
			}
		})
		for range 3 {
			_ = wait.For(t.Context(), 3*time.Second)
			h.RevokeTokens()
		}
		wg.Wait()
		if h.tokens() != 4 {
			t.Errorf("%d tokens were made, want one and one after each revocation", h.tokens())
		}
	})
}

// A step that waited longer would keep others from working.
func TestNoCallOfAStepWaitsLongerThanHalfAMinuteForLimits(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		c.maxWait = defaultMaxWait
		h.token(c)
		slow := message(429, "slow down", "Retry-After", "20")
		h.fail(issueRoute, slow, slow)
		began := time.Now()
		var limit *RateLimited
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) || time.Since(began) > defaultMaxWait {
			t.Errorf("after two refusals of 20 s: %v after %v", err, time.Since(began))
		}
		_ = wait.For(t.Context(), time.Until(limit.Until))
		h.fail(issueRoute, message(403, "You have exceeded a secondary rate limit."))
		began = time.Now()
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) || time.Since(began) > time.Second {
			t.Errorf("after a refusal without a time: %v after %v", err, time.Since(began))
		}
		// A background request waits out the minute.
		h.fail("GET /app/hook/deliveries/7", message(403, "You have exceeded a secondary rate limit."))
		h.fail("GET /app/hook/deliveries/7", status(http.StatusOK, `{"id":7,"request":{"payload":{"a":1}}}`))
		if _, err := c.Apps.Payload(t.Context(), 7); err != nil {
			t.Error(err)
		}
	})
}

// One request is delayed after its slot while another request is refused with a wait.
func TestLateRequestObeysNewRefusals(t *testing.T) {
	for name, slow := range map[string]func(*hub, *Client) *Client{
		"for its token": func(h *hub, c *Client) *Client {
			h.fail(mintRoute, fault{Latency: 10 * time.Second})
			c.Apps.Forget(h.repo)
			return c
		},
		"for its fence": func(_ *hub, c *Client) *Client {
			return c.Fenced(func(ctx context.Context) error { return wait.For(ctx, 10*time.Second) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hub, c *Client) {
				h.token(c)
				refusal := message(429, "slow down", "Retry-After", "20")
				refusal.Latency = 2 * time.Second
				h.fail(issueRoute, refusal)
				began := time.Now()
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
						t.Error(err)
					}
				})
				_ = wait.For(t.Context(), time.Second)
				if err := slow(h, c).Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil {
					t.Error(err)
				}
				if waited := time.Since(began); waited < 22*time.Second {
					t.Errorf("it was sent after %v, want after the 22 s for which GitHub asked", waited)
				}
				wg.Wait()
				noneLeft(t, c.limiter(h.repo.Installation))
			})
		})
	}
}
