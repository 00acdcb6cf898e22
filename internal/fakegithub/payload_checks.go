package fakegithub

import "fmt"

func (s *Server) renderCheckRun(r *repository, run *checkRun) obj {
	self := fmt.Sprintf("%srepos/%s/check-runs/%d", s.APIURL(), r.fullName(), run.id)
	web := fmt.Sprintf("%s/%s/runs/%d", s.base, r.fullName(), run.id)
	pulls := []obj{}
	for _, t := range r.threads {
		// "Pushes to a branch in a forked repository are not detected and return
		// an empty pull_requests array" (REST API, create a check run).
		if t.pull != nil && t.state == "open" && t.pull.headSHA == run.sha && t.pull.from == r {
			pulls = append(pulls, s.renderPullStub(r, t))
		}
	}
	details := run.details
	if details == "" {
		details = s.base
	}
	return obj{"id": run.id, "node_id": nodeID("CheckRun", run.id), "name": run.name, "head_sha": run.sha, "external_id": run.externalID,
		"url": self, "html_url": web, "details_url": details, "status": run.status, "conclusion": textOrNull(run.conclusion),
		"started_at": stamp(run.started), "completed_at": stamp(run.completed), "check_suite": obj{"id": run.suite.id},
		"app": s.renderApp(run.suite.app), "pull_requests": pulls,
		"output": obj{"title": run.output.Title, "summary": run.output.Summary, "text": run.output.Text,
			"annotations_count": len(run.notes), "annotations_url": self + "/annotations"}}
}

// renderAnnotation is an annotation as it was sent, with every key that GitHub
// documents.
func (s *Server) renderAnnotation(r *repository, run *checkRun, note obj) obj {
	body := obj{"blob_href": fmt.Sprintf("%s/%s/blob/%s/%v", s.base, r.fullName(), run.sha, note["path"])}
	for _, key := range []string{"path", "start_line", "end_line", "start_column", "end_column", "annotation_level", "title", "message", "raw_details"} {
		body[key] = note[key]
	}
	return body
}

// renderCheckRunEvent is a check run as webhooks carry it: with its whole suite,
// of which the REST API gives the id only.
func (s *Server) renderCheckRunEvent(r *repository, run *checkRun) obj {
	body := s.renderCheckRun(r, run)
	body["check_suite"] = obj{"id": run.suite.id, "node_id": nodeID("CheckSuite", run.suite.id), "head_branch": textOrNull(run.suite.branch),
		"head_sha": run.sha, "status": run.status, "conclusion": textOrNull(run.conclusion), "app": s.renderApp(run.suite.app),
		"pull_requests": body["pull_requests"], "before": nil, "after": run.sha, "created_at": stamp(run.suite.created), "updated_at": stamp(run.suite.created),
		"url": fmt.Sprintf("%srepos/%s/check-suites/%d", s.APIURL(), r.fullName(), run.suite.id)}
	return body
}

// renderPullStub is the short pull request that check runs carry.
func (s *Server) renderPullStub(r *repository, t *thread) obj {
	repo := obj{"id": r.id, "name": r.name, "url": s.APIURL() + "repos/" + r.fullName()}
	return obj{"id": t.pull.id, "number": t.number, "url": fmt.Sprintf("%srepos/%s/pulls/%d", s.APIURL(), r.fullName(), t.number),
		"head": obj{"ref": t.pull.headRef, "sha": t.pull.headSHA, "repo": repo},
		"base": obj{"ref": t.pull.baseRef, "sha": t.pull.baseSHA, "repo": repo}}
}
