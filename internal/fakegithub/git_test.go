package fakegithub_test

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestCloneCommitAndPushWithAnInstallationToken(t *testing.T) {
	h := newHouse(t)
	token := h.installationToken()
	dir := h.clone(token)
	if text, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || string(text) != "hello\n" {
		t.Fatalf("%q %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Fatalf("run.sh is not executable: %v", err)
	}
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	write(t, dir, "big.txt", hex.EncodeToString(noise)) // more than git sends without chunking
	h.commitAll(dir, "Fix")
	if out, err := h.git(dir, token, "push", "origin", "HEAD:refs/heads/pawl/issue-1"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	// The push is visible as soon as git returns.
	pull, _, err := h.client.PullRequests.Create(h.ctx, "acme", "tools", &github.NewPullRequest{Title: github.String("Fix"), Head: github.String("pawl/issue-1"), Base: github.String("main")})
	must(t, err)
	pushes := h.settled("push")
	if len(pushes) != 1 || pushes[0].at("sender", "login") != "pawl[bot]" || pushes[0].at("ref") != "refs/heads/pawl/issue-1" || pushes[0].at("head_commit", "message") != "Fix" ||
		pushes[0].at("created") != true || pushes[0].at("after") != pull.GetHead().GetSHA() {
		t.Fatalf("%v", pushes)
	}
	write(t, dir, "more.txt", "more")
	h.commitAll(dir, "More")
	if out, err := h.git(dir, token, "push", "origin", "HEAD:refs/heads/pawl/issue-1"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if sync := h.settled("pull_request"); len(sync) != 2 || sync[1].action() != "synchronize" || sync[1].at("pull_request", "head", "sha") != h.Branches(repo)["pawl/issue-1"] {
		t.Fatalf("%v", sync)
	}
}

func (h *house) commitAll(dir, message string) {
	h.t.Helper()
	if out, err := h.git(dir, "", "add", "-A"); err != nil {
		h.t.Fatalf("%v %s", err, out)
	}
	if out, err := h.git(dir, "", "commit", "-q", "-m", message); err != nil {
		h.t.Fatalf("%v %s", err, out)
	}
}

func TestGitAccessFollowsPermissions(t *testing.T) {
	h := newHouse(t)
	url := h.WebURL() + "/" + repo + ".git"
	id, err := h.InstallationID(repo)
	must(t, err)
	reader, _, err := h.app.Apps.CreateInstallationToken(h.ctx, id, &github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{Contents: github.String("read")}})
	must(t, err)
	rita, err := h.UserToken("rita")
	must(t, err)
	stranger, err := h.UserToken("noone")
	must(t, err)
	dir := h.clone(reader.GetToken())
	write(t, dir, "x", "x")
	h.commitAll(dir, "x")
	for name, c := range map[string]struct{ token, command, want string }{
		"wrong token":               {"ghs_wrong", "ls-remote", "prompts disabled"},
		"stranger":                  {stranger, "ls-remote", "not found"},
		"App with read permission":  {reader.GetToken(), "push", "403"},
		"user with read permission": {rita, "push", "403"},
		"App with write permission": {h.installationToken(), "push", ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"ls-remote", url}
			if c.command == "push" {
				args = []string{"push", url, "HEAD:refs/heads/x"}
			}
			out, err := h.git(dir, c.token, args...)
			if (err == nil) != (c.want == "") || !strings.Contains(out, c.want) {
				t.Fatalf("%v %s", err, out)
			}
		})
	}
}

