package fakegithub_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestLimitCheckerEnforcesDocumentedLimits(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	refused := func(status int, header http.Header, text string, after time.Duration) func(*fakegithub.LimitChecker) string {
		return func(w *fakegithub.LimitChecker) string {
			w.Arrive(noon, "GET", "/x")
			w.Leave(noon, status, header, text)
			return w.Arrive(noon.Add(after), "GET", "/x")
		}
	}
	many := func(n int, request string, gap, then time.Duration, leave bool) func(*fakegithub.LimitChecker) string {
		return func(w *fakegithub.LimitChecker) string {
			now := noon
			method, path, _ := strings.Cut(request, " ")
			for range n {
				if broken := w.Arrive(now, method, path); broken != "" {
					return "early: " + broken
				}
				if leave {
					w.Leave(now, 200, nil, "")
				}
				now = now.Add(gap)
			}
			return w.Arrive(now.Add(then-gap), method, path)
		}
	}
	later := http.Header{"Retry-After": {"30"}}
	for _, tt := range []struct {
		name string
		do   func(*fakegithub.LimitChecker) string
		want string
	}{
		{"a hundred at once", many(99, "GET", 0, 0, false), ""},
		{"one more", many(100, "GET", 0, 0, false), "101 requests at once"},
		{"900 points", many(899, "GET", 0, 0, true), ""},
		{"901 points", many(900, "GET", 0, 0, true), "901 points within a minute"},
		{"901 points within more than a minute", many(900, "GET", 0, time.Minute, true), ""},
		{"80 writes in a minute", many(79, "POST", time.Millisecond, time.Millisecond, true), ""},
		{"81 writes in a minute", many(80, "PATCH", time.Millisecond, time.Millisecond, true), "81 content writes within a minute"},
		{"81 writes in more than a minute", many(80, "POST", time.Millisecond, time.Minute, true), ""},
		{"81 check runs in a minute", many(80, "POST /repos/octo/hello/check-runs", time.Millisecond, time.Millisecond, true), ""},
		{"500 writes in an hour", many(499, "POST", 7*time.Second, 7*time.Second, true), ""},
		{"501 writes in an hour", many(500, "POST", 7*time.Second, 7*time.Second, true), "501 content writes within an hour"},
		{"501 check runs in an hour", many(500, "POST /repos/octo/hello/check-runs", 7*time.Second, 7*time.Second, true), ""},
		{"a request during a retry-after", refused(429, later, "", 29*time.Second), "a request 1s before the end of the wait that was asked for"},
		{"a request already on the way", refused(429, later, "", time.Second), ""},
		{"a request after a retry-after", refused(403, later, "", 30*time.Second), ""},
		{"a refusal that names no time", refused(403, nil, "You have exceeded a secondary rate limit.", 59*time.Second), "a request 1s before the end of the wait that was asked for"},
		{"the hourly limit", refused(403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1795262700"}}, "", 4*time.Minute), "a request 1m0s before the end of the wait that was asked for"},
		{"a missing permission", refused(403, nil, "Resource not accessible by integration", 2*time.Second), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.do(new(fakegithub.LimitChecker)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBrokenLimitBlocksPermanently(t *testing.T) {
	var clock clock
	h := newHouse(t, clock.option)
	h.talk()
	clock.advance(time.Minute)
	h.Strict()
	for n := range 80 {
		must(t, h.say(fmt.Sprint("remark ", n)))
	}
	clock.advance(500 * time.Millisecond)
	if err := h.say("too soon"); err == nil {
		t.Fatal("the write was accepted")
	}
	clock.advance(time.Hour)
	status, body := h.get("repos/acme/tools", "Bearer "+h.installationToken())
	if status != http.StatusForbidden || !strings.Contains(body, "blocked") {
		t.Errorf("an hour later: %d %s", status, body)
	}
	if v := h.Violations(); len(v) != 1 || v[0].Method+" "+v[0].Path != "POST /repos/acme/tools/issues/1/comments" || v[0].Rule != "81 content writes within a minute" {
		t.Errorf("%+v", v)
	}
	if got := len(h.Comments(repo, 1)); got != 80 {
		t.Errorf("%d comments", got)
	}
}

func TestRequestAfterThePrimaryLimitIsAViolation(t *testing.T) {
	var clock clock
	h := newHouse(t, clock.option, func(o *fakegithub.Options) { o.RateLimit = 2 })
	auth := "Bearer " + h.installationToken()
	h.Strict()
	for _, want := range []int{200, 200, 403} {
		if status, body := h.get("repos/acme/tools", auth); status != want {
			t.Fatalf("%d %s, want %d", status, body, want)
		}
	}
	if v := h.Violations(); len(v) != 0 {
		t.Errorf("being refused once is not a violation: %v", v)
	}
	clock.advance(10 * time.Second)
	h.get("repos/acme/tools", auth)
	if v := h.Violations(); len(v) != 1 || !strings.Contains(v[0].Rule, "before the end of the wait") {
		t.Errorf("%v", v)
	}
}
