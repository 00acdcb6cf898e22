package fakegithub_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestEveryRESTAnswerHasTheDocumentedShape(t *testing.T) {
	h := newHouse(t, func(o *fakegithub.Options) {
		o.Permissions = map[string]string{"actions": "write", "checks": "write", "contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"}
	})
	everythingHappens(h)
	must(t, h.WaitDelivered(h.ctx))
	all := readShapes(t)
	id, err := h.InstallationID(repo)
	must(t, err)
	commentID, err := h.Comment(repo, 1, "wendy", "hello")
	must(t, err)
	reviewComment, err := h.ReviewComment(h.ctx, repo, 2, "rita", "one.txt", 1, "and this?")
	must(t, err)
	must(t, h.ClosePull(repo, 2, "wendy")) // so that its branch may have another pull request
	must(t, h.Protect(repo, "main", "build"))
	must(t, h.RequireChecks(repo, "main", "unit"))
	runs := h.CheckRuns(repo)
	h.AddOtherApp("github-actions", 15368)
	job, err := h.CompleteCheckRun(repo, "github-actions", fakegithub.CheckResult{SHA: h.Branches(repo)["one"], Name: "unit", Conclusion: "failure",
		Job: &fakegithub.Job{Steps: []fakegithub.JobStep{{Name: "Test", Conclusion: "failure", Started: time.Unix(1, 0), Completed: time.Unix(2, 0)}}}})
	must(t, err)
	_, raw := h.wire(h.client.Client(), "GET", fmt.Sprintf("/repos/%s/actions/jobs/%d", repo, job), "")
	workflow := decodeExactly(t, raw).(map[string]any)["run_id"]
	deliveries := h.Deliveries()
	sha := h.Branches(repo)["one"]
	app, inst := h.app.Client(), h.client.Client()
	fill := strings.NewReplacer("{repo}", "/repos/"+repo, "{inst}", fmt.Sprint(id), "{comment}", fmt.Sprint(commentID), "{sha}", sha,
		"{job}", fmt.Sprint(job), "{workflow}", fmt.Sprint(workflow), "{remark}", fmt.Sprint(reviewComment), "{run}", fmt.Sprint(runs[len(runs)-1].ID), "{delivery}", fmt.Sprint(deliveries[0].ID))
	for _, step := range []struct {
		as         *http.Client
		call, body string
		status     int
		kind       string
	}{
		{app, "GET /app", "", 200, "integration"},
		{app, "GET /app/installations", "", 200, "[installation]"},
		{app, "GET {repo}/installation", "", 200, "installation"},
		{app, "POST /app/installations/{inst}/access_tokens", "", 201, "installation-token"},
		{app, "POST /app/installations/{inst}/access_tokens", `{"repositories": ["tools"], "permissions": {"issues": "read"}}`, 201, "installation-token"},
		{app, "GET /app/hook/config", "", 200, "webhook-config"},
		{app, "GET /app/hook/deliveries", "", 200, "[hook-delivery-item]"},
		{app, "GET /app/hook/deliveries/{delivery}", "", 200, "hook-delivery"},
		{inst, "GET /users/rita", "", 200, "public-user"},
		{inst, "GET /users/pawl%5Bbot%5D", "", 200, "public-user"},
		{inst, "GET {repo}", "", 200, "full-repository"},
		{inst, "GET {repo}/collaborators/wendy/permission", "", 200, "repository-collaborator-permission"},
		{inst, "GET {repo}/collaborators/noone/permission", "", 200, "repository-collaborator-permission"},
		{inst, "GET {repo}/issues?state=all", "", 200, "[issue]"},
		{inst, "POST {repo}/issues", `{"title": "i", "body": "b", "labels": ["pawl"]}`, 201, "issue"},
		{inst, "GET {repo}/issues/2", "", 200, "issue"},
		{inst, "PATCH {repo}/issues/1", `{"body": "other"}`, 200, "issue"},
		{inst, "GET {repo}/issues/1/comments", "", 200, "[issue-comment]"},
		{inst, "POST {repo}/issues/1/comments", `{"body": "one"}`, 201, "issue-comment"},
		{inst, "PATCH {repo}/issues/comments/{comment}", `{"body": "two"}`, 200, "issue-comment"},
		{inst, "POST {repo}/issues/1/reactions", `{"content": "eyes"}`, 201, "reaction"},
		{inst, "POST {repo}/issues/1/reactions", `{"content": "eyes"}`, 200, "reaction"},
		{inst, "POST {repo}/issues/comments/{comment}/reactions", `{"content": "eyes"}`, 201, "reaction"},
		{inst, "POST {repo}/pulls/comments/{remark}/reactions", `{"content": "eyes"}`, 201, "reaction"},
		{inst, "GET {repo}/pulls?state=all", "", 200, "[pull-request-simple]"},
		{inst, "GET {repo}/pulls/2", "", 200, "pull-request"},
		{inst, "GET {repo}/pulls/3", "", 200, "pull-request"},
		{inst, "POST {repo}/pulls", `{"title": "p", "head": "one", "base": "main", "draft": true}`, 201, "pull-request"},
		{inst, "GET {repo}/pulls/2/reviews", "", 200, "[pull-request-review]"},
		{inst, "GET {repo}/pulls/2/comments", "", 200, "[pull-request-review-comment]"},
		{inst, "POST {repo}/check-runs", `{"name": "n", "head_sha": "{sha}"}`, 201, "check-run"},
		{inst, "PATCH {repo}/check-runs/{run}", `{"output": {"title": "t", "summary": "s", "annotations": [{"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}]}}`, 200, "check-run"},
		{inst, "GET {repo}/check-runs/{run}/annotations", "", 200, "[check-annotation]"},
		{inst, "GET {repo}/commits/{sha}/pulls", "", 200, "[pull-request-simple]"},
		{inst, "GET {repo}/commits/{sha}/check-runs", "", 200, "get.commits.ref.check-runs"},
		{inst, "GET {repo}/contents/README.md?ref={sha}", "", 200, "content-file"},
		{inst, "GET {repo}/compare/main...{sha}", "", 200, "commit-comparison"},
		{inst, "GET {repo}/branches/main", "", 200, "branch-with-protection"},
		{inst, "GET {repo}/branches/one", "", 200, "branch-with-protection"},
		{inst, "GET {repo}/branches/none", "", 404, "basic-error"},
		{inst, "GET {repo}/rules/branches/main", "", 200, "[repository-rule-detailed]"},
		{inst, "GET {repo}/actions/jobs/{job}", "", 200, "job"},
		{inst, "GET {repo}/actions/runs/{workflow}", "", 200, "workflow-run"},
		{inst, "POST {repo}/actions/runs/{workflow}/rerun-failed-jobs", "", 201, "empty-object"},
		{inst, "POST {repo}/actions/runs/{workflow}/rerun-failed-jobs", "", 403, "basic-error"},
		{inst, "GET {repo}/actions/runs/{workflow}", "", 200, "workflow-run"},
	} {
		method, path, _ := strings.Cut(step.call, " ")
		resp, raw := h.wire(step.as, method, fill.Replace(path), fill.Replace(step.body))
		switch {
		case resp.StatusCode != step.status:
			t.Errorf("%s: got %d, want %d: %.300s", step.call, resp.StatusCode, step.status, raw)
		case step.kind == "" && len(raw) > 0:
			t.Errorf("%s: a body with 204: %s", step.call, raw)
		case step.kind != "":
			for _, problem := range all.check("body", decodeExactly(t, raw), step.kind) {
				t.Errorf("%s: %s", step.call, problem)
			}
		}
	}
}
