package forge

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// resetIn returns an hourly limit that ends after d.
func resetIn(h *hub, code int, d time.Duration) fault {
	return message(code, "API rate limit exceeded for installation ID 5.",
		"X-RateLimit-Remaining", "0", "X-RateLimit-Limit", "5000", "X-RateLimit-Reset", strconv.FormatInt(h.clock.Now().Add(d).Unix(), 10))
}

func TestLimitWaitsFollowGitHubsAnswer(t *testing.T) {
	const secondary = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
	for _, tt := range []struct {
		name  string
		fault func(*hub) fault
		want  time.Duration
	}{
		{"secondary with retry-after", func(*hub) fault { return message(403, secondary, "Retry-After", "7") }, 7 * time.Second},
		{"secondary without retry-after", func(*hub) fault { return message(403, secondary) }, time.Minute},
		{"too many requests with retry-after", func(*hub) fault { return message(429, "slow down", "Retry-After", "20") }, 20 * time.Second},
		{"too many requests as a page", func(*hub) fault { return status(429, "<html>slow down</html>") }, time.Minute},
		{"a page that names a time", func(*hub) fault { return status(403, "<html>slow down</html>", "Retry-After", "7") }, 7 * time.Second},
		{"too many requests without anything", func(*hub) fault { return status(429, "") }, time.Minute},
		{"too many requests with a date", func(h *hub) fault {
			return message(429, "slow down", "Retry-After", h.clock.Now().Add(20*time.Second).UTC().Format(http.TimeFormat))
		}, 20 * time.Second},
		{"hourly limit without headers", func(*hub) fault { return message(403, "API rate limit exceeded for installation ID 5.") }, time.Minute},
		{"an older server's secondary limit", func(*hub) fault { return message(403, "You have triggered an abuse detection mechanism.") }, time.Minute},
		{"a limit by its page only", func(*hub) fault {
			return status(403, `{"message": "Please wait.", "documentation_url": "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"}`)
		}, time.Minute},
		{"a refusal without a reason", func(*hub) fault { return status(403, "") }, time.Minute},
		{"a refusal that says Forbidden", func(*hub) fault { return message(403, "Forbidden") }, time.Minute},
		{"hourly limit as 403", func(h *hub) fault { return resetIn(h, 403, 30*time.Second) }, 31 * time.Second},
		{"hourly limit as 429", func(h *hub) fault { return resetIn(h, 429, 30*time.Second) }, 31 * time.Second},
		{"hourly limit that has ended", func(h *hub) fault { return resetIn(h, 403, -time.Minute) }, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, c := start(t)
			h.fail(commentRoute, tt.fault(h))
			if _, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->"); err != nil {
				t.Fatal(err)
			}
			if got := h.clock.total(); got != tt.want || len(h.comments()) != 1 {
				t.Errorf("slept %v, want %v; %d comments", got, tt.want, len(h.comments()))
			}
			if n := len(h.calls(listRoute)); n != 0 {
				t.Errorf("%d look-ups, want none after a limit", n)
			}
		})
	}
}

func TestLongWaitIsReturned(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, resetIn(h, 403, 40*time.Minute))
	before := h.clock.Now()
	_, err := c.Issues.Get(t.Context(), h.repo, 1)
	var limit *RateLimited
	if !errors.As(err, &limit) || limit.Secondary || limit.Until.Sub(before) != 40*time.Minute+time.Second || len(h.clock.slept) != 0 {
		t.Fatalf("err = %v, slept %v", err, h.clock.slept)
	}
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) || len(h.calls(issueRoute)) != 1 {
		t.Errorf("GitHub was asked again before the reset: %v", err)
	}
	other := h.repo
	other.Installation++
	if _, err := c.Issues.Get(t.Context(), other, 3); !errors.Is(err, ErrUninstalled) {
		t.Errorf("one installation's limit stopped another: %v", err)
	}
	_ = h.clock.Sleep(t.Context(), 41*time.Minute)
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
		t.Errorf("after the reset: %v", err)
	}
}

func TestWaitBeyondTheContextIsReturnedAtOnce(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, message(403, "secondary rate limit", "Retry-After", "60"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := c.Issues.Get(ctx, h.repo, 1)
	var limit *RateLimited
	if !errors.As(err, &limit) || !limit.Secondary || len(h.clock.slept) != 0 {
		t.Errorf("err = %v, slept %v", err, h.clock.slept)
	}
}

func TestThirdLimitEndsTheCall(t *testing.T) {
	h, c := start(t)
	slow := message(429, "slow down", "Retry-After", "2")
	h.fail(issueRoute, slow, slow, slow, slow)
	var limit *RateLimited
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) || len(h.calls(issueRoute)) != 3 {
		t.Errorf("err = %v after %d calls", err, len(h.calls(issueRoute)))
	}
}

