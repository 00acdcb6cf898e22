package handlers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver/thread"
)

// signals returns a log's signals as "what #number by whom detail".
func (w *rig) signals(t thread.ID) []string {
	w.T.Helper()
	var list []string
	for _, c := range w.Changes(t) {
		if c.What == "approved" || c.What == "changes_requested" || c.What == "reverted" {
			if c.URL == "" {
				w.T.Errorf("%+v has no address", c)
			}
			list = append(list, fmt.Sprintf("%s #%d by %s %.7s", c.What, c.Number, c.By, c.Detail))
		}
	}
	return list
}

// issueWithPull returns a tracked issue and its pull request.
func (w *rig) issueWithPull() (issue thread.ID, pull int) {
	w.T.Helper()
	issue = w.Issue("Please.")
	w.push("topic", "Two", "a.txt", "two\n")
	pull, err := w.GitHub.OpenPull(w.T.Context(), testRepo, "ada", fakegithub.PullRequest{Title: "Two lines", Head: "topic"})
	w.Must(err)
	lease, err := w.Store.Acquire(w.T.Context(), issue, "test")
	w.Must(err)
	w.Must(w.Store.AppendLeased(w.T.Context(), lease, thread.Batch{Alias: pull}))
	w.Must(w.Store.Release(w.T.Context(), lease, nil))
	return issue, pull
}

func (w *rig) push(branch, message, file, text string) string {
	w.T.Helper()
	sha, err := w.GitHub.PushCommit(w.T.Context(), testRepo, "ada", fakegithub.Commit{Branch: branch, Message: message, Files: map[string]string{file: text}})
	w.Must(err)
	return sha
}

func (w *rig) wantSignals(t thread.ID, want ...string) {
	w.T.Helper()
	w.Handle()
	if diff := cmp.Diff(want, w.signals(t)); diff != "" {
		w.T.Errorf("signals (-want +got)\n%s", diff)
	}
}

func TestPermittedReviewsAreSignals(t *testing.T) {
	w := newRig(t)
	issue, pull := w.issueWithPull()
	w.Must(w.GitHub.AddBot("nice[bot]", 77))
	sha := w.GitHub.Branches(testRepo)["topic"]
	for _, who := range []string{"mallory", "nice[bot]", "ada"} {
		for _, state := range []string{"APPROVED", "COMMENTED", "CHANGES_REQUESTED"} {
			_, err := w.GitHub.Review(testRepo, pull, who, state, "")
			w.Must(err)
		}
	}
	w.wantSignals(issue, fmt.Sprintf("approved #%d by ada %.7s", pull, sha), fmt.Sprintf("changes_requested #%d by ada %.7s", pull, sha))
}

func TestUsersVerdictsReachTheGrade(t *testing.T) {
	w := newRig(t)
	issue, pull := w.issueWithPull()
	comment := w.Writes(issue.Number, "pawl[bot]", "**Done**")
	w.addEvent(issue, thread.KindAttemptStarted, thread.Started{N: 1, Run: 1})
	w.addEvent(issue, thread.KindAttemptEnded, policy.Receipt{N: 1, Commit: w.GitHub.Branches(testRepo)["topic"], Pushed: true})
	w.addEvent(issue, thread.KindActDone, thread.Act{Key: thread.ActStatus, ID: comment})
	w.addEvent(issue, thread.KindActDone, thread.Act{Key: thread.ActPull, ID: int64(pull)})
	for _, who := range []string{"mallory", "ada"} { // mallory may not write
		w.Must(w.GitHub.ReactToComment(testRepo, comment, who, "-1"))
	}
	_, err := w.GitHub.Review(testRepo, pull, "ada", "APPROVED", "")
	w.Must(err)
	w.Must(w.GitHub.ClosePull(testRepo, pull, "ada"))
	w.Handle()
	var got []learning.PeopleKind
	for _, s := range w.state(issue).Grade(issue, 0, policy.SeverityLimits{}).Signals {
		if s.Source == learning.PeopleSource && s.Known {
			got = append(got, s.Kind)
		}
	}
	slices.Sort(got)
	want := []learning.PeopleKind{learning.Approved, learning.ClosedUnmerged, learning.ThumbsDown}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("signals of the grade (-want +got):\n%s", diff)
	}
}

func TestUntrackedReviewsAreNoSignals(t *testing.T) {
	w := newRig(t)
	w.push("other", "Two", "a.txt", "two\n")
	n, err := w.GitHub.OpenPull(t.Context(), testRepo, "ada", fakegithub.PullRequest{Title: "Two lines", Head: "other"})
	w.Must(err)
	w.GitHub.ResetCalls()
	_, err = w.GitHub.Review(testRepo, n, "ada", "APPROVED", "")
	w.Must(err)
	w.wantSignals(thread.ID{Owner: "acme", Name: "widgets", Number: n})
	if calls := w.GitHub.Calls(); calls["GET /repos/{owner}/{repo}/collaborators/{login}/permission"] != 0 {
		t.Errorf("requests %v, want none for a permission", calls)
	}
}

func TestARevertIsASignalOnce(t *testing.T) {
	w := newRig(t)
	issue, pull := w.issueWithPull()
	merge, err := w.GitHub.MergePull(t.Context(), testRepo, pull, "ada")
	w.Must(err)
	revert := w.push("revert-2-topic", fmt.Sprintf("Revert \"Two lines\"\n\nThis reverts commit %s, reversing\nchanges made to 0123456789.", merge), "a.txt", "one\n")
	if revert == "" {
		t.Fatal("nothing was pushed")
	}
	w.wantSignals(issue)
	n, err := w.GitHub.OpenPull(t.Context(), testRepo, "ada", fakegithub.PullRequest{
		Title: `Revert "Two lines"`, Body: fmt.Sprintf("Reverts %s#%d", testRepo, pull), Head: "revert-2-topic"})
	w.Must(err)
	w.wantSignals(issue)
	_, err = w.GitHub.MergePull(t.Context(), testRepo, n, "ada")
	w.Must(err)
	w.wantSignals(issue, fmt.Sprintf("reverted #%d by ada ", pull))
}

func TestARevertPushedByHandIsFoundByItsCommit(t *testing.T) {
	w := newRig(t)
	issue, pull := w.issueWithPull()
	own := w.GitHub.Branches(testRepo)["topic"]
	_, err := w.GitHub.MergePull(t.Context(), testRepo, pull, "ada")
	w.Must(err)
	w.push("main", "Revert \"Two\"\n\nThis reverts commit "+own+".\n", "a.txt", "one\n")
	w.push("main", "Revert \"x\"\n\nThis reverts commit 00112233445566778899aabbccddeeff00112233.\n", "a.txt", "four\n")
	w.wantSignals(issue, fmt.Sprintf("reverted #%d by ada %.7s", pull, own))
}

func TestOnlyGitHubsRevertTextNamesAPullRequest(t *testing.T) {
	r := forge.Repo{Owner: "acme", Name: "widgets"}
	for text, want := range map[string][]int{
		"Reverts acme/widgets#7":               {7},
		"Reverts Acme/Widgets#7, see #9":       {7},
		"Reverts #7":                           {7},
		"Reverts other/widgets#7":              nil,
		"This reverts #7":                      nil,
		"> Reverts acme/widgets#7":             nil,
		"text\nReverts #12\nReverts #13":       {12, 13},
		"Reverts acme/widgets#99999999999":     nil,
		"Reverts acme/widgets#0 and more text": nil,
	} {
		var got []int
		for _, pull := range revertedPulls(text, r) {
			got = append(got, pull.number)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", text, diff)
		}
	}
}
