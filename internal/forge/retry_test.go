package forge

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/render"
)

func TestReadIsTriedThreeTimes(t *testing.T) {
	for name, broken := range map[string]fault{
		"502": status(502, "<html>Bad gateway</html>"), "503": message(503, "down"), "aborted": abortBefore, "cut": cutAfter, "garbage": status(200, "<html>"),
		"empty": status(200, ""),
	} {
		t.Run(name, func(t *testing.T) {
			h, c := start(t)
			h.fail(issueRoute, broken, broken)
			issue, err := c.Issues.Get(t.Context(), h.repo, 1)
			if err != nil || issue.Title != "Broken" || issue.Author.Login != "ann" {
				t.Fatalf("%+v, %v", issue, err)
			}
			if n := len(h.calls(issueRoute)); n != 3 || len(h.clock.slept) != 2 || h.clock.total() > 2*time.Second {
				t.Errorf("%d calls, slept %v", n, h.clock.slept)
			}
		})
	}
}

func TestLastErrorIsReturnedAfterThreeTries(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, status(502, ""), status(502, ""), status(502, "<html>"))
	_, err := c.Issues.Get(t.Context(), h.repo, 1)
	if !errors.Is(err, ErrUnavailable) || len(h.calls(issueRoute)) != 3 {
		t.Fatalf("err = %v after %d calls", err, len(h.calls(issueRoute)))
	}
	for _, part := range []string{"GET ", "/repos/octo/hello/issues/1: 502 Bad Gateway", "githubstatus.com"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestUnreachableServerIsUnavailable(t *testing.T) {
	h, _ := start(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	c, err := New(Config{WebURL: gone.URL, APIURL: gone.URL, AppID: testApp, PrivateKey: h.PrivateKeyPEM(), Sleep: h.clock.Sleep})
	h.must(err)
	_, err = c.Issues.Get(t.Context(), h.repo, 1)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("err = %v", err)
	}
}

func TestLostAnswerHasNoSecondEffect(t *testing.T) {
	for name, lost := range map[string]fault{"aborted": abortAfter, "502": badGatewayAfter, "cut": cutAfter} {
		t.Run(name, func(t *testing.T) {
			h, c := start(t)
			sha := h.branch()
			h.fail(commentRoute, lost)
			h.fail(checkRoute, lost)
			h.fail(pullRoute, lost)
			comment, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- pawl:1 -->")
			if err != nil || len(h.comments()) != 1 || comment.ID != h.comments()[0].ID {
				t.Errorf("comment %+v, %v; %d at GitHub", comment, err, len(h.comments()))
			}
			if h.clock.total() < settle {
				t.Errorf("looked up after %v, while GitHub may still be writing", h.clock.total())
			}
			run, err := c.Checks.Create(t.Context(), h.repo, CheckRun{Name: "pawl", HeadSHA: sha, ExternalID: "x", Status: "queued"})
			if err != nil || len(h.checks()) != 1 || run.ID != h.checks()[0].ID {
				t.Errorf("check run %+v, %v; %d at GitHub", run, err, len(h.checks()))
			}
			opened, err := c.PullRequests.Create(t.Context(), h.repo, NewPull{Title: render.Subject("T", 72), Head: "pawl/issue-1", Base: "main"})
			if err != nil || opened.Number != 2 || len(h.pulls()) != 1 {
				t.Errorf("pull %+v, %v; %d at GitHub", opened, err, len(h.pulls()))
			}
			done := CheckRun{Name: "pawl", HeadSHA: sha, Status: "completed", Conclusion: "success", Output: Output{Title: "T", Summary: "S"}}
			if got, err := c.Checks.Update(t.Context(), h.repo, run.ID, done); err != nil || h.checks()[0].Conclusion != "success" {
				t.Errorf("check run %+v, %v", got, err)
			}
			if left := h.ClearFaults(); left != 0 || len(h.Unknown()) != 0 {
				t.Errorf("%d faults were not hit; requests without a documented route: %v", left, h.Unknown())
			}
		})
	}
}

func TestALostRequestIsSentAgain(t *testing.T) {
	h, c := start(t)
	sha := h.branch()
	h.fail(commentRoute, abortBefore, status(502, ""))
	h.fail(checkRoute, abortBefore)
	h.fail(pullRoute, status(500, ""))
	if _, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- pawl:1 -->"); err != nil || len(h.comments()) != 1 {
		t.Errorf("%v; %d comments", err, len(h.comments()))
	}
	if _, err := c.Checks.Create(t.Context(), h.repo, CheckRun{Name: "pawl", HeadSHA: sha, ExternalID: "x"}); err != nil || len(h.checks()) != 1 {
		t.Errorf("%v; %d check runs", err, len(h.checks()))
	}
	if _, err := c.PullRequests.Create(t.Context(), h.repo, NewPull{Title: render.Subject("T", 72), Head: "pawl/issue-1", Base: "main"}); err != nil || len(h.pulls()) != 1 {
		t.Errorf("%v; %d pulls", err, len(h.pulls()))
	}
}