func TestNextRequestWaitsAfterTheHourlyLimit(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, status(http.StatusOK, `{"number": 1}`,
		"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(h.clock.Now().Add(10*time.Second).Unix(), 10)))
	for range 2 {
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
			t.Fatal(err)
		}
	}
	if h.clock.total() != 11*time.Second || len(h.calls(issueRoute)) != 2 {
		t.Errorf("slept %v, %d calls", h.clock.slept, len(h.calls(issueRoute)))
	}
}

func TestMissingPermissionIsNotALimit(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, message(403, "Resource not accessible by integration", "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", "1800000000"))
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.Is(err, ErrForbidden) || len(h.clock.slept) != 0 {
		t.Errorf("err = %v", err)
	}
}

func TestProxyPageIsNotAnAnswerFromGitHub(t *testing.T) {
	const html = "<html><body>blocked</body></html>"
	for _, page := range []fault{
		status(403, html), status(404, html), status(404, ""), status(404, "{}"), status(404, `{"error":"no route"}`), status(410, ""), status(407, ""), status(421, "null"),
	} {
		for _, route := range []string{issueRoute, mintRoute} {
			h, c := start(t)
			h.fail(route, page, page, page, page)
			if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.Is(err, ErrUnavailable) || len(h.calls(route)) < 2 {
				t.Errorf("%s answered with %+v: %v after %d calls", route, page, err, len(h.calls(route)))
			}
		}
	}
}

func TestLongRetryAfterOfAnOutageIsReturned(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, message(503, "busy", "Retry-After", "1800"))
	before := h.clock.Now()
	var limit *RateLimited
	for range 2 {
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) || limit.Until.Sub(before) != 30*time.Minute || len(h.clock.slept) != 0 {
			t.Fatalf("err = %v, slept %v", err, h.clock.slept)
		}
	}
	if n := len(h.calls(issueRoute)); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func TestAHoldEndsWithinAnHourAfterTheClockWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{2 * time.Hour, 365 * 24 * time.Hour} {
		h, c := start(t)
		h.fail(issueRoute, message(403, "You have exceeded a secondary rate limit.", "Retry-After", "600"))
		var limit *RateLimited
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) {
			t.Fatalf("err = %v", err)
		}
		h.clock.move(-back)
		for range 3 {
			if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.As(err, &limit) {
				t.Fatalf("set back by %s: %v, want the hold to go on for a while", back, err)
			}
			h.clock.move(15 * time.Minute)
		}
		h.clock.move(20 * time.Minute)
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
			t.Errorf("set back by %s, an hour later: %v", back, err)
		}
	}
}

func TestNoWaitForALimitIsLongerThanAnHour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, "now"), 0)
		header := http.Header{}
		for _, name := range []string{"Retry-After", "X-Ratelimit-Reset", "X-Ratelimit-Remaining"} {
			if rapid.Bool().Draw(t, "has "+name) {
				header.Set(name, rapid.OneOf(rapid.Just("0"), rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }), rapid.String()).Draw(t, name))
			}
		}
		until, _, _ := limitEnds(answer{status: 403, header: header}, now, rapid.IntRange(0, 1<<40).Draw(t, "strikes"))
		if wait := until.Sub(now); wait < time.Second || wait > longestWait {
			t.Fatalf("waits %v", wait)
		}
	})
}

func TestLongWaitOfAWriteIsReturned(t *testing.T) {
	h, c := start(t)
	for range 26 { // a third of a minute's limit
		if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil {
			t.Fatal(err)
		}
	}
	c.maxWait = time.Second
	before := h.clock.Now()
	var limit *RateLimited
	for range 2 {
		err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes)
		if !errors.As(err, &limit) || !limit.Secondary || !limit.Until.Equal(before.Add(1250*time.Millisecond)) {
			t.Fatalf("err = %v", err)
		}
	}
	if n := len(h.calls(reactRoute)); n != 26 || len(h.clock.slept) != 0 {
		t.Errorf("%d requests, slept %v", n, h.clock.slept)
	}
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
		t.Errorf("a read was held back with the writes: %v", err)
	}
	_ = h.clock.Sleep(t.Context(), limit.Until.Sub(before))
	if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil {
		t.Errorf("at the time that was named: %v", err)
	}
}
