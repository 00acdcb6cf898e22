package fakegithub_test

import (
	"fmt"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// everythingHappens makes users cause every event that the fake GitHub sends.
// It leaves issue 1 closed, pull request 2 open and pull request 3 merged.
func everythingHappens(h *house) {
	t := h.t
	_, err := h.OpenIssue(repo, "rita", "It breaks", "", "pawl")
	must(t, err)
	id, err := h.Comment(repo, 1, "wendy", "why?")
	must(t, err)
	must(t, h.EditComment(repo, id, "wendy", "why and when?"))
	must(t, h.DeleteComment(repo, id, "wendy"))
	must(t, h.EditBody(repo, 1, "rita", "when it rains"))
	must(t, h.EditTitle(repo, 1, "rita", "It breaks at times"))
	must(t, h.TouchIssue(repo, 1, "wendy"))
	must(t, h.TouchIssue(repo, 1, "wendy"))
	must(t, h.AddLabel(repo, 1, "wendy", "bug"))
	must(t, h.RemoveLabel(repo, 1, "wendy", "bug"))
	must(t, h.CloseIssue(repo, 1, "wendy"))
	must(t, h.ReopenIssue(repo, 1, "wendy"))
	must(t, h.CloseIssue(repo, 1, "wendy"))
	for _, branch := range []string{"one", "two"} {
		_, err = h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: branch, Message: branch, Files: map[string]string{branch + ".txt": "1\n"}})
		must(t, err)
		_, err = h.OpenPull(h.ctx, repo, "wendy", fakegithub.PullRequest{Title: branch, Head: branch, Draft: true})
		must(t, err)
	}
	_, err = h.Comment(repo, 2, "rita", "hm")
	must(t, err)
	must(t, h.EditBody(repo, 2, "wendy", "more"))
	must(t, h.AddLabel(repo, 2, "wendy", "pawl"))
	must(t, h.RemoveLabel(repo, 2, "wendy", "pawl"))
	must(t, h.TouchIssue(repo, 2, "rita"))
	must(t, h.TouchIssue(repo, 2, "rita"))
	must(t, h.ClosePull(repo, 2, "wendy"))
	must(t, h.ReopenIssue(repo, 2, "wendy"))
	sha, err := h.PushCommit(h.ctx, repo, "wendy", fakegithub.Commit{Branch: "one", Message: "again", Files: map[string]string{"one.txt": "2\n"}})
	must(t, err)
	_, err = h.Review(repo, 2, "rita", "CHANGES_REQUESTED", "no")
	must(t, err)
	_, err = h.ReviewComment(h.ctx, repo, 2, "rita", "one.txt", 1, "why 2?")
	must(t, err)
	_, err = h.MergePull(h.ctx, repo, 3, "wendy")
	must(t, err)
	must(t, h.DeleteBranch(h.ctx, repo, "wendy", "two"))
	h.checkRunsHappen(sha)
}

func (h *house) checkRunsHappen(sha string) {
	t := h.t
	h.AddOtherApp("ci", 99)
	_, err := h.CompleteCheckRun(repo, "ci", fakegithub.CheckResult{SHA: sha, Name: "ci/test", Conclusion: "failure", Title: "red", Summary: "2 failed",
		Annotations: []fakegithub.CheckAnnotation{{Path: "a_test.go", Line: 3, Title: "TestA", Message: "want 1, got 2"}}})
	must(t, err)
	body := `{"name": "pawl", "head_sha": "` + sha + `", "status": "in_progress", "external_id": "x",
		"actions": [{"label": "Retry", "description": "do it again", "identifier": "retry"}]}`
	if resp, raw := h.wire(h.client.Client(), "POST", "/repos/"+repo+"/check-runs", body); resp.StatusCode != 201 {
		t.Fatalf("%s: %s", resp.Status, raw)
	}
	runs := h.CheckRuns(repo)
	mine := runs[len(runs)-1].ID
	must(t, h.ClickButton(repo, mine, "retry", "wendy"))
	if resp, raw := h.wire(h.client.Client(), "PATCH", fmt.Sprintf("/repos/%s/check-runs/%d", repo, mine), `{"conclusion": "success"}`); resp.StatusCode != 200 {
		t.Fatalf("%s: %s", resp.Status, raw)
	}
	must(t, h.Rerequest(repo, mine, "wendy"))
}

func TestEveryWebhookHasTheDocumentedShape(t *testing.T) {
	h := newHouse(t)
	everythingHappens(h)
	h.Ping()
	must(t, h.AddRepo(h.ctx, "acme/other", map[string]string{"a": "b"}))
	must(t, h.RenameRepo("acme/other", "another"))
	must(t, h.RemoveRepo("acme/another"))
	must(t, h.DeleteRepo(repo))
	must(t, h.AddRepo(h.ctx, "solo/thing", nil))
	must(t, h.Suspend("solo/thing"))
	must(t, h.Unsuspend("solo/thing"))
	must(t, h.AddRepo(h.ctx, "duo/thing", nil))
	must(t, h.Uninstall("duo/thing"))

	all, seen := readShapes(t), map[string]bool{}
	for _, k := range h.settled("") {
		name := "hook/" + k.event
		if k.action() != "" {
			name += "." + k.action()
		}
		seen[name] = true
		for _, problem := range all.check(k.event, decodeExactly(t, k.raw), name) {
			t.Errorf("%s: %s", name, problem)
		}
	}
	for name := range all {
		if all.isEvent(name) && !seen[name] {
			t.Errorf("%s was never sent", name)
		}
	}
}

// isEvent reports whether a shape is a webhook's. Only webhooks have a sender.
func (all shapes) isEvent(name string) bool {
	_, ok := all[name]["sender"]
	return ok
}
