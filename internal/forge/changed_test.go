package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// afterPage calls a function once when a page of issues was read.
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

// manyIssues is a fake GitHub with so many issues, opened at the given distance,
// and a client of it.
func manyIssues(t *testing.T, n int, apart time.Duration) (*fakegithub.Server, *Client, Repo, *afterPage, time.Time) {
	t.Helper()
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	var at atomic.Int64
	gh, err := fakegithub.New(fakegithub.Options{AppID: testApp, Now: func() time.Time { return began.Add(time.Duration(at.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gh.Close() })
	err = errors.Join(gh.AddUser("ann", 31, nil), gh.AddRepo(t.Context(), "octo/hello", map[string]string{"a.txt": "a\n"}), gh.Install("octo/hello"))
	id, idErr := gh.InstallationID("octo/hello")
	if err := errors.Join(err, idErr); err != nil {
		t.Fatal(err)
	}
	for range n {
		if _, err := gh.OpenIssue("octo/hello", "ann", "An issue", "It is broken."); err != nil {
			t.Fatal(err)
		}
		at.Add(int64(apart))
	}
	at.Store(int64(time.Hour))
	page := &afterPage{RoundTripper: http.DefaultTransport}
	c, err := New(Config{
		WebURL: gh.WebURL(), APIURL: gh.APIURL(), AppID: testApp, PrivateKey: gh.PrivateKeyPEM(), Transport: page,
		Now:   func() time.Time { return began.Add(time.Duration(at.Load())) },
		Sleep: func(ctx context.Context, d time.Duration) error { at.Add(int64(d)); return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return gh, c, Repo{Owner: "octo", Name: "hello", Installation: id}, page, began
}

// numbered checks that a list names the issues from 1 to n once each.
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

// With numbered pages, issue 101 moved to the page that was read already.
func TestAChangeWhileTheListIsReadHidesNoThread(t *testing.T) {
	gh, c, repo, page, since := manyIssues(t, 350, time.Second)
	touch := func() {
		if _, err := gh.Comment("octo/hello", 4, "ann", "More."); err != nil {
			t.Error(err)
		}
	}
	page.do.Store(&touch)
	list, more, err := c.ChangedSince(t.Context(), repo, since)
	if err != nil || more {
		t.Fatalf("more %v, %v", more, err)
	}
	numbered(t, list, 350)
	if last := list[len(list)-1]; last.Number != 4 {
		t.Errorf("the last is %d, want the one that changed meanwhile", last.Number)
	}
}

func TestASecondThatFillsAPageIsReadToItsEnd(t *testing.T) {
	_, c, repo, _, since := manyIssues(t, 230, 0)
	list, more, err := c.ChangedSince(t.Context(), repo, since)
	if err != nil || more {
		t.Fatalf("more %v, %v", more, err)
	}
	numbered(t, list, 230)
}

func TestALongListIsCutAndGoesOnFromItsLastTime(t *testing.T) {
	const all = maxChangedPages*pageSize + 50
	_, c, repo, _, since := manyIssues(t, all, time.Second)
	list, more, err := c.ChangedSince(t.Context(), repo, since)
	if err != nil || !more || len(list) < all-100 {
		t.Fatalf("%d listed, more %v, %v", len(list), more, err)
	}
	rest, more, err := c.ChangedSince(t.Context(), repo, list[len(list)-1].Updated.Add(time.Second))
	if err != nil || more {
		t.Fatalf("more %v, %v", more, err)
	}
	numbered(t, append(list, rest...), all)
}
