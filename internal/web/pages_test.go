package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

var (
	styleElement  = regexp.MustCompile(`(?s)<style>(.*)</style>`)
	scriptElement = regexp.MustCompile(`(?s)<script>(.*)</script>`)
)

func golden(t *testing.T, name, page string) {
	t.Helper()
	page = scriptElement.ReplaceAllString(styleElement.ReplaceAllString(page, "<style>…</style>"), "<script>…</script>")
	goldentest.Compare(t, filepath.Join("testdata", name+".golden.html"), page)
}

func TestPageGoldens(t *testing.T) {
	s := open(t, func(o *web.Options) { o.Learning = learnt })
	golden(t, "empty", s.page("/"))
	golden(t, "learning", s.page("/backends"))
	s.everything()
	golden(t, "threads", s.page("/"))
	golden(t, "accounts", s.page("/accounts"))
	golden(t, "solved", s.page("/threads/acme/widgets/7"))
	golden(t, "looping", s.page("/threads/acme/widgets/9"))
	golden(t, "limited", s.page("/threads/acme/gadgets/41"))
	golden(t, "busy", s.page("/threads/acme/gadgets/44"))
	s.escalating()
	golden(t, "escalating", s.page("/threads/acme/gears/12"))
}

func TestPawlsPullRequestRedirectsToItsIssue(t *testing.T) {
	s := open(t, nil)
	s.solved()
	s.leased("acme/widgets#7", thread.Batch{Alias: 8})
	answer, _ := s.get("/threads/acme/widgets/8")
	if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusFound || got != "../../../threads/acme/widgets/7" {
		t.Errorf("%s to %q", answer.Status, got)
	}
}

func TestMissingPagesAre404(t *testing.T) {
	s := open(t, nil)
	s.solved()
	for _, path := range []string{
		"/threads/acme/widgets/1", "/threads/acme/widgets/0", "/threads/acme/widgets/-7", "/threads/acme/widgets/x", "/threads/acme/widgets/99999999999999999999",
		"/threads/acme/widgets/7/", "/threads/acme/widgets", "/threads/", "/threads/a%2Fb/widgets/7", "/threads/acme/a%23b/7", "/favicon.ico", "/debug/pprof/", "/api/github/", "/index.html",
	} {
		if answer, body := s.get(path); answer.StatusCode != http.StatusNotFound || strings.Contains(body, "widgets") {
			t.Errorf("%s: %s %q", path, answer.Status, body)
		}
	}
}

func TestPagesAcceptOnlyReads(t *testing.T) {
	s := open(t, nil)
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		if _, body := s.sendPublic(method, "/api/github/hook"); body != "hook "+method {
			t.Errorf("%s reached %q", method, body)
		}
	}
	for _, path := range []string{"/", "/threads/acme/widgets/7", "/healthz", "/readyz", "/metrics"} {
		if answer, _ := s.send("POST", path); answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %s", path, answer.Status)
		}
	}
	if answer, body := s.send("HEAD", "/"); answer.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD /: %s %q", answer.Status, body)
	}
}

func TestSecurityHeaders(t *testing.T) {
	s := open(t, nil)
	s.everything()
	for _, path := range []string{"/", "/threads/acme/widgets/7", "/threads/acme/widgets/404", "/healthz", "/readyz", "/metrics"} {
		answer, _ := s.get(path)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
		} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
}

func TestContentSecurityPolicyAllowsTheStyle(t *testing.T) {
	s := open(t, nil)
	answer, body := s.get("/")
	policy := answer.Header.Get("Content-Security-Policy")
	for directive, element := range map[string]*regexp.Regexp{"style-src ": styleElement, "script-src ": scriptElement} {
		sum := sha256.Sum256([]byte(element.FindStringSubmatch(body)[1]))
		if want := directive + "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(body, " style=") || strings.Count(body, "<script") != 1 {
		t.Error("the page contains a style attribute or another script, which the policy forbids")
	}
}

func TestUnreadableEventIsNamedAndTheRestShown(t *testing.T) {
	s := open(t, nil)
	s.everything()
	s.happened("acme/widgets#7", now, thread.KindDecision, []int{1})
	page := s.page("/threads/acme/widgets/7")
	for _, want := range []string{"The thread cannot be shown: thread acme/widgets#7: the log is damaged: event 11 (decision)", "attempt 2 changed the tree and the verify commands passed", "unreadable"} {
		if !strings.Contains(page, want) {
			t.Errorf("the thread's page lacks %q", want)
		}
	}
	status := s.page("/")
	if !strings.Contains(status, "event 11 (decision)") || !strings.Contains(status, "acme/widgets#9") {
		t.Error("the status page does not show both the broken thread and the others")
	}
}

func TestEventOfANewerVersionIsListed(t *testing.T) {
	s := open(t, nil)
	s.solved()
	s.happened("acme/widgets#7", now, "graded", map[string]any{"grade": 0.4})
	if page := s.page("/threads/acme/widgets/7"); !strings.Contains(page, "<b>graded</b>") {
		t.Error("the event log does not list it")
	}
}

func TestLongLogsShowTheNewestAndCountTheRest(t *testing.T) {
	s := open(t, nil)
	s.solved()
	for n := range 300 {
		s.happened("acme/widgets#7", now, thread.KindIgnored, remark(policy.FromComment, "octocat", "", fmt.Sprintf("reason %d", n), "text"))
	}
	page := s.page("/threads/acme/widgets/7")
	if !strings.Contains(page, "110 earlier ones not shown") || !strings.Contains(page, "reason 299") || strings.Contains(page, "reason 99<") {
		t.Error("the log is not cut to its newest 200 events")
	}
}

func TestLostDatabaseShowsNoDetails(t *testing.T) {
	s := open(t, nil)
	s.solved()
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/threads/acme/widgets/7"} {
		answer, body := s.get(path)
		if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "The database or GitHub did not answer") || strings.Contains(body, "sql:") {
			t.Errorf("%s: %s %q", path, answer.Status, body)
		}
	}
	if !strings.Contains(s.log.String(), "sql: database is closed") {
		t.Errorf("the log does not name the reason: %s", s.log)
	}
}

func TestAccountLimits(t *testing.T) {
	for name, c := range map[string]struct {
		b    policy.Breaker
		want string
	}{
		"one":     {policy.Breaker{Kind: policy.UsageLimit, Consecutive: 1}, "1 × usage limit in a row, opens at 3, reset unknown"},
		"login":   {policy.Breaker{Kind: policy.Auth, Consecutive: 4}, "4 × auth in a row, open, reset unknown"},
		"elapsed": {policy.Breaker{Kind: policy.UsageLimit, Consecutive: 3, ResetsAt: now.Add(-time.Hour)}, "3 × usage limit in a row, closed, was reset at 07:51 UTC"},
		"seconds": {policy.Breaker{Kind: policy.UsageLimit, Consecutive: 3, ResetsAt: now.Add(40 * time.Second)}, "open, under a minute left (until 08:51 UTC)"},
		"days":    {policy.Breaker{Kind: policy.UsageLimit, Consecutive: 3, ResetsAt: now.Add(75 * time.Hour)}, "open, 3d 3h left (until 2026-03-07 11:51 UTC)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			s.happened("acme/widgets#1", now, thread.KindFeedback, remark(policy.FromComment, "octocat", "solve", "command solve", ""))
			s.leased("acme/widgets#1", thread.Batch{Account: "main", Breaker: func(policy.Breaker) policy.Breaker { return c.b }})
			if page := s.page("/accounts"); !strings.Contains(page, c.want) {
				t.Errorf("the page does not say %q", c.want)
			}
		})
	}
}
