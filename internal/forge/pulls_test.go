package forge

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/render"
)

var newPull = NewPull{Title: render.Subject("Solve #1", 72), Body: "text", Head: "pawl/issue-1", Base: "main"}

func TestAPullRequestIsOpenedAsADraft(t *testing.T) {
	h, c := start(t)
	sha := h.branch()
	opened, err := c.PullRequests.Create(t.Context(), h.repo, newPull)
	if err != nil || opened.Number != 2 || !h.pulls()[0].Pull.Draft || opened.DraftRefused {
		t.Fatalf("%+v, %v", opened, err)
	}
	read, err := c.PullRequests.Get(t.Context(), h.repo, opened.Number)
	if err != nil || read.Head.Ref != "pawl/issue-1" || read.Head.SHA != sha || read.Head.Repo.FullName != "octo/hello" || read.Head.Repo.ID != h.repo.ID ||
		read.State != "open" || read.Merged() {
		t.Errorf("%+v, %v", read, err)
	}
}

func TestPullRequestIsOpenedWithoutDraftSupport(t *testing.T) {
	h, c := start(t)
	h.branch()
	h.fail(pullRoute, message(422, "Draft pull requests are not supported in this repository."))
	opened, err := c.PullRequests.Create(t.Context(), h.repo, newPull)
	if err != nil || !opened.DraftRefused || h.calls(pullRoute)[1].body["draft"] != false {
		t.Errorf("%+v, %v", opened, err)
	}
}

func TestExistingPullRequestIsReturned(t *testing.T) {
	h, c := start(t)
	h.branch()
	for range 2 {
		opened, err := c.PullRequests.Create(t.Context(), h.repo, newPull)
		if err != nil || opened.Number != 2 || len(h.pulls()) != 1 {
			t.Errorf("%+v, %v; %d pulls", opened, err, len(h.pulls()))
		}
	}
}

func TestPullRequestOfAnEarlierTryIsReturned(t *testing.T) {
	begun := time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)
	for _, c := range []struct {
		name, state string
		created     time.Time
		again       bool
	}{
		{"open", "open", begun.Add(time.Second), false},
		{"closed meanwhile", "closed", begun.Add(time.Second), false},
		{"closed meanwhile, with a slow clock", "closed", begun.Add(-30 * time.Second), false},
		{"an earlier run's", "closed", begun.Add(-time.Hour), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, client := start(t)
			h.branch()
			h.clock.move(c.created.Sub(h.clock.Now()))
			n, err := h.OpenPull(t.Context(), fullName, "ann", fakegithub.PullRequest{Title: "Solve #1", Head: newPull.Head})
			h.must(err)
			if c.state == "closed" {
				h.must(h.ClosePull(fullName, n, "ann"))
			}
			h.clock.move(time.Hour)
			p := newPull
			p.Begun = begun
			opened, err := client.PullRequests.Create(t.Context(), h.repo, p)
			if err != nil || (opened.Number == n) == c.again || (len(h.calls(pullRoute)) == 1) != c.again {
				t.Errorf("%+v, %v; %d opened", opened, err, len(h.calls(pullRoute)))
			}
		})
	}
}

func TestAPullRequestWithoutCommitsIsRefusedWithGitHubsReason(t *testing.T) {
	h, c := start(t)
	h.fail(pullRoute, status(422, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and pawl/issue-1"}]}`))
	_, err := c.PullRequests.Create(t.Context(), h.repo, newPull)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "No commits between") {
		t.Errorf("err = %v", err)
	}
}

func TestForksBranchOfTheSameNameIsIgnored(t *testing.T) {
	h, c := start(t)
	own := `{"ref": "main", "repo": {"id": 77, "full_name": "octo/hello"}}`
	unfiltered := status(http.StatusOK, `[
		{"number": 8, "state": "open", "head": {"ref": "pawl/issue-1", "repo": {"id": 78, "full_name": "eve/hello"}}, "base": `+own+`},
		{"number": 9, "state": "open", "head": {"ref": "pawl/issue-1", "repo": null}, "base": `+own+`},
		{"number": 7, "state": "open", "head": {"ref": "other", "repo": {"id": 77, "full_name": "octo/hello"}}, "base": `+own+`}]`)
	h.fail("GET /repos/octo/hello/pulls", unfiltered, unfiltered, unfiltered)
	if open, err := c.PullRequests.From(t.Context(), h.repo, "pawl/issue-1"); len(open) != 0 || err != nil {
		t.Errorf("%+v, %v", open, err)
	}
	if found, ok, err := c.PullRequests.find(t.Context(), h.repo, "pawl/issue-1", "main", time.Time{}); ok || err != nil {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
	if found, ok, err := c.PullRequests.find(t.Context(), h.repo, "other", "main", time.Time{}); !ok || err != nil || found.Number != 7 {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
}

func TestPullRequestToAnotherBaseIsIgnored(t *testing.T) {
	h, c := start(t)
	h.branch()
	h.push("release", "c\n")
	_, err := h.OpenPull(t.Context(), fullName, "ann", fakegithub.PullRequest{Title: "Solve #1", Head: newPull.Head, Base: "release"})
	h.must(err)
	h.fail("GET /repos/octo/hello/pulls", fault{Times: -1, Answer: func(w http.ResponseWriter, r *http.Request, github http.Handler) {
		r.URL.RawQuery = "" // nothing is filtered out
		github.ServeHTTP(w, r)
	}})
	unsure := status(502, "")
	h.fail(pullRoute, unsure, unsure, unsure)
	if opened, err := c.PullRequests.Create(t.Context(), h.repo, newPull); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%+v, %v", opened, err)
	}
}
