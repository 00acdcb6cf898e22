package fakegithub_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func (h *house) say(text string) error {
	_, _, err := h.client.Issues.CreateComment(h.ctx, "acme", "tools", 1, &github.IssueComment{Body: &text})
	return err
}

func TestFaultsHitAsOftenAsRequested(t *testing.T) {
	h := newHouse(t)
	h.talk()
	h.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/{number}/comments", Skip: 1, Times: 2, Status: 502})
	h.Inject(fakegithub.Fault{Route: "GET /repos/*/*", Status: 429, Header: http.Header{"retry-after": {"7"}}})
	var got []string
	for _, text := range []string{"a", "b", "c", "d"} {
		if err := h.say(text); err == nil {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff([]string{"a", "d"}, got); diff != "" {
		t.Fatal(diff)
	}
	_, resp, err := h.client.Repositories.Get(h.ctx, "acme", "tools")
	wantStatus(t, err, 429, "Too Many Requests")
	if resp.Header.Get("Retry-After") != "7" {
		t.Fatalf("%v", resp.Header)
	}
	_, _, err = h.client.Repositories.Get(h.ctx, "acme", "tools")
	must(t, err)
	h.Inject(fakegithub.Fault{Route: "* **", Status: 500, Times: -1})
	_, _, err = h.client.Repositories.Get(h.ctx, "acme", "tools")
	wantStatus(t, err, 500, "")
	if left := h.ClearFaults(); left != 0 {
		t.Fatalf("%d faults have hits left", left)
	}
}

func TestAnswerCanBeLostAfterTheWork(t *testing.T) {
	h := newHouse(t)
	h.talk()
	h.Inject(fakegithub.Fault{Route: "POST /repos/*/*/issues/*/comments", AbortAfter: true})
	if err := h.say("done, but the answer is lost"); err == nil {
		t.Fatal("the answer arrived")
	}
	h.Inject(fakegithub.Fault{Route: "POST /repos/*/*/issues/*/comments", AbortBefore: true})
	if err := h.say("never arrived"); err == nil {
		t.Fatal("the answer arrived")
	}
	if got := h.Comments(repo, 1); len(got) != 1 || got[0].Body != "done, but the answer is lost" {
		t.Fatalf("%+v", got)
	}
}

func TestFaultCanReplaceTheAnswer(t *testing.T) {
	h := newHouse(t)
	h.talk()
	h.Inject(fakegithub.Fault{Route: "POST /repos/*/*/issues/*/comments", Answer: func(w http.ResponseWriter, r *http.Request, github http.Handler) {
		github.ServeHTTP(httptest.NewRecorder(), r)
		http.Error(w, "<html>", http.StatusBadGateway)
	}})
	if err := h.say("done, but a proxy answered"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Fatalf("err = %v, want the test's answer", err)
	}
	if got := h.Comments(repo, 1); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if err := h.say("no fault"); err != nil {
		t.Fatal(err)
	}
}

func TestAPushCanLoseItsAnswer(t *testing.T) {
	h := newHouse(t)
	token := h.installationToken()
	dir := h.clone(token)
	write(t, dir, "x", "x")
	h.commitAll(dir, "x")
	h.Inject(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", AbortAfter: true})
	if out, err := h.git(dir, token, "push", "origin", "HEAD:refs/heads/x"); err == nil {
		t.Fatalf("the answer arrived: %s", out)
	}
	if h.Branches(repo)["x"] == "" || len(h.settled("push")) != 1 {
		t.Fatal("the push was not done")
	}
}

func TestLatencyEndsWithTheRequest(t *testing.T) {
	h := newHouse(t)
	h.Inject(fakegithub.Fault{Route: "GET /repos/*/*", Latency: time.Hour})
	ctx, cancel := context.WithCancel(h.ctx)
	failed := make(chan error)
	go func() {
		_, _, err := h.client.Repositories.Get(ctx, "acme", "tools")
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestPrimaryLimitAnswers403WithTheReset(t *testing.T) {
	var clock clock
	h := newHouse(t, clock.option, func(o *fakegithub.Options) { o.RateLimit = 3 })
	auth := "Bearer " + h.installationToken()
	for range 3 {
		if status, _ := h.get("repos/acme/tools", auth); status != 200 {
			t.Fatal(status)
		}
	}
	status, header, body := h.do("GET", "repos/acme/tools", "", http.Header{"Authorization": {auth}})
	if status != 403 || header.Get("X-RateLimit-Remaining") != "0" || header.Get("X-RateLimit-Reset") == "" || !strings.Contains(body, "API rate limit exceeded") {
		t.Fatalf("%d %v %s", status, header, body)
	}
	clock.advance(time.Hour)
	if status, _ := h.get("repos/acme/tools", "Bearer "+h.installationToken()); status != 200 {
		t.Fatalf("in the next hour: %d", status)
	}
}

func TestAwaitSeesEffectsOfRequests(t *testing.T) {
	h := newHouse(t)
	h.talk()
	go h.say("hello")
	must(t, h.Await(h.ctx, func() bool { return len(h.Comments(repo, 1)) == 1 }))
	ctx, cancel := context.WithCancel(h.ctx)
	cancel()
	if err := h.Await(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
