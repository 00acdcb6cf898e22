package forge

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
)

// dark makes GitHub unavailable until a time.
type dark struct {
	http.RoundTripper
	until time.Time
	tried int
}

func (d *dark) RoundTrip(req *http.Request) (*http.Response, error) {
	if time.Now().Before(d.until) {
		d.tried++
		return nil, errors.New("connection refused")
	}
	return d.RoundTripper.RoundTrip(req)
}

func TestTwoHourOutageEndsCallsSoonWithoutRepeats(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.token(c)
		d := &dark{RoundTripper: c.Clock.base, until: time.Now().Add(2 * time.Hour)}
		c.Clock.base = d
		calls := 0
		for {
			calls++
			began := time.Now()
			_, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->")
			if err == nil {
				break
			}
			if !errors.Is(err, ErrUnavailable) || time.Since(began) > 30*time.Second {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			_ = wait.For(t.Context(), 5*time.Minute)
		}
		// Each call tries the write once, and looks up three times whether it was done.
		if time.Now().Before(d.until) || calls < 20 || d.tried > 4*calls || len(h.comments()) != 1 {
			t.Errorf("%d calls, %d tries, %d comments at %v", calls, d.tried, len(h.comments()), time.Now())
		}
	})
}

func TestSlowGitHubEndsATryAfterThirtySeconds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		slow  time.Duration
		times int
		kind  error
		took  time.Duration
		calls int
	}{
		{"29 seconds are in time", 29 * time.Second, 1, nil, 30 * time.Second, 1},
		{"one try is too slow", 31 * time.Second, 1, nil, 35 * time.Second, 2},
		{"all tries are too slow", 31 * time.Second, 3, ErrUnavailable, 95 * time.Second, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hub, c *Client) {
				h.token(c)
				for range tt.times {
					h.fail(issueRoute, fault{Latency: tt.slow})
				}
				began := time.Now()
				_, err := c.Issues.Get(t.Context(), h.repo, 1)
				if !errors.Is(err, tt.kind) || len(h.calls(issueRoute)) != tt.calls || time.Since(began) > tt.took {
					t.Errorf("%v after %d calls and %v", err, len(h.calls(issueRoute)), time.Since(began))
				}
			})
		})
	}
}

func TestSlowWriteIsNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.fail(commentRoute, fault{Answer: func(w http.ResponseWriter, r *http.Request, github http.Handler) {
			github.ServeHTTP(w, r)
			_ = wait.For(r.Context(), time.Minute)
		}})
		made, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->")
		if err != nil || len(h.comments()) != 1 || made.ID != h.comments()[0].ID || len(h.calls(commentRoute)) != 1 {
			t.Errorf("%+v, %v; %d comments", made, err, len(h.comments()))
		}
	})
}

func TestWaitDoublesAfterRefusalsWithoutATime(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.token(c)
		refusal := message(403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		h.fail(issueRoute, refusal)
		began := time.Now()
		_, err := c.Issues.Get(t.Context(), h.repo, 1)
		if waited := time.Since(began); err != nil || waited < time.Minute {
			t.Errorf("%v after %v, want an answer after a minute", err, waited)
		}
		c.maxWait = time.Second // from here on a refusal reaches the caller
		for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			h.fail(issueRoute, refusal)
			began := time.Now()
			_, err := c.Issues.Get(t.Context(), h.repo, 1)
			var limit *RateLimited
			if !errors.As(err, &limit) {
				t.Fatalf("%v, want a wait of %v", err, want)
			}
			if got := limit.Until.Sub(began).Round(time.Second); got != want {
				t.Errorf("wait of %v, want %v", got, want)
			}
			_ = wait.For(t.Context(), time.Until(limit.Until))
		}
	})
}

func TestHourLongRetryAfterIsReturnedAndObeyed(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.token(c)
		h.fail(issueRoute, message(403, "You have exceeded a secondary rate limit.", "Retry-After", "3600"))
		began := time.Now()
		var limit *RateLimited
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) || limit.Until.Sub(began) != time.Hour+100*time.Millisecond {
			t.Fatalf("err = %v", err)
		}
		sent := len(h.Requests())
		c.Apps.Forget(h.repo) // not even a token is requested
		for time.Now().Before(limit.Until) {
			if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); time.Until(limit.Until) > c.maxWait && !errors.As(err, &limit) {
				t.Fatalf("err = %v", err)
			}
			if time.Now().Before(limit.Until) && len(h.Requests()) != sent {
				t.Fatalf("%d requests during the hold", len(h.Requests())-sent)
			}
			_ = wait.For(t.Context(), 7*time.Minute)
		}
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
			t.Errorf("after the hold: %v", err)
		}
	})
}

func TestExpiredTokenIsReplacedOncePerCall(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		for range 3 {
			if _, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->"); err != nil {
				t.Fatal(err)
			}
			h.RevokeTokens()
		}
		if h.tokens() != 3 || len(h.comments()) != 3 {
			t.Errorf("%d tokens, %d comments", h.tokens(), len(h.comments()))
		}
		h.fail(issueRoute, message(401, "Bad credentials"), message(401, "Bad credentials"))
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.Is(err, ErrUnauthorized) || len(h.calls(issueRoute)) != 2 {
			t.Errorf("%v after %d calls", err, len(h.calls(issueRoute)))
		}
	})
}
