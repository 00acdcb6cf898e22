package fakegithub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestAPushNamesTheFilesOfItsCommits(t *testing.T) {
	h := newHouse(t)
	_, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "main", Message: "All sorts",
		Files: map[string]string{"new file.txt": "n\n", "README.md": "other\n"}, Delete: []string{"src/a.go"}})
	must(t, err)
	commit := h.settled("push")[0].at("commits").([]any)[0].(map[string]any)
	got := map[string]any{"added": commit["added"], "removed": commit["removed"], "modified": commit["modified"], "distinct": commit["distinct"]}
	want := map[string]any{"added": []any{"new file.txt"}, "removed": []any{"src/a.go"}, "modified": []any{"README.md"}, "distinct": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestAPushOfKnownCommitsIsNotDistinct(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	token, err := h.UserToken("wendy")
	must(t, err)
	dir := h.clone(token)
	if out, err := h.git(dir, token, "push", "-q", "origin", "origin/work:main", "origin/work:refs/heads/copy"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, k := range h.settled("push") {
		commits := k.at("commits").([]any)
		switch k.at("ref") {
		case "refs/heads/copy": // a new branch on a known commit
			if len(commits) != 0 || k.at("head_commit", "id") != head {
				t.Errorf("%s", k.raw)
			}
		case "refs/heads/main":
			if len(commits) != 1 || commits[0].(map[string]any)["distinct"] != false {
				t.Errorf("%s", k.raw)
			}
		}
	}
}

func TestOnlyThoseWhoPushSeePermissions(t *testing.T) {
	h := newHouse(t)
	_, _, err := h.userClient("rita").Repositories.GetPermissionLevel(h.ctx, "acme", "tools", "wendy")
	wantStatus(t, err, 403, "Must have push access to view collaborator permission.")
	_, _, err = h.userClient("wendy").Repositories.GetPermissionLevel(h.ctx, "acme", "tools", "rita")
	must(t, err)
}
