package forge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/wait"
)

// noted is a list of events and their times.
type noted struct {
	mu   sync.Mutex
	list []string
	from time.Time
}

func (n *noted) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf("%v ", time.Since(n.from).Round(10*time.Millisecond))+fmt.Sprintf(format, args...))
}

func TestWritesDoNotWaitBelowTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		sha := h.branch()
		h.token(c)
		got := noted{from: time.Now()}
		var wg sync.WaitGroup
		for i, one := range []struct {
			name string
			do   func() error
		}{
			{"check", func() error {
				_, err := c.Checks.Create(t.Context(), h.repo, CheckRun{Name: "pawl", HeadSHA: sha})
				return err
			}},
			{"pull", func() error {
				_, err := c.PullRequests.Create(t.Context(), h.repo, NewPull{Title: render.Subject("T", 72), Head: "pawl/issue-1", Base: "main"})
				return err
			}},
			{"reaction", func() error { return c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes) }},
			{"read", func() error { _, err := c.Issues.Get(t.Context(), h.repo, 1); return err }},
		} {
			wg.Go(func() {
				_ = wait.For(t.Context(), time.Duration(i)*time.Millisecond)
				if err := one.do(); err != nil {
					t.Error(one.name, err)
				}
				got.add("%s", one.name)
			})
		}
		wg.Wait()
		want := []string{"100ms check", "100ms pull", "100ms reaction", "100ms read"}
		if slices.Sort(got.list); !slices.Equal(got.list, want) {
			t.Errorf("got %q, want %q", got.list, want)
		}
	})
}

func TestCosmeticWriteReturnsATimeInsteadOfWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		id := h.comment("ann", "hello")
		var wg sync.WaitGroup
		for range 36 { // ten more than a burst allows
			wg.Go(func() {
				if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		_ = wait.For(t.Context(), time.Second)
		began := time.Now()
		edit := func() error {
			_, err := c.Issues.EditComment(t.Context(), h.repo, id, "hello", "<!-- m -->")
			return err
		}
		err := edit()
		var limit *RateLimited
		if !errors.As(err, &limit) || !limit.Secondary || !limit.Until.After(time.Now()) || time.Since(began) > cosmeticWait {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		if len(h.calls(editRoute)) != 0 {
			t.Error("it was sent")
		}
		wg.Wait()
		_ = wait.For(t.Context(), time.Until(limit.Until))
		if err := edit(); err != nil {
			t.Error(err)
		}
	})
}

func TestCancelledRequestFreesItsSlot(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.token(c)
		c.limiter(h.repo.Installation).limits.minute.ReserveN(time.Now(), minuteLimit.most/3) // the next write waits for 1.25 s
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 { // the head of the queue and two more
			wg.Go(func() {
				if err := c.Issues.React(ctx, h.repo, "issue", 1, Eyes); !errors.Is(err, context.Canceled) {
					t.Errorf("err = %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		before := time.Now()
		if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil || time.Since(before) > 1400*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(before))
		}
		noneLeft(t, c.limiter(h.repo.Installation))
	})
}

// noneLeft fails the test if a request is still in flight.
func noneLeft(t *testing.T, l *limiter) {
	t.Helper()
	if len(l.inFlight) != 0 {
		t.Errorf("%d requests in flight", len(l.inFlight))
	}
	for kind, turn := range l.turns {
		if len(turn) != 0 {
			t.Errorf("a request of kind %d is still queued", kind)
		}
	}
}

func TestRequestsInFlightStayBelowGitHubsLimit(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub, c *Client) {
		h.token(c)
		slow := fault{Answer: func(w http.ResponseWriter, r *http.Request, github http.Handler) {
			_ = wait.For(r.Context(), 5*time.Second)
			github.ServeHTTP(w, r)
		}}
		h.fail(issueRoute, slices.Repeat([]fault{slow}, 120)...)
		var wg sync.WaitGroup
		for range 120 {
			wg.Go(func() {
				if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
					t.Error(err)
				}
			})
		}
		for _, want := range []int{100, 120} {
			_ = wait.For(t.Context(), time.Second)
			if n := len(h.calls(issueRoute)); n != want {
				t.Errorf("%d requests have arrived, want %d", n, want)
			}
			_ = wait.For(t.Context(), 4200*time.Millisecond)
		}
		wg.Wait()
	})
}

func TestPointsAreCounted(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, status(http.StatusOK, `{"number":3}`, "ETag", `"v1"`), status(http.StatusNotModified, ""))
	for range 2 {
		if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"0": 5, strconv.FormatInt(h.repo.Installation, 10): 6}
	if got := c.counted(t, "pawl_github_points_total"); !maps.Equal(got, want) {
		t.Errorf("points %v, want %v", got, want)
	}
}