func TestAnswerLostAtTheLastTryIsStillLookedUp(t *testing.T) {
	h, c := start(t)
	h.fail(commentRoute, abortBefore, abortBefore, abortAfter)
	made, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- pawl:1 -->")
	if err != nil || made.ID != h.comments()[0].ID || len(h.calls(commentRoute)) != 3 {
		t.Errorf("%+v, %v after %d tries", made, err, len(h.calls(commentRoute)))
	}
}

func TestCreationIsNotRepeatedIfLookUpFails(t *testing.T) {
	h, c := start(t)
	h.fail(commentRoute, abortAfter)
	down := status(503, "")
	h.fail(listRoute, down, down, down)
	_, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- pawl:1 -->")
	if !errors.Is(err, ErrUnavailable) || len(h.calls(commentRoute)) != 1 {
		t.Errorf("%v after %d tries", err, len(h.calls(commentRoute)))
	}
}

func TestEditsAndReactionsAreRepeated(t *testing.T) {
	h, c := start(t)
	run := h.checkRun()
	pull, err := h.OpenPull(t.Context(), fullName, "ann", fakegithub.PullRequest{Title: "Fix", Head: "pawl/issue-1"})
	h.must(err)
	remark, err := h.ReviewComment(t.Context(), fullName, pull, "ann", "a.txt", 1, "why?")
	h.must(err)
	comment, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "one", "<!-- pawl:1 -->")
	if err != nil {
		t.Fatal(err)
	}
	h.fail(editRoute, abortAfter)
	h.fail(updateRoute, status(502, ""))
	h.fail("POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", abortAfter)
	if got, err := c.Issues.EditComment(t.Context(), h.repo, comment.ID, "two", "<!-- pawl:1 -->"); err != nil || got.Body != "two\n\n<!-- pawl:1 -->" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Checks.Update(t.Context(), h.repo, run.ID, CheckRun{Name: "pawl", HeadSHA: run.HeadSHA}); err != nil {
		t.Error(err)
	}
	for on, id := range map[string]int64{"issue": 1, "issue_comment": comment.ID, "review_comment": remark} {
		if err := c.Issues.React(t.Context(), h.repo, on, id, Eyes); err != nil {
			t.Errorf("%s: %v", on, err)
		}
	}
}

func TestACancelledCallStops(t *testing.T) {
	h, c := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.fail(issueRoute, fault{Answer: func(http.ResponseWriter, *http.Request, http.Handler) { cancel(); panic(http.ErrAbortHandler) }})
	_, err := c.Issues.Get(ctx, h.repo, 1)
	if !errors.Is(err, context.Canceled) || len(h.calls(issueRoute)) != 1 {
		t.Errorf("%v after %d calls", err, len(h.calls(issueRoute)))
	}
}

func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	h, c := start(t)
	flood := fault{Answer: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		chunk := []byte(`"` + strings.Repeat("x", 1<<20) + `",`)
		_, _ = w.Write([]byte(`{"labels":[`))
		for range 40 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}}
	h.fail(issueRoute, flood, flood, flood)
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("err = %.200v", err)
	}
}

func TestRefusalsMapToKinds(t *testing.T) {
	for _, tt := range []struct {
		fault fault
		kind  error
	}{
		{message(404, "Not Found"), ErrNotFound},
		{message(410, "This issue was deleted"), ErrGone},
		{message(403, "Resource not accessible by integration"), ErrForbidden},
		{message(403, "This installation has been suspended"), ErrUninstalled},
		{message(422, "Validation Failed"), ErrInvalid},
		{message(451, "Repository access blocked"), ErrForbidden},
	} {
		h, c := start(t)
		h.fail(issueRoute, tt.fault)
		_, err := c.Issues.Get(t.Context(), h.repo, 1)
		var full *Error
		if !errors.Is(err, tt.kind) || !errors.As(err, &full) || full.Hint == "" || full.Message == "" {
			t.Errorf("want %v, got %v", tt.kind, err)
		}
		if n := len(h.calls(issueRoute)); n != 1 {
			t.Errorf("%v: %d calls, want 1", tt.kind, n)
		}
	}
}

func TestStatsCountEveryRequest(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, status(502, ""))
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"POST /app/installations/{installation}/access_tokens": 1, "GET /repos/{owner}/{repo}/issues/{number}": 2}
	if got := c.counted(t, "pawl_github_requests_total"); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
