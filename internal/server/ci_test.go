package server_test

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func (r *rig) fails(sha, name string, notes ...fakegithub.CheckAnnotation) func() error {
	return func() error {
		_, err := r.World.CompleteCheckRun(testrig.Repo, "github-actions", fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: "failure", Annotations: notes})
		return err
	}
}

func (r *rig) withCI() (issue, pull int, head string) {
	r.T.Helper()
	r.Agent(testrig.PlainAgent, "")
	r.World.AddOtherApp("github-actions", 15368)
	r.Start()
	issue, pull = r.Solved()
	return issue, pull, r.Head(pull)
}

func TestFailingCIBeginsOneAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, pull, head := r.withCI()
	exit := fakegithub.CheckAnnotation{Path: ".github", Line: 40, Message: "Process completed with exit code 1."}
	r.Must(r.fails(head, "unit", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Title: "TestSorted", Message: "want [1 2]\ngot [2 1]"}, exit)())
	r.Must(r.fails(head, "lint", fakegithub.CheckAnnotation{Path: "sort.go", Line: 3, Message: "unused variable x"}, exit)())
	r.Must(r.fails(head, "unit", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Message: "the same once more"})())
	_, err := r.World.CompleteCheckRun(testrig.Repo, "github-actions", fakegithub.CheckResult{SHA: head, Name: "vet", Conclusion: "failure", Title: "1 of 9 failed", Summary: "TestSORTED failed"})
	r.Must(err)
	r.Settle()
	r.Await("the next commit", func() bool { return r.Head(pull) != head })
	r.Settle()
	if r.Calls() != 2 {
		t.Fatalf("%d calls of the agent (%q), want one for all checks", r.Calls(), r.judged(n))
	}
	p := r.Prompt("2")
	for _, want := range []string{"sort_test.go:17: the same once more", "sort.go:3: unused variable x", "1 of 9 failed", "TestSORTED failed"} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	if !strings.Contains(p, "the same once more") {
		t.Errorf("the prompt lacks the newest run of a check:\n%s", p)
	}
	_, err = r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "feature", Message: "a feature", Files: map[string]string{"b.txt": "b\n"}})
	r.Must(err)
	other, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "A feature", Head: "feature"})
	r.Must(err)
	r.Settle()
	r.play(other, []happens{{"failure on another user's commit", r.fails(r.Head(other), "unit"), ""}})
}