func TestAnAppMayNotPushWorkflows(t *testing.T) {
	h := newHouse(t)
	token, err := h.UserToken("wendy")
	must(t, err)
	dir := h.clone(h.installationToken())
	write(t, dir, ".github/workflows/ci.yml", "on: push\n")
	h.commitAll(dir, "CI")
	out, err := h.git(dir, h.installationToken(), "push", "origin", "HEAD:refs/heads/ci")
	if err == nil || !strings.Contains(out, "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission") {
		t.Fatalf("%v %s", err, out)
	}
	if diff := cmp.Diff([]string{"main"}, keys(h.Branches(repo))); diff != "" {
		t.Fatal(diff)
	}
	if out, err := h.git(dir, token, "push", "origin", "HEAD:refs/heads/ci"); err != nil {
		t.Fatalf("a user may: %v %s", err, out)
	}
	// The App may push commits that GitHub already has.
	write(t, dir, "y", "y")
	h.commitAll(dir, "y")
	if out, err := h.git(dir, h.installationToken(), "push", "origin", "HEAD:refs/heads/ci2"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

func keys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestForcePushesAreAllowedAndRecorded(t *testing.T) {
	h := newHouse(t)
	n, old := h.opened()
	token := h.installationToken()
	dir := h.clone(token)
	write(t, dir, "other", "1")
	h.commitAll(dir, "Other history")
	if out, err := h.git(dir, token, "push", "origin", "HEAD:work"); err == nil {
		t.Fatalf("not a fast-forward: %s", out)
	}
	if out, err := h.git(dir, token, "push", "--force", "origin", "HEAD:work"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	pushes := h.Pushes(repo)
	last := pushes[len(pushes)-1]
	if !last.Forced || last.Before != old || last.By != "pawl[bot]" || h.Pulls(repo)[n-1].Pull.HeadSHA != last.After {
		t.Fatalf("%+v", last)
	}
	if out, err := h.git(dir, token, "push", "origin", "--delete", "work"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if h.Issues(repo)[n-1].State != "closed" || len(h.settled("delete")) != 1 {
		t.Fatal("a deleted branch closes its pull request")
	}
}

func TestGitFetchesAnyCommitAndPullRequestHeads(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	token := h.installationToken()
	dir := h.clone(token)
	if out, err := h.git(dir, token, "fetch", "-q", "origin", head, "refs/pull/1/head"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := h.git(dir, token, "push", "origin", "HEAD:refs/pull/1/head"); err == nil {
		t.Fatalf("a push to a pull request's head ref was accepted: %s", out)
	}
}

func TestPullRequestStartsFewGitProcesses(t *testing.T) {
	h := newHouse(t)
	dir := h.clone(h.installationToken())
	write(t, dir, "x", "x")
	h.commitAll(dir, "x")
	if out, err := h.git(dir, h.installationToken(), "push", "origin", "HEAD:work"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	_, err := h.OpenPull(h.ctx, repo, "wendy", fakegithub.PullRequest{Title: "X", Head: "work"})
	must(t, err)
	for range 20 {
		text, err := h.File(h.ctx, repo, "work", "x")
		must(t, err)
		if text != "x" {
			t.Fatalf("x is %q", text)
		}
	}
	// One each to make the repository, clone it and read files. Three for the push, and two to compare with main.
	if n := h.GitsStarted(); n > 8 {
		t.Errorf("the fake started git %d times, want at most 8", n)
	}
}

// The fake answers version 2 itself; git answers older versions.
func TestEveryProtocolVersionListsTheSameRefs(t *testing.T) {
	h := newHouse(t)
	h.opened()
	token := h.installationToken()
	dir := h.clone(token)
	for _, args := range [][]string{{"tag", "light"}, {"tag", "-a", "-m", "annotated", "heavy"}, {"push", "-q", "origin", "light", "heavy"}} {
		if out, err := h.git(dir, token, args...); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	for _, patterns := range [][]string{nil, {"HEAD"}, {"main"}, {"refs/tags/*"}, {"nothing"}} {
		list := func(version string) string {
			args := append([]string{"-c", "protocol.version=" + version, "ls-remote", "--symref", "origin"}, patterns...)
			out, err := h.git(dir, token, args...)
			if err != nil {
				t.Fatalf("%v %s", err, out)
			}
			return out
		}
		if diff := cmp.Diff(list("0"), list("2")); diff != "" {
			t.Errorf("%q (-version 0 +version 2):\n%s", patterns, diff)
		}
	}
	if out, err := h.git(dir, token, "fetch", "--depth=1", "origin", "refs/tags/heavy:refs/tags/fetched"); err != nil {
		t.Errorf("%v %s", err, out)
	}
}

func TestACloneOfAnEmptyRepositoryKnowsItsDefaultBranch(t *testing.T) {
	h := newHouse(t)
	must(t, h.AddRepo(h.ctx, "acme/empty", nil))
	dir := filepath.Join(t.TempDir(), "empty")
	token := h.installationToken()
	if out, err := h.git("", token, "-c", "init.defaultBranch=other", "clone", "-q", h.WebURL()+"/acme/empty.git", dir); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	head, err := os.ReadFile(filepath.Join(dir, ".git", "HEAD"))
	must(t, err)
	if string(head) != "ref: refs/heads/main\n" {
		t.Errorf("HEAD is %q", head)
	}
}
