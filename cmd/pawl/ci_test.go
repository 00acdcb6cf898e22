package main

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// fails lets a check of GitHub Actions fail, with what it says at lines.
func (r *rig) fails(sha, name string, notes ...fakegithub.CheckAnnotation) func() error {
	return func() error {
		_, err := r.world.CompleteCheckRun(rigRepo, "github-actions", fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: "failure", Annotations: notes})
		return err
	}
}

// withCI is a solved issue whose pull request's head another App checks.
func (r *rig) withCI() (issue, pull int, head string) {
	r.t.Helper()
	r.agent(plainAgent, "")
	r.world.AddOtherApp("github-actions", 15368)
	r.start()
	issue, pull = r.solved()
	return issue, pull, r.head(pull)
}

func TestFailingCIOfACommitIsOneAttemptThatReadsItsAnnotations(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, pull, head := r.withCI()
	exit := fakegithub.CheckAnnotation{Path: ".github", Line: 40, Message: "Process completed with exit code 1."}
	r.must(r.fails(head, "unit", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Title: "TestSorted", Message: "want [1 2]\ngot [2 1]"}, exit)())
	r.must(r.fails(head, "lint", fakegithub.CheckAnnotation{Path: "sort.go", Line: 3, Message: "unused variable x"}, exit)())
	r.must(r.fails(head, "unit", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Message: "the same once more"})())
	_, err := r.world.CompleteCheckRun(rigRepo, "github-actions", fakegithub.CheckResult{SHA: head, Name: "vet", Conclusion: "failure", Title: "1 of 9 failed", Summary: "TestSORTED failed"})
	r.must(err)
	r.settle()
	r.await("the next commit", func() bool { return r.head(pull) != head })
	r.settle()
	if r.calls() != 2 {
		t.Fatalf("%d calls of the agent (%q), want one for all checks", r.calls(), r.judged(n))
	}
	p := r.prompt("2")
	for _, want := range []string{"sort_test.go:17: TestSorted: want [1 2]", "got [2 1]", "sort.go:3: unused variable x", "1 of 9 failed", "TestSORTED failed"} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	if strings.Contains(p, "the same once more") {
		t.Errorf("the prompt has the second run of a check on the same commit:\n%s", p)
	}
	_, err = r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "feature", Message: "a feature", Files: map[string]string{"b.txt": "b\n"}})
	r.must(err)
	other, err := r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "A feature", Head: "feature"})
	r.must(err)
	r.settle()
	r.play(other, []happens{{"failure on somebody else's commit", r.fails(r.head(other), "unit"), ""}})
}

func TestABillingFailureStartsNothingAndWhySaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, _, head := r.withCI()
	r.play(n, []happens{{"a job that was not started", r.fails(head, "unit", fakegithub.CheckAnnotation{Path: ".github", Line: 1,
		Message: "The job was not started because recent account payments have failed or your spending limit needs to be increased. Please check the 'Billing & plans' section in your settings"}),
		`- check run "unit" failed for a reason that is not the work's: billing: The job was not started`}})
	before := len(r.world.Comments(rigRepo, n))
	r.must(r.says(n, writer, "/pawl why")())
	r.settle()
	all := r.world.Comments(rigRepo, n)
	if answer := all[len(all)-1].Body; len(all) != before+2 || !strings.Contains(answer, "billing: The job was not started because recent account payments have failed") {
		t.Errorf("/pawl why answers\n%s\nwant the billing", answer)
	}
}
