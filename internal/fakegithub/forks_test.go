package fakegithub_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// forked lets dora fork the repository, push to it and open a pull request.
func (h *house) forked() (fork string, number int, sha string) {
	h.t.Helper()
	must(h.t, h.AddUser("dora", 104, map[string]string{repo: "read"}))
	fork, err := h.Fork(h.ctx, repo, "dora")
	must(h.t, err)
	sha, err = h.PushCommit(h.ctx, fork, "dora", fakegithub.Commit{Branch: "fix", Message: "Fix", Files: map[string]string{"fix.txt": "1\n"}})
	must(h.t, err)
	number, err = h.OpenPull(h.ctx, repo, "dora", fakegithub.PullRequest{Title: "Fix", Head: "dora:fix"})
	must(h.t, err)
	return fork, number, sha
}

func TestAPullRequestFromAForkNamesTheFork(t *testing.T) {
	h := newHouse(t)
	fork, n, sha := h.forked()
	got, _, err := h.client.PullRequests.Get(h.ctx, "acme", "tools", n)
	must(t, err)
	if got.GetHead().GetRepo().GetFullName() != "dora/tools" || !got.GetHead().GetRepo().GetFork() || got.GetHead().GetLabel() != "dora:fix" ||
		got.GetBase().GetRepo().GetFullName() != repo || got.GetBase().GetRepo().GetForksCount() != 1 || got.GetHead().GetSHA() != sha ||
		got.GetCommits() != 1 || !got.GetMaintainerCanModify() {
		t.Fatalf("%v", got)
	}
	for _, k := range h.settled("pull_request") {
		if k.at("pull_request", "head", "repo", "full_name") != fork || k.at("repository", "full_name") != repo {
			t.Fatalf("%s", k.raw)
		}
	}
	list, _, err := h.client.PullRequests.List(h.ctx, "acme", "tools", &github.PullRequestListOptions{Head: "dora:fix"})
	must(t, err)
	if len(list) != 1 || list[0].GetNumber() != n || h.Pulls(repo)[0].Pull.HeadRepo != fork {
		t.Fatalf("%v", list)
	}
	if out, err := h.git(h.clone(h.installationToken()), h.installationToken(), "fetch", "-q", "origin", "refs/pull/1/head"); err != nil {
		t.Fatalf("the head is served by the base repository: %v %s", err, out)
	}
	if out, err := h.git("", h.installationToken(), "ls-remote", h.WebURL()+"/"+fork+".git"); err == nil {
		t.Fatalf("the App is not installed on the fork: %s", out)
	}
	_, err = h.OpenPull(h.ctx, repo, "dora", fakegithub.PullRequest{Title: "Fix", Head: "dora:fix"})
	if err == nil || !strings.Contains(err.Error(), "A pull request already exists for dora:fix.") {
		t.Fatal(err)
	}
}

func TestAPushToAForkMovesItsPullRequest(t *testing.T) {
	h := newHouse(t)
	fork, n, old := h.forked()
	// A branch of the same name in the base repository is another branch.
	_, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "fix", Message: "Other", Files: map[string]string{"o.txt": "1\n"}})
	must(t, err)
	if h.Pulls(repo)[0].Pull.HeadSHA != old {
		t.Fatal("a push to the base repository moved the head of a fork")
	}
	sha, err := h.PushCommit(h.ctx, fork, "dora", fakegithub.Commit{Branch: "fix", Message: "More", Files: map[string]string{"fix.txt": "2\n"}})
	must(t, err)
	hooks := h.settled("pull_request")
	last := hooks[len(hooks)-1]
	if last.action() != "synchronize" || last.at("before") != old || last.at("after") != sha {
		t.Fatalf("%s", last.raw)
	}
	_, err = h.MergePull(h.ctx, repo, n, "wendy")
	must(t, err)
	if text, err := h.File(h.ctx, repo, "main", "fix.txt"); err != nil || text != "2\n" {
		t.Fatalf("%q %v", text, err)
	}
}

