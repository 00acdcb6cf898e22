package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// begins pushes a branch of a person's, opens its pull request, and has the first attempt push to it. It returns the
// commit that the person pushed.
func (r *rig) begins() string {
	r.t.Helper()
	begun, err := r.world.PushCommit(r.t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "work", Message: "Begin", Files: map[string]string{"b.txt": "one\ntwo\nthree\n"}})
	r.must(err)
	r.pulled, err = r.world.OpenPull(r.t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Work", Body: "Begins.", Head: "work"})
	r.must(err)
	r.must(r.says(r.pulled, writer, "/pawl solve add a line")())
	return begun
}

// rewrites force-pushes the branch of begins.
func (r *rig) rewrites(from string) string {
	r.t.Helper()
	sha, err := r.world.PushCommit(r.t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "work", From: from, Message: "Begin anew", Files: map[string]string{"c.txt": "mine\n"}})
	r.must(err)
	r.settle()
	return sha
}

// asks waits until people are told that the branch was force-pushed, and looks that nothing was done to it.
func (r *rig) asks(calls int, head, gone string) {
	r.t.Helper()
	r.await("the rule rewritten", func() bool { return r.thread(threadName(r.pulled)).Rule == "rewritten" })
	r.settle()
	if r.calls() != calls || r.head(r.pulled) != head {
		r.t.Errorf("%d calls and the head %s, want %d and %s", r.calls(), r.head(r.pulled), calls, head)
	}
	check := r.check(head, "pawl")
	for _, text := range []string{check.Title + "\n" + check.Summary, r.statusComment(r.pulled)} {
		if !strings.Contains(text, "the branch was force-pushed since") || !strings.Contains(text, fmt.Sprintf("does not hold commit `%.10s`", gone)) || !strings.Contains(text, "/pawl retry") {
			r.t.Errorf("people are told %q", text)
		}
	}
	if check.Conclusion != "action_required" {
		r.t.Errorf("the check run is %+v", check)
	}
}

func TestAReviewOfACommitThatWasForcePushedAwayIsToldAndWaitsForAPersonsWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.must(r.world.AddBot("helper[bot]", 77))
	r.config += "policy: {allowed_bots: [77]}\n"
	r.agent(plainAgent, "")
	r.start()
	begun := r.begins()
	r.ending(r.pulled)
	reviewed := r.head(r.pulled)
	head := r.rewrites(begun)
	_, err := r.world.ReviewCommentOn(t.Context(), rigRepo, r.pulled, "mia", reviewed, "b.txt", 2, "Two is wrong.")
	r.must(err)
	r.asks(1, head, reviewed)
	r.must(r.says(r.pulled, "helper[bot]", "Go on with the line.")())
	r.settle()
	r.asks(1, head, reviewed)
	r.must(r.says(r.pulled, writer, "/pawl retry")())
	if s := r.ending(r.pulled); s.State != "done" || r.calls() != 2 || r.head(r.pulled) == head {
		t.Fatalf("%s (%s) after %d calls", s.State, s.Rule, r.calls())
	}
	if _, err := r.world.Git(t.Context(), rigRepo, "merge-base", "--is-ancestor", head, "work"); err != nil {
		t.Errorf("the person's commit is not in the branch: %v", err)
	}
	prompt := r.left("prompt.2")
	for _, told := range []string{"Two is wrong.", fmt.Sprintf("review_comment by mia, said of commit %.10s", reviewed), fmt.Sprintf(", said of commit %.10s, ", reviewed), "(the branch does not hold that commit any more)"} {
		if !strings.Contains(prompt, told) {
			t.Errorf("the agent was not told %q:\n%s", told, prompt)
		}
	}
}

func TestABranchThatWasForcePushedDuringAnAttemptIsNeitherMergedNorReworked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(gatedAgent, "")
	r.gate()
	r.start()
	begun := r.begins()
	r.await("the agent", func() bool { return r.calls() == 1 })
	first := r.head(r.pulled)
	head, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "work", From: "main", Message: "Begin anew", Files: map[string]string{"c.txt": "mine\n"}})
	r.must(err)
	r.handled()
	r.open()
	r.asks(1, head, begun)
	if _, err := r.world.Git(t.Context(), rigRepo, "show", fmt.Sprintf("pawl/kept-%d-1:a.txt", r.pulled)); err != nil || first != begun {
		t.Errorf("the work is not kept: %v", err)
	}
	r.must(r.says(r.pulled, writer, "/pawl retry on what is there now")())
	if s := r.ending(r.pulled); s.State != "done" || r.calls() != 2 {
		t.Fatalf("%s (%s) after %d calls", s.State, s.Rule, r.calls())
	}
	if _, err := r.world.Git(t.Context(), rigRepo, "merge-base", "--is-ancestor", begun, "work"); err == nil {
		t.Error("what the person took away is back in the branch")
	}
}

func TestTheAgentIsToldWhatChangedInTheLinesSinceARemark(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.agent(plainAgent, "")
	r.start()
	begun := r.begins()
	r.ending(r.pulled)
	pushed, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "work", Message: "Count on", Files: map[string]string{"b.txt": "one\n2\nthree\n"}})
	r.must(err)
	r.settle()
	for line, words := range map[int]string{1: "One is fine?", 2: "Two is wrong."} {
		_, err = r.world.ReviewCommentOn(t.Context(), rigRepo, r.pulled, "mia", begun, "b.txt", line, words)
		r.must(err)
	}
	if s := r.ending(r.pulled); s.State != "done" || r.calls() != 2 {
		t.Fatalf("%s (%s) after %d calls", s.State, s.Rule, r.calls())
	}
	prompt := r.left("prompt.2")
	for _, told := range []string{
		fmt.Sprintf("review_comment by mia, said of commit %.10s", begun), fmt.Sprintf(", said of commit %.10s, ", begun),
		"(since then)\n| @@ -2 +2 @@", "\n| -two\n| +2\n", "(these lines are the same now)\n",
	} {
		if !strings.Contains(prompt, told) {
			t.Errorf("the agent was not told %q (%s was pushed):\n%s", told, pushed, prompt)
		}
	}
}
