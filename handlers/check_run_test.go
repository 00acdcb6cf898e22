package handlers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// pushed returns an issue on whose branch Pawl pushed a commit, and the commit.
func (w *rig) pushed() (thread.ID, string) {
	w.T.Helper()
	t := w.Issue("Sort it.")
	sha := w.push(fmt.Sprint(thread.BranchPrefix, t.Number), "Sort", "a.txt", "sorted\n")
	w.addEvent(t, thread.KindAttemptStarted, thread.Started{N: 1, Run: 1})
	w.addEvent(t, thread.KindAttemptEnded, policy.Receipt{N: 1, Commit: sha, Pushed: true})
	w.GitHub.AddOtherApp("ci", 900)
	w.Handle()
	return t, sha
}

// concludes finishes another App's check on a commit.
func (w *rig) concludes(sha, name, conclusion string, notes ...fakegithub.CheckAnnotation) {
	w.T.Helper()
	_, err := w.GitHub.CompleteCheckRun(testRepo, "ci", fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: conclusion, Annotations: notes})
	w.Must(err)
	w.Handle()
}

func (w *rig) state(t thread.ID) thread.State {
	w.T.Helper()
	s, err := thread.Fold(w.Log(t))
	w.Must(err)
	return s
}

func TestFailingCheckOnlyWakesItsThread(t *testing.T) {
	w := newRig(t)
	issue, sha := w.pushed()
	before := len(w.state(issue).Feedback)
	w.concludes(sha, "unit", "failure", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Message: "want [1 2]"})
	w.concludes(sha, "unit", "timed_out")
	w.concludes(sha, "lint", "failure")
	s := w.state(issue)
	if len(s.Feedback) != before {
		t.Errorf("%d failures became feedback, want none", len(s.Feedback)-before)
	}
	for _, f := range s.Ignored[len(s.Ignored)-3:] {
		if !strings.Contains(f.Reason, "the checks of a commit are looked at together") {
			t.Errorf("%s: ignored because %q", f.Check, f.Reason)
		}
	}
	if red := s.Red(); !slices.Equal(red.Names, []string{"unit", "lint"}) || red.Last.Before(red.First) {
		t.Errorf("failing checks %+v, want unit and lint", red)
	}
}

func TestCheckResultsAreKeptForTheGrade(t *testing.T) {
	w := newRig(t)
	issue, sha := w.pushed()
	w.concludes(sha, "lint", "success")
	w.concludes(sha, "unit", "failure")
	var got []string
	for _, c := range w.state(issue).Checks {
		got = append(got, c.Name+" "+c.Conclusion+c.Outside)
	}
	if want := "lint success, unit failure"; strings.Join(got, ", ") != want {
		t.Errorf("the log keeps %q, want %s", got, want)
	}
}

func TestReRunAllChecksRetriesTrackedThreads(t *testing.T) {
	w := newRig(t)
	issue, sha := w.pushed()
	w.Writes(issue.Number, "ada", "/pawl solve")
	installation, err := w.GitHub.InstallationID(testRepo)
	w.Must(err)
	own := fmt.Sprint(thread.BranchPrefix, issue.Number)
	for _, c := range []struct{ action, branch, want string }{
		{"rerequested", "a-user's", "Pawl does not work on acme/widgets#4711"},
		{"requested", own, "nothing to do for check_suite"}, // a push creates a suite
		{"rerequested", own, `button "retry"`},
	} {
		body := fmt.Sprintf(`{"action":%q,"repository":{"full_name":%q,"name":"widgets","owner":{"login":"acme"}},"sender":{"login":"ada","id":1001,"type":"User"},
			"installation":{"id":%d},"check_suite":{"head_branch":%q,"head_sha":%q,"app":{"id":1},"pull_requests":[{"number":4711}]}}`,
			c.action, testRepo, installation, c.branch, sha)
		activities, err := read([]byte(body), checkRun)
		w.Must(err)
		if note, err := w.h.appendAll(t.Context(), "check_suite", c.action+c.branch, activities); err != nil || !strings.Contains(note, c.want) {
			t.Errorf("%s on %s: %q, %v; want %q", c.action, c.branch, note, err, c.want)
		}
	}
}
