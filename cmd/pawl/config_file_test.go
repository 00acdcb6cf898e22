package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
)

// A repository's file is checked on the commit that changes it, whoever pushed and wherever, and nowhere else.
func TestAChangedRepositoryFileIsCheckedOnItsCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	push := func(c fakegithub.Commit) string {
		t.Helper()
		c.Message = "a change"
		sha, err := r.world.PushCommit(t.Context(), rigRepo, writer, c)
		r.must(err)
		return sha
	}
	file := func(text string) map[string]string { return map[string]string{config.RepoFile: text} }
	checked := func(sha, conclusion, title string, annotations ...string) {
		t.Helper()
		r.await("the check run on "+sha, func() bool { return r.check(sha, checkrun.NameConfig).Conclusion != "" })
		c := r.check(sha, checkrun.NameConfig)
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
	if notes := r.check(wrong, checkrun.NameConfig).Notes; len(notes) != 2 || !strings.HasPrefix(notes[0], config.RepoFile+":2: verfiy") || !strings.HasPrefix(notes[1], config.RepoFile+":3: triggers[1]") {
		t.Errorf("annotations: %q", notes)
	}
	// What this server does not allow is an error here, too.
	narrowed := push(fakegithub.Commit{Branch: "feature", Files: file("restarts: {max: 400}\nbackends: [other]\n")})
	checked(narrowed, "failure", config.RepoFile+" has 2 errors", "line 1: restarts.max 400 is above the server's 50", "line 2: `backends[0]`")
	right := push(fakegithub.Commit{Branch: "feature", Files: file("verify: [make]\n")})
	checked(right, "success", config.RepoFile+" has no error")
	other := push(fakegithub.Commit{Branch: "feature", Files: map[string]string{"b.txt": "b\n"}})
	gone := push(fakegithub.Commit{Branch: "feature", Delete: []string{config.RepoFile}})
	checked(gone, "success", config.RepoFile+" is removed")

	// A fork's pull request is looked at when it is opened; the fake has no forks, so what it tells of the head is changed on the way.
	fork := push(fakegithub.Commit{Branch: "fork", Files: file("verfiy: [make]\n")})
	checked(fork, "failure", config.RepoFile+" has 1 error")
	quiet := push(fakegithub.Commit{Branch: "quiet", Files: map[string]string{"c.txt": "c\n"}})
	push(fakegithub.Commit{Branch: "main", Files: file("checks: {severity: always}\n")}) // since then the base has another file
	r.settle()
	r.world.SetWebhookURL("")
	for _, branch := range []string{"fork", "quiet"} {
		_, err := r.world.OpenPull(t.Context(), rigRepo, reader, fakegithub.PullRequest{Title: "A feature", Head: branch})
		r.must(err)
	}
	r.must(r.world.WaitDelivered(t.Context()))
	var opened [][]byte
	for _, d := range r.world.Deliveries() {
		if d.Event != "pull_request" || !strings.Contains(string(d.Payload), `"action":"opened"`) {
			continue
		}
		var payload map[string]any
		r.must(json.Unmarshal(d.Payload, &payload))
		payload["pull_request"].(map[string]any)["head"].(map[string]any)["repo"].(map[string]any)["id"] = 424242
		changed, err := json.Marshal(payload)
		r.must(err)
		opened = append(opened, changed)
	}
	r.world.SetWebhookURL(r.url("/api/github/hook"))
	for _, payload := range opened {
		r.world.Send("pull_request", payload)
	}
	r.settle()
	if notes := r.notes("pull_request"); !strings.Contains(notes, "pawl/config is there") || !strings.Contains(notes, config.RepoFile+" is as it was") {
		t.Errorf("a fork's pull requests: %s", notes)
	}
	n := 0
	for _, c := range r.world.CheckRuns(rigRepo) {
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

// notes are what became of the deliveries of an event.
func (r *rig) notes(event string) string {
	var all []string
	for _, d := range r.deliveries() {
		if d.Event == event {
			all = append(all, d.Note)
		}
	}
	return strings.Join(all, "\n")
}