func TestADeletedForkLeavesAPullRequestWithoutHeadRepository(t *testing.T) {
	h := newHouse(t)
	fork, n, sha := h.forked()
	must(t, h.DeleteRepo(fork))
	_, raw := h.wire(h.client.Client(), "GET", "/repos/"+repo+"/pulls/1", "")
	body := decodeExactly(t, raw)
	for _, problem := range readShapes(t).check("body", body, "pull-request") {
		if !strings.HasPrefix(problem, "body.head.repo ") { // null is not in the description, but in the payloads
			t.Error(problem)
		}
	}
	head := body.(map[string]any)["head"].(map[string]any)
	if head["repo"] != nil || head["sha"] != sha || head["label"] != "dora:fix" {
		t.Fatalf("%v", head)
	}
	must(t, h.ClosePull(repo, n, "wendy"))
	_, _, err := h.client.PullRequests.Edit(h.ctx, "acme", "tools", n, &github.PullRequest{State: github.String("open")})
	wantStatus(t, err, 422, "has been deleted")
	if err := h.ReopenIssue(repo, n, "wendy"); err == nil {
		t.Fatal("a pull request without a head was opened again")
	}
	for _, k := range h.settled("pull_request") {
		for _, problem := range readShapes(t).check("body", decodeExactly(t, k.raw), "hook/pull_request."+k.action()) {
			if !strings.Contains(problem, ".head.repo ") {
				t.Error(problem)
			}
		}
	}
}

func TestChecksOfAForkNameNoPullRequest(t *testing.T) {
	h := newHouse(t)
	_, _, sha := h.forked()
	run, _, err := h.client.Checks.CreateCheckRun(h.ctx, "acme", "tools", github.CreateCheckRunOptions{Name: "pawl", HeadSHA: sha})
	must(t, err)
	if len(run.PullRequests) != 0 {
		t.Fatalf("%v", run.PullRequests)
	}
}

func TestAPublicRepositoryIsReadByEverybodyAndWrittenByFew(t *testing.T) {
	h := newHouse(t)
	must(t, h.MakePublic(repo))
	if status, _, body := h.do("GET", "repos/"+repo, "", nil); status != 200 || !strings.Contains(body, `"visibility":"public"`) {
		t.Fatalf("%d %s", status, body)
	}
	if status, _, _ := h.do("POST", "repos/"+repo+"/issues", `{"title": "x"}`, nil); status != http.StatusUnauthorized {
		t.Fatalf("an issue without credentials: %d", status)
	}
	if out, err := h.git("", "", "-c", "http.extraHeader=", "ls-remote", h.WebURL()+"/"+repo+".git"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	level, _, err := h.client.Repositories.GetPermissionLevel(h.ctx, "acme", "tools", "noone")
	must(t, err)
	if diff := cmp.Diff("read", level.GetPermission()); diff != "" {
		t.Fatal(diff)
	}
	_, err = h.OpenIssue(repo, "noone", "hello", "")
	must(t, err)
	if got := h.settled("issues")[0].at("issue", "author_association"); got != "NONE" {
		t.Fatalf("a passer-by is %v", got)
	}
}

func TestATokenOfAnotherRepositoryOnlyReadsAPublicOne(t *testing.T) {
	h := newHouse(t)
	must(t, h.AddRepo(h.ctx, "other/open", map[string]string{"a": "b"}))
	must(t, h.MakePublic("other/open"))
	_, _, err := h.client.Repositories.Get(h.ctx, "other", "open")
	must(t, err)
	_, _, err = h.client.Issues.Create(h.ctx, "other", "open", &github.IssueRequest{Title: github.String("x")})
	wantStatus(t, err, 403, "Resource not accessible by integration")
}

func TestAProtectedBranchRefusesPushesInGitHubsWords(t *testing.T) {
	h := newHouse(t)
	must(t, h.Protect(repo, "main"))
	token := h.installationToken()
	dir := h.clone(token)
	write(t, dir, "x", "x")
	h.commitAll(dir, "x")
	out, err := h.git(dir, token, "push", "origin", "HEAD:main", "HEAD:side")
	if err == nil || !strings.Contains(out, "remote: error: GH006: Protected branch update failed for refs/heads/main.") ||
		!strings.Contains(out, "remote: - Changes must be made through a pull request.") || !strings.Contains(out, "declined") {
		t.Fatalf("%v %s", err, out)
	}
	if h.Branches(repo)["side"] == "" {
		t.Fatalf("the other branch of the push is not protected: %s", out)
	}
	branch, _, err := h.client.Repositories.GetBranch(h.ctx, "acme", "tools", "main", 0)
	must(t, err)
	if !branch.GetProtected() {
		t.Fatal("the branch does not say that it is protected")
	}
}
