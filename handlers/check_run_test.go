package handlers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

const unpaid = "The job was not started because recent account payments have failed or your spending limit needs to be increased. Please check the 'Billing & plans' section in your settings"

// pushed is an issue on whose branch Pawl pushed a commit, and the commit.
func (w *house) pushed() (thread.ID, string) {
	w.T.Helper()
	t := w.Issue("Sort it.")
	sha, err := w.GitHub.PushCommit(w.T.Context(), houseRepo, "ada", fakegithub.Commit{Branch: fmt.Sprint(thread.BranchPrefix, t.Number), Message: "Sort", Files: map[string]string{"a.txt": "sorted\n"}})
	w.Must(err)
	_, err = w.Store.Append(w.T.Context(), t, false,
		thread.NewEvent{Kind: thread.KindAttemptStarted, At: w.Now(), Data: thread.Started{N: 1, Run: 1}},
		thread.NewEvent{Kind: thread.KindAttemptEnded, At: w.Now(), Data: policy.Receipt{N: 1, Commit: sha, Pushed: true}})
	w.Must(err)
	w.GitHub.AddOtherApp("ci", 900)
	w.Handle()
	return t, sha
}

// concludes lets a check of another App end on a commit.
func (w *house) concludes(sha, name, conclusion string, notes ...fakegithub.CheckAnnotation) {
	w.T.Helper()
	_, err := w.GitHub.CompleteCheckRun(houseRepo, "ci", fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: conclusion, Annotations: notes})
	w.Must(err)
	w.Handle()
}

func (w *house) state(t thread.ID) thread.State {
	w.T.Helper()
	s, err := thread.Fold(w.Log(t))
	w.Must(err)
	return s
}

func (w *house) annotationsRead() int {
	return w.GitHub.Calls()["GET /repos/{owner}/{repo}/check-runs/{id}/annotations"]
}

func TestTheAnnotationsOfAFailingCheckAreWhatTheAgentReads(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	w.concludes(sha, "unit", "failure",
		fakegithub.CheckAnnotation{Path: ".github", Line: 2, Level: "warning", Message: "Node.js 16 actions are deprecated."},
		fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Title: "TestSorted", Message: "want [1 2]\ngot [2 1]"},
		fakegithub.CheckAnnotation{Path: ".github", Line: 40, Message: "Process completed with exit code 1."})
	s := w.state(issue)
	f := s.Feedback[len(s.Feedback)-1]
	want := "Check run \"unit\": failure\n\nsort_test.go:17: TestSorted: want [1 2]\n  got [2 1]\n.github:40: Process completed with exit code 1.\n.github:2: warning: Node.js 16 actions are deprecated."
	if f.Text != want || f.Check != "unit" || f.Outside != "" {
		t.Errorf("the agent reads\n%s\n(%+v), want\n%s", f.Text, f, want)
	}
}

func TestAFailureOutsideOfTheWorkIsIgnoredWithItsReason(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	w.concludes(sha, "unit", "failure", fakegithub.CheckAnnotation{Path: ".github", Line: 1, Message: unpaid})
	s := w.state(issue)
	last := s.Ignored[len(s.Ignored)-1]
	if !strings.Contains(last.Reason, `check run "unit" failed for a reason that is not the work's: billing: The job was not started`) {
		t.Errorf("ignored because %q, want billing", last.Reason)
	}
	if c := s.Checks[len(s.Checks)-1]; c.Name != "unit" || !strings.HasPrefix(c.Outside, "billing: ") {
		t.Errorf("the grade knows %+v, want a failure outside of the work", c)
	}
	// The bill is paid, and the same check really fails.
	w.concludes(sha, "unit", "failure", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Message: "want [1 2]"})
	if f := w.state(issue).Feedback; f[len(f)-1].Check != "unit" || !strings.Contains(f[len(f)-1].Text, "sort_test.go:17: want [1 2]") {
		t.Errorf("the last feedback is %+v, want the failing test", f[len(f)-1])
	}
}

