package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// head is the commit that a pull request is at.
func (r *rig) head(pull int) string {
	for _, p := range r.world.Pulls(rigRepo) {
		if p.Number == pull {
			return p.Pull.HeadSHA
		}
	}
	return ""
}

func TestButtonsWorkForWritersOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(gatedAgent, "")
	// A slow machine brings the clicks at even intervals, which are taken for a program's.
	r.config += "policy: {unattended: {max_attempts: 20}}\n"
	r.start()
	n, pull := r.solved()
	run := func() fakegithub.CheckRun { return r.check(r.head(pull), "pawl") }
	click := func(button, who string) func() error {
		return func() error { return r.world.ClickButton(rigRepo, run().ID, button, who) }
	}
	r.play(n, []happens{
		{"a reader retries", click("retry", reader), "- mallory has read permission"},
		{"a writer retries", click("retry", writer), `+ button "retry"`},
		{"a reader asks for the check run again", func() error { return r.world.Rerequest(rigRepo, run().ID, reader) }, "- mallory has read permission"},
		{"a writer asks for the check run again", func() error { return r.world.Rerequest(rigRepo, run().ID, writer) }, `+ button "retry"`},
		{"a writer asks for the verdict again", func() error {
			return r.world.Rerequest(rigRepo, r.check(r.head(pull), "pawl/severity").ID, writer)
		}, `+ button "retry"`},
	})
	r.gate()
	r.must(click("retry", writer)())
	r.await("the attempt to stop", func() bool { return r.calls() == 5 && len(run().Actions) == 1 && run().Actions[0].Identifier == "stop" })
	r.must(click("stop", reader)())
	r.handled()
	if s := r.thread(threadName(n)); s.State != "running" {
		t.Errorf("the thread is %s after a reader's stop, want running", s.State)
	}
	r.must(click("stop", writer)())
	if s := r.over(threadName(n)); s.State != "stopped" || s.Rule != "cancelled" {
		t.Errorf("the thread is %s (%s) after a writer's stop, want stopped (cancelled)", s.State, s.Rule)
	}
	r.settle()
	if got := run(); got.Conclusion != "action_required" || len(got.Actions) != 1 || got.Actions[0].Identifier != "resume" {
		t.Errorf("the check run is %s with the buttons %v, want action_required with resume", got.Conclusion, got.Actions)
	}
	r.open()
	r.play(n, []happens{{"a writer resumes", click("resume", writer), `+ button "resume"`}})
	r.await("an attempt that says who clicked", func() bool {
		all := r.state(n).Attempts
		return slices.Contains(all[len(all)-1].Decision.Reasons.Texts(), "ada asked to resume")
	})
}

func TestEscalateStartsAnAttemptWithMoreEffort(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo \"$PAWL_EFFORT\" >> \"$CTRL/efforts\"\nif [ \"$PAWL_EFFORT\" = high ]; then echo two >> a.txt; fi\necho 'I looked at it'\n",
		"effort: low, escalated_effort: high")
	r.start()
	n := r.solve("A second line", "Please.")
	if s := r.over(threadName(n)); s.Rule != "no_change" {
		t.Fatalf("the thread is %s (%s), want stopped (no_change)", s.State, s.Rule)
	}
	r.settle()
	r.play(n, []happens{{"a writer escalates", r.says(n, writer, "/pawl escalate"), "+ command escalate"}})
	if s := r.thread(threadName(n)); s.State != "done" {
		t.Errorf("the thread is %s (%s), want done", s.State, s.Rule)
	}
}

