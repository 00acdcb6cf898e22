package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	issueRoute   = "GET /repos/octo/hello/issues/3"
	commentRoute = "POST /repos/octo/hello/issues/3/comments"
	checkRoute   = "POST /repos/octo/hello/check-runs"
	pullRoute    = "POST /repos/octo/hello/pulls"
)

func TestAReadIsTriedThreeTimes(t *testing.T) {
	for name, broken := range map[string]fault{
		"502": status(502, "<html>Bad gateway</html>"), "503": message(503, "down"), "aborted": abortBefore, "cut": cutAfter, "garbage": status(200, "<html>"),
		"empty": status(200, ""),
	} {
		t.Run(name, func(t *testing.T) {
			h, c := start(t)
			h.fail(issueRoute, broken, broken)
			issue, err := c.Issue(t.Context(), testRepo, 3)
			if err != nil || !issue.IsPull() || issue.Author.Login != "pawl[bot]" {
				t.Fatalf("%+v, %v", issue, err)
			}
			if n := len(h.calls(issueRoute)); n != 3 || len(h.clock.slept) != 2 || h.clock.total() > 2*time.Second {
				t.Errorf("%d calls, slept %v", n, h.clock.slept)
			}
		})
	}
}

func TestAfterThreeTriesTheErrorSaysWhatHappened(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, status(502, ""), status(502, ""), status(502, "<html>"))
	_, err := c.Issue(t.Context(), testRepo, 3)
	if !errors.Is(err, ErrUnavailable) || len(h.calls(issueRoute)) != 3 {
		t.Fatalf("err = %v after %d calls", err, len(h.calls(issueRoute)))
	}
	for _, part := range []string{"GET /repos/octo/hello/issues/3", "502 Bad Gateway", "githubstatus.com"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestAServerThatCannotBeReachedIsUnavailable(t *testing.T) {
	h, c := start(t)
	h.Close()
	_, err := c.Issue(t.Context(), testRepo, 3)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("err = %v", err)
	}
}

func TestALostAnswerCausesNoSecondEffect(t *testing.T) {
	for name, lost := range map[string]fault{"aborted": abortAfter, "502": badGatewayAfter, "cut": cutAfter} {
		t.Run(name, func(t *testing.T) {
			h, c := start(t)
			h.fail(commentRoute, lost)
			h.fail(checkRoute, lost)
			h.fail(pullRoute, lost)
			comment, err := c.CreateComment(t.Context(), testRepo, 3, "hello", "<!-- pawl:1 -->")
			if err != nil || comment.ID != 1 || len(h.comments) != 1 {
				t.Errorf("comment %+v, %v; %d at GitHub", comment, err, len(h.comments))
			}
			if h.clock.total() < settle {
				t.Errorf("looked it up after %v, while GitHub may still be doing it", h.clock.total())
			}
			run, err := c.CreateCheckRun(t.Context(), testRepo, CheckRun{Name: "pawl", HeadSHA: "abc", ExternalID: "x", Status: "queued"})
			if err != nil || run.ID != 1 || len(h.checks) != 1 {
				t.Errorf("check run %+v, %v; %d at GitHub", run, err, len(h.checks))
			}
			opened, err := c.CreatePull(t.Context(), testRepo, NewPull{Title: "T", Head: "pawl/issue-3", Base: "main"})
			if err != nil || opened.Number != 10 || opened.Existed || len(h.pulls) != 1 {
				t.Errorf("pull %+v, %v; %d at GitHub", opened, err, len(h.pulls))
			}
		})
	}
}

func TestALostRequestIsSentAgain(t *testing.T) {
	h, c := start(t)
	h.fail(commentRoute, abortBefore, status(502, ""))
	h.fail(checkRoute, abortBefore)
	h.fail(pullRoute, status(500, ""))
	if _, err := c.CreateComment(t.Context(), testRepo, 3, "hello", "<!-- pawl:1 -->"); err != nil || len(h.comments) != 1 {
		t.Errorf("%v; %d comments", err, len(h.comments))
	}
	if _, err := c.CreateCheckRun(t.Context(), testRepo, CheckRun{Name: "pawl", HeadSHA: "abc", ExternalID: "x"}); err != nil || len(h.checks) != 1 {
		t.Errorf("%v; %d check runs", err, len(h.checks))
	}
	if _, err := c.CreatePull(t.Context(), testRepo, NewPull{Title: "T", Head: "b", Base: "main"}); err != nil || len(h.pulls) != 1 {
		t.Errorf("%v; %d pulls", err, len(h.pulls))
	}
}

