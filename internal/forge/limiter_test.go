package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bubble makes a client in virtual time whose GitHub is the hub, in process.
// Answers take 100 ms.
func bubble(t *testing.T, shared Shared) (*hub, *Client) {
	t.Helper()
	h := &hub{Server: &httptest.Server{URL: "http://hub"}, faults: map[string][]fault{}, valid: map[string]bool{}, expires: time.Hour, clock: &clock{now: time.Now().Add(24 * time.Hour)}}
	return h, h.client(t, shared)
}

func (h *hub) client(t *testing.T, shared Shared) *Client {
	t.Helper()
	c, err := New(Config{
		WebURL: "http://hub", APIURL: "http://hub", AppID: testApp, PrivateKey: testKey(), Shared: shared, MaxWait: 90 * time.Second,
		Transport: inside{http.HandlerFunc(h.serve), func() time.Duration { return 50 * time.Millisecond }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// noted is a list of what happened when.
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

func TestAnIdleInstallationsFirstWriteDoesNotWaitAndAcknowledgementsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := bubble(t, nil)
		if _, err := c.Token(t.Context(), testRepo); err != nil {
			t.Fatal(err)
		}
		got := noted{from: time.Now()}
		var wg sync.WaitGroup
		for i, one := range []struct {
			name string
			do   func() error
		}{
			{"first", func() error { return c.React(t.Context(), testRepo, OnIssue, 3, "eyes") }},
			{"check", func() error {
				_, err := c.CreateCheckRun(t.Context(), testRepo, CheckRun{Name: "pawl", HeadSHA: "abc"})
				return err
			}},
			{"pull", func() error {
				_, err := c.CreatePull(t.Context(), testRepo, NewPull{Title: "T", Head: "b", Base: "main"})
				return err
			}},
			{"reaction", func() error { return c.React(t.Context(), testRepo, OnIssue, 3, "eyes") }},
			{"read", func() error { _, err := c.Issue(t.Context(), testRepo, 3); return err }},
		} {
			wg.Go(func() {
				_ = sleep(t.Context(), time.Duration(i)*time.Millisecond)
				if err := one.do(); err != nil {
					t.Error(one.name, err)
				}
				got.add("%s", one.name)
			})
		}
		wg.Wait()
		want := []string{"100ms first", "100ms read", "1.2s reaction", "2.3s pull", "3.4s check"}
		if !slices.Equal(got.list, want) {
			t.Errorf("got %q, want %q", got.list, want)
		}
	})
}

func TestACosmeticWriteDoesNotWaitLongButNamesATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := bubble(t, nil)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := c.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		_ = sleep(t.Context(), time.Second)
		before := time.Now()
		_, err := c.UpdateCheckRun(t.Context(), testRepo, 1, CheckRun{Name: "pawl", HeadSHA: "abc"}, nil)
		var limit *RateLimited
		if !errors.As(err, &limit) || !limit.Secondary || limit.Until.Sub(before) < 15*time.Second || limit.Until.Sub(before) > 25*time.Second {
			t.Errorf("err = %v", err)
		}
		if len(h.calls("PATCH /repos/octo/hello/check-runs/1")) != 0 || time.Since(before) > 0 {
			t.Error("it was sent, or waited")
		}
		wg.Wait()
		if _, err := c.UpdateCheckRun(t.Context(), testRepo, 1, CheckRun{Name: "pawl", HeadSHA: "abc"}, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestAWaitingRequestEndsWithItsContextAndLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := bubble(t, nil)
		if err := c.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 { // the first of the queue and two behind it
			wg.Go(func() {
				if err := c.React(ctx, testRepo, OnIssue, 3, "eyes"); !errors.Is(err, context.Canceled) {
					t.Errorf("err = %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		before := time.Now()
		if err := c.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil || time.Since(before) > 1200*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(before))
		}
		if l := c.limiter(5); l.underWay != 0 || len(l.reads.waiting)+len(l.writes.waiting) != 0 {
			t.Errorf("%d under way, %d waiting", l.underWay, len(l.writes.waiting))
		}
	})
}

func TestNoMoreThanAQuarterOfGitHubsHundredRequestsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := bubble(t, nil)
		if _, err := c.Token(t.Context(), testRepo); err != nil {
			t.Fatal(err)
		}
		slow := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			_ = sleep(r.Context(), 5*time.Second)
			next.ServeHTTP(w, r)
		}
		h.fail(issueRoute, slices.Repeat([]fault{slow}, 60)...)
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() {
				if _, err := c.Issue(t.Context(), testRepo, 3); err != nil {
					t.Error(err)
				}
			})
		}
		for _, want := range []int{25, 50, 60} {
			_ = sleep(t.Context(), time.Second)
			if n := len(h.calls(issueRoute)); n != want {
				t.Errorf("%d requests have arrived, want %d", n, want)
			}
			_ = sleep(t.Context(), 4200*time.Millisecond)
		}
		wg.Wait()
	})
}