func TestAPullRequestOfSomebodyElseIsWorkedOnInItsOwnBranch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "feature", Message: "a feature", Files: map[string]string{"b.txt": "b\n"}})
	r.must(err)
	n, err := r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "A feature", Body: "Adds b.txt.", Head: "feature"})
	r.must(err)
	r.settle()
	before := r.head(n)
	r.play(n, []happens{
		{"a remark", r.says(n, writer, "Looks good."), ""},
		{"a request for changes", func() error { _, err := r.world.Review(rigRepo, n, writer, "CHANGES_REQUESTED", "No."); return err }, ""},
		{"a command", r.says(n, writer, "/pawl solve add a line to a.txt"), "+ command solve"},
		{"a remark on a pull request that Pawl did not open", r.says(n, writer, "Looks better."), "- it holds no command"},
		{"a request for changes of what Pawl pushed", func() error {
			_, err := r.world.Review(rigRepo, n, writer, "CHANGES_REQUESTED", "Not yet.")
			return err
		}, "+ a review requests changes"},
	})
	if text, err := r.world.File(t.Context(), rigRepo, "feature", "a.txt"); err != nil || text != "one\nline 1\nline 2\n" {
		t.Errorf("a.txt on the branch is %q (%v), want both lines pushed there", text, err)
	}
	if len(r.world.Pulls(rigRepo)) != 1 || r.head(n) == before {
		t.Errorf("%d pull requests, want the one with new commits", len(r.world.Pulls(rigRepo)))
	}
	if c := r.check(r.head(n), "pawl"); c.Conclusion != "success" {
		t.Errorf("the check run on the new commit is %q, want success", c.Conclusion)
	}
}

func TestAPullRequestFromAForkIsRefusedClearly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "feature", Message: "a feature", Files: map[string]string{"b.txt": "b\n"}})
	r.must(err)
	n, err := r.world.OpenPull(t.Context(), rigRepo, reader, fakegithub.PullRequest{Title: "A feature", Body: "Adds b.txt.", Head: "feature"})
	r.must(err)
	// The fake has no forks, so what it tells of the head is changed on the way.
	r.settle()
	r.world.SetWebhookURL("")
	r.must(r.world.AddLabel(rigRepo, n, writer, "pawl"))
	r.must(r.world.WaitDelivered(t.Context()))
	var payload map[string]any
	r.must(json.Unmarshal(r.delivered("pull_request").Payload, &payload))
	fork := payload["pull_request"].(map[string]any)["head"].(map[string]any)["repo"].(map[string]any)
	fork["id"], fork["full_name"], fork["fork"] = 424242, "mallory/widgets", true
	changed, err := json.Marshal(payload)
	r.must(err)
	r.world.SetWebhookURL(r.url("/api/github/hook"))
	r.world.Send("pull_request", changed)
	r.await("a decision", func() bool { return r.state(n).Decision != nil })
	r.settle()
	if d := r.state(n).Decision; d.Rule != "fork" || r.calls() != 0 {
		t.Errorf("%s (%s) after %d calls, want stop (fork) after none", d.Action, d.Rule, r.calls())
	}
	said := ""
	for _, c := range r.world.Comments(rigRepo, n) {
		said += c.Body
	}
	if !strings.Contains(said, "comes from a fork") {
		t.Errorf("the comments say %q, want them to say that it comes from a fork", said)
	}
	if pushes := r.world.Pushes(rigRepo); len(pushes) > 2 {
		t.Errorf("pushes: %+v, want none by Pawl", pushes)
	}
}

func TestUseChoosesTheBackend(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	script := strings.Split(strings.Split(r.config, "argv: [")[1], "]")[0]
	r.config += fmt.Sprintf("  - {name: other, kind: command, argv: [%s]}\n", script)
	r.start()
	n, _ := r.solved()
	r.must(r.says(n, writer, "/pawl use other")())
	r.must(r.says(n, reader, "/pawl use mine")())
	r.settle()
	if r.calls() != 1 {
		t.Errorf("%d calls of the agent, want 1: choosing is no work", r.calls())
	}
	r.play(n, []happens{{"a retry", r.says(n, writer, "/pawl retry"), "+ command retry"}})
	s := r.state(n)
	if got := s.Attempts[len(s.Attempts)-1].Backend; got != "other" {
		t.Errorf("the attempt ran on %s, want other", got)
	}
}