func TestOneCheckOfACommitFailsOnce(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	before := len(w.state(issue).Feedback)
	w.concludes(sha, "unit", "failure")
	w.concludes(sha, "unit", "timed_out")
	w.concludes(sha, "lint", "failure")
	s := w.state(issue)
	if got := len(s.Feedback) - before; got != 2 {
		t.Errorf("%d failures count, want those of unit and lint", got)
	}
	if last := s.Ignored[len(s.Ignored)-1]; last.Reason != `check run "unit" failed on this commit before` {
		t.Errorf("ignored because %q", last.Reason)
	}
	// Two deliveries at the same time see the same state.
	n, err := w.Store.Append(t.Context(), issue, true, thread.NewEvent{Key: failedKey(sha, "lint"), Kind: thread.KindFeedback, At: w.Now(), Data: thread.Feedback{}})
	if err != nil || n != 0 {
		t.Errorf("%d events, %v; want the key of the failure to be taken", n, err)
	}
}

func TestAnnotationsAreAskedForOnlyWhereTheyMatter(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	other, err := w.GitHub.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: fmt.Sprint(thread.BranchPrefix, issue.Number), Message: "More", Files: map[string]string{"b.txt": "b\n"}})
	w.Must(err)
	for _, conclusion := range []string{"success", "cancelled", "skipped", "neutral", "action_required"} {
		w.concludes(sha, "unit", conclusion)
	}
	w.concludes(other, "unit", "failure")
	if n := w.annotationsRead(); n != 0 {
		t.Errorf("%d requests for annotations, want none", n)
	}
	for _, f := range w.state(issue).Feedback {
		if f.Check != "" {
			t.Errorf("%s of %q counts", f.Conclusion, f.Check)
		}
	}
}

func TestAFailureCountsAlsoWithoutItsAnnotations(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	w.GitHub.Inject(fakegithub.Fault{Route: "GET /repos/*/*/check-runs/*/annotations", Times: -1, Status: 500})
	w.concludes(sha, "unit", "failure", fakegithub.CheckAnnotation{Path: ".github", Line: 1, Message: unpaid})
	f := w.state(issue).Feedback
	if last := f[len(f)-1]; last.Check != "unit" || !strings.Contains(last.Text, "(The annotations of this check run could not be fetched: ") {
		t.Errorf("the last feedback is %+v, want the failure with a note", last)
	}
}

func TestWhatPassedAndFailedIsRememberedForTheGrade(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	w.concludes(sha, "lint", "success")
	w.concludes(sha, "unit", "failure")
	var got []string
	for _, c := range w.state(issue).Checks {
		got = append(got, c.Name+" "+c.Conclusion+c.Outside)
	}
	if want := "lint success, unit failure"; strings.Join(got, ", ") != want {
		t.Errorf("remembered %q, want %s", got, want)
	}
}

func TestReRunAllChecksAsksForNothingWhereNobodyAskedPawl(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl solve")
	w.Must(err)
	w.Handle()
	suite := func(action, branch string) string {
		w.T.Helper()
		body := fmt.Sprintf(`{"action":%q,"repository":{"full_name":%q,"name":"widgets","owner":{"login":"acme"}},"sender":{"login":"ada","id":1,"type":"User"},
			"check_suite":{"head_branch":%q,"head_sha":%q,"app":{"id":%d},"pull_requests":[{"number":4711}]}}`, action, houseRepo, branch, sha, 1)
		activities, err := read([]byte(body), checkRun)
		w.Must(err)
		note, err := w.h.appendAll(t.Context(), "check_suite", branch, activities)
		w.Must(err)
		return note
	}
	if note := suite("rerequested", "a-person's"); !strings.Contains(note, "Pawl does not work on acme/widgets#4711") {
		t.Errorf("on somebody's pull request: %q", note)
	}
	if note := suite("requested", fmt.Sprint(thread.BranchPrefix, issue.Number)); note != "nothing to do for check_suite" {
		t.Errorf("a push that makes a suite: %q", note)
	}
	if note := suite("rerequested", fmt.Sprint(thread.BranchPrefix, issue.Number)); !strings.Contains(note, "ada has none permission") {
		t.Errorf("on Pawl's branch: %q", note)
	}
}
