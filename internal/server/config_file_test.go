package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// A push that changes a repository's file gets a check on that commit only.
func TestRepositoryFileIsCheckedOnItsCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	push := func(c fakegithub.Commit) string {
		t.Helper()
		c.Message = "a change"
		sha, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, c)
		r.Must(err)
		return sha
	}
	file := func(text string) map[string]string { return map[string]string{config.RepoFile: text} }
	checked := func(sha, conclusion, title string, annotations ...string) {
		t.Helper()
		r.Await("the check run on "+sha, func() bool { return r.Check(sha, checkrun.NameConfig).Conclusion != "" })
		c := r.Check(sha, checkrun.NameConfig)
		if c.Conclusion != conclusion || c.Title != title {
			t.Errorf("%s: %q, want %s: %q", c.Conclusion, c.Title, conclusion, title)
		}
		for i, want := range annotations {
			if !strings.Contains(c.Summary, want) {
				t.Errorf("annotation %d: %q is not in %q", i, want, c.Summary)
			}
		}
	}
	wrong := push(fakegithub.Commit{Branch: "feature", Files: file("verify: [make]\nverfiy: [make]\ntriggers: [mention, nothing]\n")})
	checked(wrong, "failure", config.RepoFile+" has 2 errors", "line 2: verfiy is not a known key", "line 3: `triggers[1]`")
	if notes := r.Check(wrong, checkrun.NameConfig).Notes; len(notes) != 2 || !strings.HasPrefix(notes[0], config.RepoFile+":2: verfiy") || !strings.HasPrefix(notes[1], config.RepoFile+":3: triggers[1]") {
		t.Errorf("annotations: %q", notes)
	}
	// Settings that this server does not allow are errors, too.
	narrowed := push(fakegithub.Commit{Branch: "feature", Files: file("restarts: {max: 400}\nbackends: [other]\n")})
	checked(narrowed, "failure", config.RepoFile+" has 2 errors", "line 1: restarts.max 400 is above the server's 50", "line 2: `backends[0]`")
	right := push(fakegithub.Commit{Branch: "feature", Files: file("verify: [make]\n")})
	checked(right, "success", config.RepoFile+" has no error")
	other := push(fakegithub.Commit{Branch: "feature", Files: map[string]string{"b.txt": "b\n"}})
	gone := push(fakegithub.Commit{Branch: "feature", Delete: []string{config.RepoFile}})
	checked(gone, "success", config.RepoFile+" is removed")

	// A fork's pull request is checked when it opens. The fake has no forks, so the test rewrites the head in the webhook.
	fork := push(fakegithub.Commit{Branch: "fork", Files: file("verfiy: [make]\n")})
	checked(fork, "failure", config.RepoFile+" has 1 error")
	quiet := push(fakegithub.Commit{Branch: "quiet", Files: map[string]string{"c.txt": "c\n"}})
	push(fakegithub.Commit{Branch: "main", Files: file("checks: {severity: always}\n")}) // the base now has a different file
	r.Settle()
	r.World.SetWebhookURL("")
	for _, branch := range []string{"fork", "quiet"} {
		_, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Reader, fakegithub.PullRequest{Title: "A feature", Head: branch})
		r.Must(err)
	}
	r.Must(r.World.WaitDelivered(t.Context()))
	var opened [][]byte
	for _, d := range r.World.Deliveries() {
		if d.Event != "pull_request" || !strings.Contains(string(d.Payload), `"action":"opened"`) {
			continue
		}
		var payload map[string]any
		r.Must(json.Unmarshal(d.Payload, &payload))
		payload["pull_request"].(map[string]any)["head"].(map[string]any)["repo"].(map[string]any)["id"] = 424242
		changed, err := json.Marshal(payload)
		r.Must(err)
		opened = append(opened, changed)
	}
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
	for _, payload := range opened {
		r.World.Send("pull_request", payload)
	}
	r.Settle()
	if notes := r.notes("pull_request"); !strings.Contains(notes, "pawl/config exists") || !strings.Contains(notes, config.RepoFile+" is unchanged") {
		t.Errorf("a fork's pull requests: %s", notes)
	}
	n := 0
	for _, c := range r.World.CheckRuns(testrig.Repo) {
		if c.Name == checkrun.NameConfig {
			n++
		}
		if c.SHA == other || c.SHA == quiet {
			t.Errorf("%s on a commit that leaves the file as it was", c.Name)
		}
	}
	if n != 6 {
		t.Errorf("%d check runs, want one for each commit that changed the file", n)
	}
}

// notes returns the results of an event's deliveries.
func (r *rig) notes(event string) string {
	var all []string
	for _, d := range r.Deliveries() {
		if d.Event == event {
			all = append(all, d.Note)
		}
	}
	return strings.Join(all, "\n")
}
