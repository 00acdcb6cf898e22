package fakegithub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// opened makes branch "work" with one commit and a pull request by wendy.
func (h *house) opened() (number int, head string) {
	h.t.Helper()
	head, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "work", Message: "Work", Files: map[string]string{"w.txt": "a\nb\n"}})
	must(h.t, err)
	number, err = h.OpenPull(h.ctx, repo, "wendy", fakegithub.PullRequest{Title: "Work", Head: "work", Draft: true})
	must(h.t, err)
	return number, head
}

func TestTheAppOpensADraftPullRequest(t *testing.T) {
	h := newHouse(t)
	sha, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "pawl/issue-1", Message: "Fix", Files: map[string]string{"fix.go": "x\ny\n"}})
	must(t, err)
	ask := &github.NewPullRequest{Title: github.String("Fix"), Head: github.String("pawl/issue-1"), Base: github.String("main"), Body: github.String("b"), Draft: github.Bool(true)}
	made, resp, err := h.client.PullRequests.Create(h.ctx, "acme", "tools", ask)
	must(t, err)
	if resp.StatusCode != 201 || !made.GetDraft() || made.GetHead().GetSHA() != sha || made.GetAdditions() != 2 || made.GetCommits() != 1 ||
		made.Mergeable != nil || made.GetMergeableState() != "unknown" || made.GetUser().GetType() != "Bot" || made.GetHead().GetLabel() != "acme:pawl/issue-1" {
		t.Fatalf("%v", made)
	}
	_, _, err = h.client.PullRequests.Create(h.ctx, "acme", "tools", ask)
	wantStatus(t, err, 422, "A pull request already exists for acme:pawl/issue-1.")
	found, _, err := h.client.PullRequests.List(h.ctx, "acme", "tools", &github.PullRequestListOptions{Head: "acme:pawl/issue-1", State: "all"})
	must(t, err)
	if len(found) != 1 || found[0].GetNumber() != made.GetNumber() {
		t.Fatalf("%v", found)
	}
	_, _, err = h.client.Issues.Edit(h.ctx, "acme", "tools", made.GetNumber(), &github.IssueRequest{Body: github.String("c")})
	must(t, err)
	hooks := h.settled("pull_request")
	if len(hooks) != 2 || hooks[1].at("changes", "body", "from") != "b" || hooks[0].at("pull_request", "draft") != true {
		t.Fatalf("%v", hooks)
	}
	issue, _, err := h.client.Issues.Get(h.ctx, "acme", "tools", made.GetNumber())
	must(t, err)
	if !issue.IsPullRequest() {
		t.Fatal("a pull request is also an issue")
	}
}

// "The value of the mergeable attribute can be true, false, or null. If the value is null, then GitHub has started a
// background job to compute the mergeability" (REST API, get a pull request).
func TestMergeabilityIsComputedOnRequest(t *testing.T) {
	h := newHouse(t)
	n, _ := h.opened()
	state := func() string {
		t.Helper()
		p, _, err := h.client.PullRequests.Get(h.ctx, "acme", "tools", n)
		must(t, err)
		return fmt.Sprint(p.Mergeable != nil && *p.Mergeable, " ", p.GetMergeableState())
	}
	push := func(branch, file, text string) {
		_, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: branch, Message: "x", Files: map[string]string{file: text}})
		must(t, err)
	}
	if got := []string{state(), state()}; got[0] != "false unknown" || got[1] != "true draft" {
		t.Errorf("at first %q", got)
	}
	must(t, h.RequireUpToDate(repo))
	other, err := h.OpenPull(h.ctx, repo, "wendy", fakegithub.PullRequest{Title: "Ready", Head: func() string { push("ready", "r.txt", "r"); return "ready" }()})
	must(t, err)
	push("main", "w.txt", "another\n")
	if got := []string{state(), state()}; got[0] != "false unknown" || got[1] != "false dirty" {
		t.Errorf("with a conflict %q", got)
	}
	n = other
	if got := []string{state(), state()}; got[0] != "false unknown" || got[1] != "true behind" {
		t.Errorf("behind a required base %q", got)
	}
}

