package fakegithub

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// Here a workflow run and its check suite are one object with one id. All runs belong to one workflow.

func (w checks) ofWorkflowRun(handle func(*call, *checkSuite) *reply) func(*call) *reply {
	return func(c *call) *reply {
		for _, s := range c.repo.suites {
			if s.id == c.id() && s.app.slug == actionsApp {
				return handle(c, s)
			}
		}
		return notFound()
	}
}

const actionsApp = "github-actions"

func (w checks) getWorkflowRun(c *call, s *checkSuite) *reply {
	status, conclusion := "completed", "success"
	for _, run := range latest(c.repo, s) {
		switch {
		case run.status != "completed":
			status = "in_progress"
		case run.conclusion != "success" && run.conclusion != "skipped":
			conclusion = "failure"
		}
	}
	if status != "completed" {
		conclusion = ""
	}
	api := w.apiOf(c.repo)
	self := fmt.Sprintf("%s/actions/runs/%d", api, s.id)
	repo := w.renderRepo(c.repo)
	return ok(obj{"id": s.id, "name": "CI", "node_id": nodeID("WorkflowRun", s.id), "check_suite_id": s.id, "head_branch": textOrNull(s.branch), "head_sha": s.sha,
		"path": ".github/workflows/ci.yml", "run_number": 1, "run_attempt": s.attempt(), "event": "push", "status": status, "conclusion": textOrNull(conclusion),
		"workflow_id": 1, "url": self, "html_url": fmt.Sprintf("%s/actions/runs/%d", w.webOf(c.repo), s.id), "pull_requests": []obj{},
		"created_at": stamp(s.created), "updated_at": stamp(s.created), "run_started_at": stamp(s.created), "jobs_url": self + "/jobs", "logs_url": self + "/logs",
		"check_suite_url": fmt.Sprintf("%s/check-suites/%d", api, s.id), "artifacts_url": self + "/artifacts", "cancel_url": self + "/cancel",
		"rerun_url": self + "/rerun", "workflow_url": api + "/actions/workflows/1", "head_commit": nil, "repository": repo, "head_repository": repo, "display_title": "CI"})
}

func latest(r *repository, s *checkSuite) map[string]*checkRun {
	newest := map[string]*checkRun{}
	for _, run := range r.runs {
		if run.suite == s {
			newest[run.name] = run
		}
	}
	return newest
}

func (s *checkSuite) attempt() int { return 1 + s.reruns }

// rerunFailedJobs restarts each failed job as a new check run; CompleteCheckRun ends it.
func (w checks) rerunFailedJobs(c *call, s *checkSuite) *reply {
	var failed []*checkRun
	for _, run := range latest(c.repo, s) {
		if run.status != "completed" {
			return problem(http.StatusForbidden, "The workflow run containing this job is already running")
		}
		if run.conclusion == "failure" || run.conclusion == "timed_out" || run.conclusion == "cancelled" {
			failed = append(failed, run)
		}
	}
	if len(failed) == 0 {
		return problem(http.StatusForbidden, "This workflow run cannot be retried")
	}
	s.reruns++
	for _, run := range failed {
		w.addCheckRun(c.repo, s.app, checkParams{Name: &run.name, HeadSHA: &s.sha})
	}
	return created(obj{})
}

// StartCheckRun starts another App's check run (AddOtherApp); CompleteCheckRun ends it.
func (w checks) StartCheckRun(repo, appSlug, sha, name string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	other := w.otherApps[appSlug]
	if other == nil {
		return fmt.Errorf("no App %q: call AddOtherApp first", appSlug)
	}
	w.addCheckRun(r, other, checkParams{Name: &name, HeadSHA: &sha})
	return nil
}