// Two nodes write as fast as one, a second after each answer, and the clocks of the
// nodes have no part in it.
func TestTwoNodesTakeTurnsAtTheSpeedOfOneAndKnowOfEachOthersHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &memory{now: time.Now}
		h, a := bubble(t, shared)
		b := h.client(t, shared)
		b.now = func() time.Time { return time.Now().Add(time.Minute) }
		for _, c := range []*Client{a, b} {
			if _, err := c.Token(t.Context(), testRepo); err != nil {
				t.Fatal(err)
			}
		}
		got := noted{from: time.Now()}
		var wg sync.WaitGroup
		for name, c := range map[string]*Client{"a": a, "b": b} {
			wg.Go(func() {
				for range 3 {
					if err := c.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
						t.Error(err)
					}
					got.add("%s", name)
				}
			})
		}
		wg.Wait()
		turns := ""
		for _, one := range got.list {
			turns += one[len(one)-1:]
		}
		if last := got.list[5]; !strings.HasPrefix(last, "5.6s") || turns != "ababab" && turns != "bababa" {
			t.Errorf("%q", got.list)
		}
		h.fail(issueRoute, message(429, "slow down", "Retry-After", "3600"))
		var limit *RateLimited
		if _, err := a.Issue(t.Context(), testRepo, 3); !errors.As(err, &limit) {
			t.Fatal(err)
		}
		if _, err := b.Issue(t.Context(), testRepo, 3); !errors.As(err, &limit) || len(h.calls(issueRoute)) != 1 {
			t.Errorf("the other node asked during the hold: %v", err)
		}
	})
}

// broken is a Shared that cannot be reached.
type broken struct{}

func (broken) UpdateShared(context.Context, string, func(time.Time, []byte) []byte) error {
	return errors.New("database is closed")
}

func TestWithoutTheSharedStoreANodeGoesOnWithHalfOfTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := bubble(t, broken{})
		if _, err := c.Token(t.Context(), testRepo); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 3 {
			if err := c.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 4300*time.Millisecond {
			t.Errorf("three writes took %v", took)
		}
		_ = sleep(t.Context(), time.Hour+2*time.Minute)
		c.Forget(testRepo)
		start = time.Now()
		for range 420 {
			if _, err := c.Issue(t.Context(), testRepo, 3); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < time.Minute {
			t.Errorf("420 reads took %v", took)
		}
	})
}

func TestPointsCountWhatRequestsCost(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, status(http.StatusOK, `{"number":3}`, "ETag", `"v1"`), status(http.StatusNotModified, ""))
	for range 2 {
		if _, err := c.Issue(t.Context(), testRepo, 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.React(t.Context(), testRepo, OnIssue, 3, "eyes"); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Points(), []Points{{0, 5}, {5, 6}}; !slices.Equal(got, want) {
		t.Errorf("points %v, want %v", got, want)
	}
}