func TestAnAnswerLostAtTheLastTryIsStillLookedUp(t *testing.T) {
	h, c := start(t)
	h.fail(commentRoute, abortBefore, abortBefore, abortAfter)
	made, err := c.CreateComment(t.Context(), testRepo, 3, "hello", "<!-- pawl:1 -->")
	if err != nil || made.ID != 1 || len(h.calls(commentRoute)) != 3 {
		t.Errorf("%+v, %v after %d tries", made, err, len(h.calls(commentRoute)))
	}
}

func TestACreationIsNotRepeatedWhenItCannotBeLookedUp(t *testing.T) {
	h, c := start(t)
	h.fail(commentRoute, abortAfter)
	down := status(503, "")
	h.fail("GET /repos/octo/hello/issues/3/comments", down, down, down)
	_, err := c.CreateComment(t.Context(), testRepo, 3, "hello", "<!-- pawl:1 -->")
	if !errors.Is(err, ErrUnavailable) || len(h.calls(commentRoute)) != 1 {
		t.Errorf("%v after %d tries", err, len(h.calls(commentRoute)))
	}
}

func TestEditsAndReactionsAreSimplyRepeated(t *testing.T) {
	h, c := start(t)
	if _, err := c.CreateComment(t.Context(), testRepo, 3, "one", "<!-- pawl:1 -->"); err != nil {
		t.Fatal(err)
	}
	h.fail("PATCH /repos/octo/hello/issues/comments/1", abortAfter)
	h.fail("PATCH /repos/octo/hello/check-runs/1", status(502, ""))
	h.fail("POST /repos/octo/hello/issues/comments/8/reactions", abortAfter)
	if got, err := c.EditComment(t.Context(), testRepo, 1, "two", "<!-- pawl:1 -->"); err != nil || got.Body != "two\n\n<!-- pawl:1 -->" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.UpdateCheckRun(t.Context(), testRepo, 1, CheckRun{Name: "pawl", HeadSHA: "abc"}, nil); err != nil {
		t.Error(err)
	}
	for on, id := range map[Target]int64{OnIssue: 3, OnIssueComment: 8, OnReviewComment: 9} {
		if err := c.React(t.Context(), testRepo, on, id, "eyes"); err != nil {
			t.Errorf("%s: %v", on, err)
		}
	}
}

func TestACancelledCallStops(t *testing.T) {
	h, c := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.fail(issueRoute, func(http.ResponseWriter, *http.Request, http.Handler) { cancel(); panic(http.ErrAbortHandler) })
	_, err := c.Issue(ctx, testRepo, 3)
	if !errors.Is(err, context.Canceled) || len(h.calls(issueRoute)) != 1 {
		t.Errorf("%v after %d calls", err, len(h.calls(issueRoute)))
	}
}

func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	h, c := start(t)
	flood := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		chunk := []byte(`"` + strings.Repeat("x", 1<<20) + `",`)
		_, _ = w.Write([]byte(`{"labels":[`))
		for range 40 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	h.fail(issueRoute, flood, flood, flood)
	if _, err := c.Issue(t.Context(), testRepo, 3); !errors.Is(err, errTooLarge) {
		t.Errorf("err = %.200v", err)
	}
}

func TestRefusalsKeepTheirKind(t *testing.T) {
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
		_, err := c.Issue(t.Context(), testRepo, 3)
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
	if _, err := c.Issue(t.Context(), testRepo, 3); err != nil {
		t.Fatal(err)
	}
	want := []Count{
		{Method: "POST", Route: "/app/installations/{installation}/access_tokens", Sent: 1},
		{Method: "GET", Route: "/repos/{owner}/{repo}/issues/{number}", Sent: 2},
	}
	got := c.Stats()
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("Stats = %v", got)
	}
}
