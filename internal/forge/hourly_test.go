package forge

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// remaining answers with the rest of the hourly limit.
func remaining(n int, reset time.Time) fault {
	return fault{Answer: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(n))
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		_, _ = w.Write([]byte(`{"id":7,"request":{"payload":{"a":1}}}`))
	}}
}

func TestFifthOfTheHourlyLimitIsLeftForTokens(t *testing.T) {
	h, c := start(t)
	reset := c.cfg.Now().Add(20 * time.Minute)
	const route = "GET /app/hook/deliveries/7"
	h.fail(route, remaining(1000, reset), remaining(999, reset))
	for range 2 {
		if _, err := c.Apps.Payload(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Apps.Payload(t.Context(), 7)
	var limit *RateLimited
	if !errors.As(err, &limit) || limit.Until.Before(reset.Truncate(time.Second)) || len(h.calls(route)) != 2 {
		t.Errorf("%d payloads, %v; want two and the time of the reset", len(h.calls(route)), err)
	}
	if _, err := c.Apps.Token(t.Context(), h.repo); err != nil {
		t.Errorf("a token: %v", err)
	}
}

func TestQueuedCosmeticRequestWaitsWithinItsPatience(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.token(c)
		id := h.checkRun().ID
		limits := c.limiter(h.repo.Installation).limits
		limits.points.SetLimit(6.6) // the first waits 9.8 s for its 5 points and the 60 that it must leave
		limits.points.ReserveN(time.Now(), limits.points.Burst())
		show := func() error {
			_, err := c.Checks.Update(t.Context(), h.repo, id, CheckRun{Name: "pawl", HeadSHA: "abc"})
			return err
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _ = show() })
		}
		synctest.Wait()
		began := time.Now()
		err := show()
		var limit *RateLimited
		if waited := time.Since(began); !errors.As(err, &limit) || waited > cosmeticWait {
			t.Errorf("it waited %v and got %v; want at most %v", waited, err, cosmeticWait)
		}
		wg.Wait()
	})
}
