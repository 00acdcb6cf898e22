package fakegithub

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

const jobLogs = "/job-logs/"

// Job is the GitHub Actions job behind a check run. Both have the same id.
type Job struct {
	Steps []JobStep
	Log   string // each line begins with its time
}

// JobStep is a step of a job with times in whole seconds.
type JobStep struct {
	Name, Conclusion   string
	Started, Completed time.Time
}

func (w checks) getJob(c *call, run *checkRun) *reply {
	if run.job == nil {
		return notFound()
	}
	steps := []obj{}
	for i, step := range run.job.Steps {
		steps = append(steps, obj{"name": step.Name, "status": "completed", "conclusion": step.Conclusion, "number": i + 1,
			"started_at": stamp(step.Started), "completed_at": stamp(step.Completed)})
	}
	check := w.renderCheckRun(c.repo, run)
	self := fmt.Sprintf("%s/actions/jobs/%d", w.apiOf(c.repo), run.id)
	return ok(obj{"id": run.id, "run_id": run.suite.id, "run_url": fmt.Sprintf("%s/actions/runs/%d", w.apiOf(c.repo), run.suite.id), "run_attempt": run.attempt,
		"node_id": nodeID("CheckRun", run.id), "head_sha": run.sha, "url": self, "html_url": check["html_url"], "status": check["status"],
		"conclusion": check["conclusion"], "created_at": check["started_at"], "started_at": check["started_at"], "completed_at": check["completed_at"],
		"name": run.name, "steps": steps, "check_run_url": check["url"], "labels": []string{"ubuntu-latest"}, "runner_id": 1, "runner_name": "GitHub Actions 1",
		"runner_group_id": 1, "runner_group_name": "GitHub Actions", "workflow_name": "CI", "head_branch": textOrNull(run.suite.branch)})
}

// getJobLog redirects to the log's address, which needs no credentials.
func (w checks) getJobLog(_ *call, run *checkRun) *reply {
	if run.job == nil {
		return notFound()
	}
	return &reply{status: http.StatusFound, header: http.Header{"Location": {fmt.Sprintf("%s%s%d?sig=secret", w.base, jobLogs, run.id)}}}
}

// serveJobLog serves logs. Like GitHub, it refuses credentials other than the URL's signature.
func (s *Server) serveJobLog(w http.ResponseWriter, r *http.Request) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if r.Header.Get("Authorization") != "" || r.URL.Query().Get("sig") != "secret" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	for _, repo := range s.world.repos {
		for _, run := range repo.runs {
			if run.job != nil && fmtID(run.id) == strings.TrimPrefix(r.URL.Path, jobLogs) {
				w.Header().Set("Content-Type", "text/plain")
				fmt.Fprint(w, run.job.Log)
				return
			}
		}
	}
	http.NotFound(w, r)
}