func TestPullRequestsAreValidated(t *testing.T) {
	h := newHouse(t)
	must(t, func() error {
		_, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "ahead", Message: "x", Files: map[string]string{"x": "1"}})
		return err
	}())
	create := func(title, head, base string) error {
		_, _, err := h.client.PullRequests.Create(h.ctx, "acme", "tools", &github.NewPullRequest{Title: &title, Head: &head, Base: &base})
		return err
	}
	wantStatus(t, create("t", "main", "main"), 422, "No commits between main and main")
	wantStatus(t, create("t", "gone", "main"), 422, "Validation Failed")
	wantStatus(t, create("t", "ahead", "gone"), 422, "Validation Failed")
	wantStatus(t, create("", "ahead", "main"), 422, "missing_field")
}

func TestPushMovesHeadAndDeletedBranchClosesPull(t *testing.T) {
	h := newHouse(t)
	n, first := h.opened()
	second, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "work", Message: "More", Files: map[string]string{"w.txt": "c\n"}, Delete: []string{"README.md"}})
	must(t, err)
	forced, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "work", Message: "Again", Files: map[string]string{"w.txt": "d\n"}, From: "main"})
	must(t, err)
	must(t, h.DeleteBranch(h.ctx, repo, "wendy", "work"))
	var got []string
	for _, k := range h.settled("") {
		switch k.event {
		case "push":
			got = append(got, strings.Join([]string{"push", k.at("before").(string)[:7], k.at("after").(string)[:7]}, " "))
		case "pull_request", "delete", "create":
			got = append(got, strings.TrimSpace(k.event+" "+k.action()))
		}
	}
	want := []string{"push 0000000 " + first[:7], "create", "pull_request opened", "push " + first[:7] + " " + second[:7], "pull_request synchronize",
		"push " + second[:7] + " " + forced[:7], "pull_request synchronize", "push " + forced[:7] + " 0000000", "delete", "pull_request closed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	var force []bool
	for _, p := range h.Pushes(repo) {
		force = append(force, p.Forced)
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, force); diff != "" {
		t.Fatal(diff)
	}
	if err := h.ReopenIssue(repo, n, "wendy"); err == nil || !strings.Contains(err.Error(), "branch has been deleted") {
		t.Fatalf("reopened without its branch: %v", err)
	}
	if _, err := h.File(h.ctx, repo, "refs/pull/1/head", "w.txt"); err != nil {
		t.Fatalf("the head of the pull request outlives its branch: %v", err)
	}
}

func TestMergeClosesPullRequest(t *testing.T) {
	h := newHouse(t)
	n, _ := h.opened()
	sha, err := h.MergePull(h.ctx, repo, n, "wendy")
	must(t, err)
	if h.Branches(repo)["main"] != sha {
		t.Fatal("main did not move")
	}
	pull, _, err := h.client.PullRequests.Get(h.ctx, "acme", "tools", n)
	must(t, err)
	if !pull.GetMerged() || pull.GetMergedBy().GetLogin() != "wendy" || pull.GetState() != "closed" {
		t.Fatalf("%v", pull)
	}
	if text, err := h.File(h.ctx, repo, "main", "w.txt"); err != nil || text != "a\nb\n" {
		t.Fatalf("%q %v", text, err)
	}
}

func TestReviewsAndReviewComments(t *testing.T) {
	h := newHouse(t)
	n, _ := h.opened()
	_, err := h.Review(repo, n, "rita", "CHANGES_REQUESTED", "not like this")
	must(t, err)
	id, err := h.ReviewComment(h.ctx, repo, n, "rita", "w.txt", 2, "why b?")
	must(t, err)
	reviews, _, err := h.client.PullRequests.ListReviews(h.ctx, "acme", "tools", n, nil)
	must(t, err)
	comments, _, err := h.client.PullRequests.ListComments(h.ctx, "acme", "tools", n, nil)
	must(t, err)
	if len(reviews) != 2 || reviews[0].GetState() != "CHANGES_REQUESTED" || len(comments) != 1 || comments[0].GetID() != id ||
		comments[0].GetLine() != 2 || !strings.Contains(comments[0].GetDiffHunk(), "+b") {
		t.Fatalf("%v %v", reviews, comments)
	}
	_, _, err = h.client.Reactions.CreatePullRequestCommentReaction(h.ctx, "acme", "tools", id, "eyes")
	must(t, err)
	hooks := h.settled("pull_request_review")
	if len(hooks) != 2 || hooks[0].at("review", "state") != "changes_requested" || len(h.settled("pull_request_review_comment")) != 1 {
		t.Fatalf("%v", hooks)
	}
}
