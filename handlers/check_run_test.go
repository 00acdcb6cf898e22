package handlers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver"
)

const unpaid = "The job was not started because recent account payments have failed or your spending limit needs to be increased. Please check the 'Billing & plans' section in your settings"

// pushed is an issue on whose branch Pawl pushed a commit, and the commit.
func (w *house) pushed() (solver.Thread, string) {
	w.t.Helper()
	t := w.issue("Sort it.")
	sha, err := w.gh.PushCommit(w.t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: fmt.Sprint(solver.BranchPrefix, t.Number), Message: "Sort", Files: map[string]string{"a.txt": "sorted\n"}})
	w.must(err)
	_, err = w.store.Append(w.t.Context(), t, false,
		solver.NewEvent{Kind: solver.KindAttemptStarted, At: w.now(), Data: solver.Started{N: 1, Run: 1}},
		solver.NewEvent{Kind: solver.KindAttemptEnded, At: w.now(), Data: solver.Ended{N: 1, Commit: sha, Pushed: true}})
	w.must(err)
	w.gh.AddOtherApp("ci", 900)
	w.handle()
	return t, sha
}

// concludes lets a check of another App end on a commit.
func (w *house) concludes(sha, name, conclusion string, notes ...fakegithub.CheckAnnotation) {
	w.t.Helper()
	_, err := w.gh.CompleteCheckRun(houseRepo, "ci", fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: conclusion, Annotations: notes})
	w.must(err)
	w.handle()
}

func (w *house) state(t solver.Thread) solver.State {
	w.t.Helper()
	s, err := solver.Fold(w.log(t))
	w.must(err)
	return s
}

func (w *house) annotationsRead() int {
	return w.gh.Calls()["GET /repos/{owner}/{repo}/check-runs/{id}/annotations"]
}

func TestTheAnnotationsOfAFailingCheckAreWhatTheAgentReads(t *testing.T) {
	w := newHouse(t)
	thread, sha := w.pushed()
	w.concludes(sha, "unit", "failure",
		fakegithub.CheckAnnotation{Path: ".github", Line: 2, Level: "warning", Message: "Node.js 16 actions are deprecated."},
		fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Title: "TestSorted", Message: "want [1 2]\ngot [2 1]"},
		fakegithub.CheckAnnotation{Path: ".github", Line: 40, Message: "Process completed with exit code 1."})
	s := w.state(thread)
	f := s.Feedback[len(s.Feedback)-1]
	want := "Check run \"unit\": failure\n\nsort_test.go:17: TestSorted: want [1 2]\n  got [2 1]\n.github:40: Process completed with exit code 1.\n.github:2: warning: Node.js 16 actions are deprecated."
	if f.Text != want || f.Check != "unit" || f.Outside != "" {
		t.Errorf("the agent reads\n%s\n(%+v), want\n%s", f.Text, f, want)
	}
}

func TestAFailureOutsideOfTheWorkIsIgnoredWithItsReason(t *testing.T) {
	w := newHouse(t)
	thread, sha := w.pushed()
	w.concludes(sha, "unit", "failure", fakegithub.CheckAnnotation{Path: ".github", Line: 1, Message: unpaid})
	s := w.state(thread)
	last := s.Ignored[len(s.Ignored)-1]
	if !strings.Contains(last.Reason, `check run "unit" failed for a reason that is not the work's: billing: The job was not started`) {
		t.Errorf("ignored because %q, want billing", last.Reason)
	}
	if c := s.Checks[len(s.Checks)-1]; c.Name != "unit" || !strings.HasPrefix(c.Outside, "billing: ") {
		t.Errorf("the grade knows %+v, want a failure outside of the work", c)
	}
	// The bill is paid, and the same check really fails.
	w.concludes(sha, "unit", "failure", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Message: "want [1 2]"})
	if f := w.state(thread).Feedback; f[len(f)-1].Check != "unit" || !strings.Contains(f[len(f)-1].Text, "sort_test.go:17: want [1 2]") {
		t.Errorf("the last feedback is %+v, want the failing test", f[len(f)-1])
	}
}

func TestOneCheckOfACommitFailsOnce(t *testing.T) {
	w := newHouse(t)
	thread, sha := w.pushed()
	before := len(w.state(thread).Feedback)
	w.concludes(sha, "unit", "failure")
	w.concludes(sha, "unit", "timed_out")
	w.concludes(sha, "lint", "failure")
	s := w.state(thread)
	if got := len(s.Feedback) - before; got != 2 {
		t.Errorf("%d failures count, want those of unit and lint", got)
	}
	if last := s.Ignored[len(s.Ignored)-1]; last.Reason != `check run "unit" failed on this commit before` {
		t.Errorf("ignored because %q", last.Reason)
	}
	// Two deliveries at the same time see the same state.
	n, err := w.store.Append(t.Context(), thread, true, solver.NewEvent{Key: failedKey(sha, "lint"), Kind: solver.KindFeedback, At: w.now(), Data: solver.Feedback{}})
	if err != nil || n != 0 {
		t.Errorf("%d events, %v; want the key of the failure to be taken", n, err)
	}
}

func TestAnnotationsAreAskedForOnlyWhereTheyMatter(t *testing.T) {
	w := newHouse(t)
	thread, sha := w.pushed()
	other, err := w.gh.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: fmt.Sprint(solver.BranchPrefix, thread.Number), Message: "More", Files: map[string]string{"b.txt": "b\n"}})
	w.must(err)
	for _, conclusion := range []string{"success", "cancelled", "skipped", "neutral", "action_required"} {
		w.concludes(sha, "unit", conclusion)
	}
	w.concludes(other, "unit", "failure")
	if n := w.annotationsRead(); n != 0 {
		t.Errorf("%d requests for annotations, want none", n)
	}
	for _, f := range w.state(thread).Feedback {
		if f.Check != "" {
			t.Errorf("%s of %q counts", f.Conclusion, f.Check)
		}
	}
}

func TestAFailureCountsAlsoWithoutItsAnnotations(t *testing.T) {
	w := newHouse(t)
	thread, sha := w.pushed()
	w.gh.Inject(fakegithub.Fault{Route: "GET /repos/*/*/check-runs/*/annotations", Times: -1, Status: 500})
	w.concludes(sha, "unit", "failure", fakegithub.CheckAnnotation{Path: ".github", Line: 1, Message: unpaid})
	f := w.state(thread).Feedback
	if last := f[len(f)-1]; last.Check != "unit" || !strings.Contains(last.Text, "(The annotations of this check run could not be fetched: ") {
		t.Errorf("the last feedback is %+v, want the failure with a note", last)
	}
}

func TestWhatPassedAndFailedIsRememberedForTheGrade(t *testing.T) {
	w := newHouse(t)
	thread, sha := w.pushed()
	w.concludes(sha, "lint", "success")
	w.concludes(sha, "unit", "failure")
	var got []string
	for _, c := range w.state(thread).Checks {
		got = append(got, c.Name+" "+c.Conclusion+c.Outside)
	}
	if want := "lint success, unit failure"; strings.Join(got, ", ") != want {
		t.Errorf("remembered %q, want %s", got, want)
	}
}