// getContents returns a file at a commit. A symbolic link has no content, and a directory lists nothing.
func (w pulls) getContents(c *call) *reply {
	path := c.r.PathValue("path")
	sha, known := c.resolve(cmp.Or(c.r.URL.Query().Get("ref"), c.repo.defaultBranch))
	if !known {
		return notFound()
	}
	out, err := c.repo.git.run(c.context(), nil, "ls-tree", "-z", sha, "--", path)
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 3 {
		return notFound()
	}
	mode, kind, blob := fields[0], fields[1], fields[2]
	if kind == "tree" {
		return ok([]obj{})
	}
	self := fmt.Sprintf("%s/contents/%s?ref=%s", w.apiOf(c.repo), path, sha)
	web := fmt.Sprintf("%s/blob/%s/%s", w.webOf(c.repo), sha, path)
	file := obj{"type": "file", "name": filepath.Base(path), "path": path, "sha": blob, "url": self, "html_url": web, "download_url": web,
		"git_url": fmt.Sprintf("%s/git/blobs/%s", w.apiOf(c.repo), blob), "_links": obj{"self": self, "html": web, "git": self}}
	o, err := c.repo.git.object(blob)
	if err != nil {
		return notFound()
	}
	content := o.content
	file["size"] = len(content)
	if mode == "120000" {
		file["type"], file["target"] = "symlink", string(content)
		return ok(file)
	}
	var lines strings.Builder
	for text := base64.StdEncoding.EncodeToString(content); text != ""; {
		n := min(60, len(text))
		lines.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	file["encoding"], file["content"] = "base64", lines.String()
	return ok(file)
}

func (w pulls) compareCommits(c *call) *reply {
	base, head, _ := strings.Cut(c.r.PathValue("range"), "...")
	from, known := c.resolve(base)
	to, knownToo := c.resolve(head)
	if !known || !knownToo {
		return notFound()
	}
	ahead, err := c.repo.git.log(c.context(), "--reverse", from+".."+to)
	if err != nil {
		return notFound()
	}
	behind, _, err := c.repo.git.distance(c.context(), from, to)
	if err != nil {
		return notFound()
	}
	common, err := c.repo.git.run(c.context(), nil, "merge-base", from, to)
	if err != nil {
		return notFound()
	}
	ends, err := c.repo.git.log(c.context(), "--no-walk=unsorted", from, strings.TrimSpace(string(common)))
	if err != nil {
		return notFound()
	}
	status := map[[2]bool]string{{}: "identical", {true, false}: "ahead", {false, true}: "behind", {true, true}: "diverged"}[[2]bool{len(ahead) > 0, behind > 0}]
	self, web := fmt.Sprintf("%s/compare/%s...%s", w.apiOf(c.repo), base, head), fmt.Sprintf("%s/compare/%s...%s", w.webOf(c.repo), base, head)
	render := func(found gitCommit) obj { return w.renderCommit(c.repo, found) }
	return page(c, ahead, render, func(commits []obj, total int) any {
		return obj{"url": self, "html_url": web, "permalink_url": web, "diff_url": web + ".diff", "patch_url": web + ".patch", "base_commit": render(ends[0]),
			"merge_base_commit": render(ends[len(ends)-1]), "status": status, "ahead_by": len(ahead), "behind_by": behind,
			"total_commits": total, "commits": commits, "files": []obj{}}
	})
}

func (w pulls) renderCommit(r *repository, c gitCommit) obj {
	at, _ := time.Parse(time.RFC3339, c.authored)
	self := w.apiOf(r) + "/commits/" + c.sha
	parents := []obj{}
	for _, parent := range c.parents {
		parents = append(parents, obj{"sha": parent, "url": w.apiOf(r) + "/commits/" + parent})
	}
	who := obj{"name": c.name, "email": c.email, "date": stamp(at)}
	return obj{"sha": c.sha, "node_id": nodeID("Commit", 1), "url": self, "html_url": w.webOf(r) + "/commit/" + c.sha, "comments_url": self + "/comments",
		"commit": obj{"url": w.apiOf(r) + "/git/commits/" + c.sha, "author": who, "committer": who, "message": c.message, "comment_count": 0,
			"tree": obj{"sha": c.tree, "url": w.apiOf(r) + "/git/trees/" + c.tree}},
		"author": nil, "committer": nil, "parents": parents}
}
