package forge

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// afterPage calls a function once, after a page of issues was read.
type afterPage struct {
	http.RoundTripper
	do atomic.Pointer[func()]
}

func (a *afterPage) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(r)
	if strings.HasSuffix(r.URL.Path, "/issues") {
		if do := a.do.Swap(nil); do != nil {
			(*do)()
		}
	}
	return resp, err
}

// manyIssues returns a hub with n issues, opened at a fixed interval that began an hour ago, and a client.
func manyIssues(t *testing.T, n int, apart time.Duration) (*hub, *Client, *afterPage, time.Time) {
	t.Helper()
	h, c := start(t)
	since := h.clock.Now()
	for range n - 1 { // the hub already has one
		h.clock.move(apart)
		_, err := h.OpenIssue(fullName, "ann", "An issue", "It is broken.")
		h.must(err)
	}
	h.clock.move(since.Add(time.Hour).Sub(h.clock.Now()))
	page := &afterPage{RoundTripper: c.Clock.base}
	c.Clock.base = page
	return h, c, page, since
}

// numbered checks that a list names each issue from 1 to n once.
func numbered(t *testing.T, list []Issue, n int) {
	t.Helper()
	times := map[int]int{}
	for i, one := range list {
		times[one.Number]++
		if i > 0 && one.Updated.Before(list[i-1].Updated) {
			t.Errorf("issue %d comes after one that was updated later", one.Number)
		}
	}
	for i := 1; i <= n; i++ {
		if times[i] != 1 {
			t.Errorf("issue %d is listed %d times among %d", i, times[i], len(list))
		}
	}
}

// With numbered pages, issue 101 would move to a page that was already read.
func TestChangeDuringListingHidesNoThread(t *testing.T) {
	h, c, page, since := manyIssues(t, 350, time.Second)
	touch := func() {
		if _, err := h.Comment(fullName, 4, "ann", "More."); err != nil {
			t.Error(err)
		}
	}
	page.do.Store(&touch)
	list, more, err := c.Issues.ChangedSince(t.Context(), h.repo, since)
	if err != nil || more {
		t.Fatalf("more %v, %v", more, err)
	}
	numbered(t, list, 350)
	if last := list[len(list)-1]; last.Number != 4 {
		t.Errorf("the last is %d, want the issue that changed during the listing", last.Number)
	}
}

func TestFullPageOfOneSecondIsReadToItsEnd(t *testing.T) {
	h, c, _, since := manyIssues(t, 230, 0)
	list, more, err := c.Issues.ChangedSince(t.Context(), h.repo, since)
	if err != nil || more {
		t.Fatalf("more %v, %v", more, err)
	}
	numbered(t, list, 230)
}

func TestLongListContinuesFromItsLastTime(t *testing.T) {
	const all = maxChangedPages*pageSize + 50
	h, c, _, since := manyIssues(t, all, time.Second)
	list, more, err := c.Issues.ChangedSince(t.Context(), h.repo, since)
	if err != nil || !more || len(list) < all-100 {
		t.Fatalf("%d listed, more %v, %v", len(list), more, err)
	}
	rest, more, err := c.Issues.ChangedSince(t.Context(), h.repo, list[len(list)-1].Updated.Add(time.Second))
	if err != nil || more {
		t.Fatalf("more %v, %v", more, err)
	}
	numbered(t, append(list, rest...), all)
}
