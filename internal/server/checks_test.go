package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestButtonsWorkForWritersOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	// A slow machine spaces the clicks evenly, which looks like a program.
	r.Config += "policy: {unattended: {max_attempts: 20}}\n"
	r.Start()
	n, pull := r.Solved()
	run := func() fakegithub.CheckRun { return r.Check(r.Head(pull), "pawl") }
	click := func(button, who string) func() error {
		return func() error { return r.World.ClickButton(testrig.Repo, run().ID, button, who) }
	}
	r.play(n, []happens{
		{"a reader retries", click("retry", testrig.Reader), "- mallory has read permission"},
		{"a writer retries", click("retry", testrig.Writer), `+ button "retry"`},
		{"a reader asks for the check run again", func() error { return r.World.Rerequest(testrig.Repo, run().ID, testrig.Reader) }, "- mallory has read permission"},
		{"a writer asks for the check run again", func() error { return r.World.Rerequest(testrig.Repo, run().ID, testrig.Writer) }, `+ button "retry"`},
		{"a writer asks for the verdict again", func() error {
			return r.World.Rerequest(testrig.Repo, r.Check(r.Head(pull), "pawl/severity").ID, testrig.Writer)
		}, `+ button "retry"`},
	})
	r.Gate()
	r.Must(click("retry", testrig.Writer)())
	r.Await("the attempt to stop", func() bool { return r.Calls() == 5 && len(run().Actions) == 1 && run().Actions[0].Identifier == "stop" })
	r.Must(click("stop", testrig.Reader)())
	r.Handled()
	if s := r.Thread(testrig.ThreadName(n)); s.State != "running" {
		t.Errorf("the thread is %s after a reader's stop, want running", s.State)
	}
	r.Must(click("stop", testrig.Writer)())
	if s := r.Over(testrig.ThreadName(n)); s.State != "stopped" || s.Rule != "cancelled" {
		t.Errorf("the thread is %s (%s) after a writer's stop, want stopped (cancelled)", s.State, s.Rule)
	}
	r.Settle()
	if got := run(); got.Conclusion != "neutral" || len(got.Actions) != 1 || got.Actions[0].Identifier != "resume" {
		t.Errorf("the check run is %s with the buttons %v, want neutral, as the commit was, with resume", got.Conclusion, got.Actions)
	}
	r.Open()
	r.play(n, []happens{{"a writer resumes", click("resume", testrig.Writer), `+ button "resume"`}})
	r.Await("an attempt that names the user who clicked", func() bool {
		all := r.State(n).Attempts
		return slices.Contains(all[len(all)-1].Decision.Reasons.Texts(), "ada asked to resume")
	})
}

func TestUsersPullRequestKeepsItsBranch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "feature", Message: "a feature", Files: map[string]string{"b.txt": "b\n"}})
	r.Must(err)
	n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "A feature", Body: "Adds b.txt.", Head: "feature"})
	r.Must(err)
	r.Settle()
	before := r.Head(n)
	r.play(n, []happens{
		{"a remark", r.Commenting(n, testrig.Writer, "Looks good."), ""},
		{"a request for changes", func() error {
			_, err := r.World.Review(testrig.Repo, n, testrig.Writer, "CHANGES_REQUESTED", "No.")
			return err
		}, ""},
		{"a command", r.Commenting(n, testrig.Writer, "/pawl solve add a line to a.txt"), "+ command solve"},
		{"a remark on a pull request that Pawl did not open", r.Commenting(n, testrig.Writer, "Looks better."), "- it holds no command"},
		{"a request for changes of what Pawl pushed", func() error {
			_, err := r.World.Review(testrig.Repo, n, testrig.Writer, "CHANGES_REQUESTED", "Not yet.")
			return err
		}, "+ a review requests changes"},
	})
	if text, err := r.World.File(t.Context(), testrig.Repo, "feature", "a.txt"); err != nil || text != "one\nline 1\nline 2\n" {
		t.Errorf("a.txt on the branch is %q (%v), want both lines pushed there", text, err)
	}
	if len(r.World.Pulls(testrig.Repo)) != 1 || r.Head(n) == before {
		t.Errorf("%d pull requests, want the one with new commits", len(r.World.Pulls(testrig.Repo)))
	}
	if c := r.Check(r.Head(n), "pawl"); c.Conclusion != "neutral" {
		t.Errorf("the check run on the new commit is %q, want neutral", c.Conclusion)
	}
}

func TestForkPullRequestIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "feature", Message: "a feature", Files: map[string]string{"b.txt": "b\n"}})
	r.Must(err)
	n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Reader, fakegithub.PullRequest{Title: "A feature", Body: "Adds b.txt.", Head: "feature"})
	r.Must(err)
	// The fake has no forks, so the test rewrites the head in the webhook.
	r.Settle()
	r.World.SetWebhookURL("")
	r.Must(r.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawl"))
	r.Must(r.World.WaitDelivered(t.Context()))
	var payload map[string]any
	r.Must(json.Unmarshal(r.delivered("pull_request").Payload, &payload))
	fork := payload["pull_request"].(map[string]any)["head"].(map[string]any)["repo"].(map[string]any)
	fork["id"], fork["full_name"], fork["fork"] = 424242, "mallory/widgets", true
	changed, err := json.Marshal(payload)
	r.Must(err)
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
	r.World.Send("pull_request", changed)
	r.Await("a decision", func() bool { return r.State(n).Decision != nil })
	r.Settle()
	if d := r.State(n).Decision; d.Rule != "fork" || r.Calls() != 0 {
		t.Errorf("%s (%s) after %d calls, want stop (fork) after none", d.Action, d.Rule, r.Calls())
	}
	said := ""
	for _, c := range r.World.Comments(testrig.Repo, n) {
		said += c.Body
	}
	if !strings.Contains(said, "comes from a fork") {
		t.Errorf("the comments say %q, want them to say that it comes from a fork", said)
	}
	if pushes := r.World.Pushes(testrig.Repo); len(pushes) > 2 {
		t.Errorf("pushes: %+v, want none by Pawl", pushes)
	}
}
