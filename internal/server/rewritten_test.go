package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// begins pushes a branch of a person's, opens its pull request, and has the first attempt push to it. It returns the
// commit that the person pushed.
func (r *rig) begins() string {
	r.T.Helper()
	begun, err := r.World.PushCommit(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "work", Message: "Begin", Files: map[string]string{"b.txt": "one\ntwo\nthree\n"}})
	r.Must(err)
	r.Pulled, err = r.World.OpenPull(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Work", Body: "Begins.", Head: "work"})
	r.Must(err)
	r.Must(r.Says(r.Pulled, testrig.Writer, "/pawl solve add a line")())
	return begun
}

// rewrites force-pushes the branch of begins.
func (r *rig) rewrites(from string) string {
	r.T.Helper()
	sha, err := r.World.PushCommit(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "work", From: from, Message: "Begin anew", Files: map[string]string{"c.txt": "mine\n"}})
	r.Must(err)
	r.Settle()
	return sha
}

// asks waits until people are told that the branch was force-pushed, and looks that nothing was done to it.
func (r *rig) asks(calls int, head, gone string) {
	r.T.Helper()
	r.Await("the rule rewritten", func() bool { return r.Thread(testrig.ThreadName(r.Pulled)).Rule == "rewritten" })
	r.Settle()
	if r.Calls() != calls || r.Head(r.Pulled) != head {
		r.T.Errorf("%d calls and the head %s, want %d and %s", r.Calls(), r.Head(r.Pulled), calls, head)
	}
	check := r.Check(head, "pawl")
	for _, text := range []string{check.Title + "\n" + check.Summary, r.StatusComment(r.Pulled)} {
		if !strings.Contains(text, "the branch was force-pushed since") || !strings.Contains(text, fmt.Sprintf("does not hold commit `%.10s`", gone)) || !strings.Contains(text, "/pawl retry") {
			r.T.Errorf("people are told %q", text)
		}
	}
	if check.Conclusion != "action_required" {
		r.T.Errorf("the check run is %+v", check)
	}
}

func TestAReviewOfACommitThatWasForcePushedAwayIsToldAndWaitsForAPersonsWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.Must(r.World.AddBot("helper[bot]", 77))
	r.Config += "policy: {allowed_bots: [77]}\n"
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	begun := r.begins()
	r.Ending(r.Pulled)
	reviewed := r.Head(r.Pulled)
	head := r.rewrites(begun)
	_, err := r.World.ReviewCommentOn(t.Context(), testrig.Repo, r.Pulled, "mia", reviewed, "b.txt", 2, "Two is wrong.")
	r.Must(err)
	r.asks(1, head, reviewed)
	r.Must(r.Says(r.Pulled, "helper[bot]", "Go on with the line.")())
	r.Settle()
	r.asks(1, head, reviewed)
	r.Must(r.Says(r.Pulled, testrig.Writer, "/pawl retry")())
	if s := r.Ending(r.Pulled); s.State != "done" || r.Calls() != 2 || r.Head(r.Pulled) == head {
		t.Fatalf("%s (%s) after %d calls", s.State, s.Rule, r.Calls())
	}
	if _, err := r.World.Git(t.Context(), testrig.Repo, "merge-base", "--is-ancestor", head, "work"); err != nil {
		t.Errorf("the person's commit is not in the branch: %v", err)
	}
	prompt := r.Left("prompt.2")
	for _, told := range []string{"Two is wrong.", fmt.Sprintf("review_comment by mia, said of commit %.10s", reviewed), fmt.Sprintf(", said of commit %.10s, ", reviewed), "(the branch does not hold that commit any more)"} {
		if !strings.Contains(prompt, told) {
			t.Errorf("the agent was not told %q:\n%s", told, prompt)
		}
	}
}

func TestABranchThatWasForcePushedDuringAnAttemptIsNeitherMergedNorReworked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Gate()
	r.Start()
	begun := r.begins()
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	first := r.Head(r.Pulled)
	head, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "work", From: "main", Message: "Begin anew", Files: map[string]string{"c.txt": "mine\n"}})
	r.Must(err)
	r.Handled()
	r.Open()
	r.asks(1, head, begun)
	if _, err := r.World.Git(t.Context(), testrig.Repo, "show", fmt.Sprintf("pawl/kept-%d-1:a.txt", r.Pulled)); err != nil || first != begun {
		t.Errorf("the work is not kept: %v", err)
	}
	r.Must(r.Says(r.Pulled, testrig.Writer, "/pawl retry on what is there now")())
	if s := r.Ending(r.Pulled); s.State != "done" || r.Calls() != 2 {
		t.Fatalf("%s (%s) after %d calls", s.State, s.Rule, r.Calls())
	}
	if _, err := r.World.Git(t.Context(), testrig.Repo, "merge-base", "--is-ancestor", begun, "work"); err == nil {
		t.Error("what the person took away is back in the branch")
	}
}

func TestTheAgentIsToldWhatChangedInTheLinesSinceARemark(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	begun := r.begins()
	r.Ending(r.Pulled)
	pushed, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "work", Message: "Count on", Files: map[string]string{"b.txt": "one\n2\nthree\n"}})
	r.Must(err)
	r.Settle()
	for line, words := range map[int]string{1: "One is fine?", 2: "Two is wrong."} {
		_, err = r.World.ReviewCommentOn(t.Context(), testrig.Repo, r.Pulled, "mia", begun, "b.txt", line, words)
		r.Must(err)
	}
	if s := r.Ending(r.Pulled); s.State != "done" || r.Calls() != 2 {
		t.Fatalf("%s (%s) after %d calls", s.State, s.Rule, r.Calls())
	}
	prompt := r.Left("prompt.2")
	for _, told := range []string{
		fmt.Sprintf("review_comment by mia, said of commit %.10s", begun), fmt.Sprintf(", said of commit %.10s, ", begun),
		"(since then)\n| @@ -2 +2 @@", "\n| -two\n| +2\n", "(these lines are the same now)\n",
	} {
		if !strings.Contains(prompt, told) {
			t.Errorf("the agent was not told %q (%s was pushed):\n%s", told, pushed, prompt)
		}
	}
}
