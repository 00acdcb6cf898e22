package forge

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var newPull = NewPull{Title: "Solve #3", Body: "text", Head: "pawl/issue-3", Base: "main", Draft: true}

func TestAPullRequestIsOpenedAsADraft(t *testing.T) {
	_, c := start(t)
	opened, err := c.CreatePull(t.Context(), testRepo, newPull)
	if err != nil || opened.Number != 10 || !opened.Draft || opened.DraftRefused || opened.Existed {
		t.Fatalf("%+v, %v", opened, err)
	}
	read, err := c.Pull(t.Context(), testRepo, 10)
	if err != nil || read.Head.Ref != "pawl/issue-3" || read.Head.SHA != "abc" || read.Head.Repo.FullName != "octo/hello" || read.Head.Repo.ID != 77 ||
		read.State != "open" || read.Merged() {
		t.Errorf("%+v, %v", read, err)
	}
}

func TestWhereDraftsAreRefusedAnOrdinaryOneIsOpened(t *testing.T) {
	h, c := start(t)
	h.fail(pullRoute, message(422, "Draft pull requests are not supported in this repository."))
	opened, err := c.CreatePull(t.Context(), testRepo, newPull)
	if err != nil || opened.Draft || !opened.DraftRefused || h.calls(pullRoute)[1].body["draft"] != false {
		t.Errorf("%+v, %v", opened, err)
	}
}

func TestAnOpenPullRequestIsReturnedInsteadOfASecond(t *testing.T) {
	h, c := start(t)
	for _, existed := range []bool{false, true} {
		opened, err := c.CreatePull(t.Context(), testRepo, newPull)
		if err != nil || opened.Number != 10 || opened.Existed != existed || len(h.pulls) != 1 {
			t.Errorf("%+v, %v; %d pulls", opened, err, len(h.pulls))
		}
	}
}

func TestWhatAnEarlierTryOpenedIsNotOpenedAgain(t *testing.T) {
	begun := time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)
	for _, c := range []struct {
		name, state string
		created     time.Time
		again       bool
	}{
		{"open", "open", begun.Add(time.Second), false},
		{"closed meanwhile", "closed", begun.Add(time.Second), false},
		{"closed meanwhile, by a clock that is behind", "closed", begun.Add(-30 * time.Second), false},
		{"of an earlier run", "closed", begun.Add(-time.Hour), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, client := start(t)
			repo := map[string]any{"id": 77, "full_name": "octo/hello"}
			side := func(ref string) map[string]any { return map[string]any{"ref": ref, "repo": repo} }
			h.pulls = []map[string]any{{"number": 7, "state": c.state, "created_at": c.created.Format(time.RFC3339), "head": side(newPull.Head), "base": side("main")}}
			p := newPull
			p.Begun = begun
			opened, err := client.CreatePull(t.Context(), testRepo, p)
			if err != nil || opened.Existed == c.again || (len(h.calls(pullRoute)) == 1) != c.again {
				t.Errorf("%+v, %v; %d opened", opened, err, len(h.calls(pullRoute)))
			}
		})
	}
}

func TestAPullRequestWithoutCommitsIsRefusedWithGitHubsReason(t *testing.T) {
	h, c := start(t)
	h.fail(pullRoute, status(422, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and pawl/issue-3"}]}`))
	_, err := c.CreatePull(t.Context(), testRepo, newPull)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "No commits between") {
		t.Errorf("err = %v", err)
	}
}

func TestAForksBranchOfTheSameNameIsNotPawls(t *testing.T) {
	h, c := start(t)
	base := map[string]any{"ref": "main", "repo": map[string]any{"id": 77, "full_name": "octo/hello"}}
	h.pulls = []map[string]any{
		{"number": 8, "state": "open", "head": map[string]any{"ref": "pawl/issue-3", "repo": map[string]any{"id": 78, "full_name": "eve/hello"}}, "base": base},
		{"number": 9, "state": "open", "head": map[string]any{"ref": "pawl/issue-3", "repo": nil}, "base": base},
		{"number": 7, "state": "open", "head": map[string]any{"ref": "other", "repo": base["repo"]}, "base": base},
	}
	if found, ok, err := c.findPull(t.Context(), testRepo, "pawl/issue-3", "main", time.Time{}); ok || err != nil {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
	if found, ok, err := c.findPull(t.Context(), testRepo, "other", "main", time.Time{}); !ok || err != nil || found.Number != 7 {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
}

func TestAPullRequestToAnotherBaseIsNotTheOneThatWasLost(t *testing.T) {
	h, c := start(t)
	repo := map[string]any{"id": 77, "full_name": "octo/hello"}
	h.pulls = []map[string]any{{"number": 7, "state": "open", "head": map[string]any{"ref": newPull.Head, "repo": repo}, "base": map[string]any{"ref": "release", "repo": repo}}}
	unsure := status(502, "")
	h.fail(pullRoute, unsure, unsure, unsure)
	if opened, err := c.CreatePull(t.Context(), testRepo, newPull); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%+v, %v", opened, err)
	}
}
