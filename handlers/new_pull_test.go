package handlers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/thread"
)

// Between the request that opens a pull request and the log that knows its number,
// people may already write there.
func TestWhatIsSaidOnAPullRequestThatIsTooNewToBeKnownCounts(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please add a line.")
	branch := thread.State{}.Branch(issue)
	_, err := w.GitHub.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: branch, Message: "Two", Files: map[string]string{"a.txt": "two\n"}})
	w.Must(err)
	installation, err := w.GitHub.InstallationID(houseRepo)
	w.Must(err)
	pull, err := w.h.Forge.CreatePull(t.Context(), forge.Repo{Installation: installation, Owner: "acme", Name: "widgets"}, forge.NewPull{Title: "Work", Head: branch, Base: "main"})
	w.Must(err)
	before := len(w.Judged(issue))

	_, err = w.GitHub.Comment(houseRepo, pull.Number, "ada", "Please add a third one.")
	w.Must(err)
	_, err = w.GitHub.Review(houseRepo, pull.Number, "ada", "CHANGES_REQUESTED", "Not like this.")
	w.Must(err)
	_, err = w.GitHub.ReviewComment(t.Context(), houseRepo, pull.Number, "ada", "a.txt", 1, "This line is wrong.")
	w.Must(err)
	_, err = w.GitHub.Comment(houseRepo, pull.Number, "mallory", "And I want a pony.")
	w.Must(err)
	w.Handle()

	got := w.Judged(issue)[before:]
	for _, want := range []string{"+ Please add a third one.", "+ Not like this.", "+ This line is wrong."} {
		if !slices.Contains(got, want) {
			t.Errorf("the issue's thread lacks %q", want)
		}
	}
	if slices.Contains(got, "+ And I want a pony.") {
		t.Error("somebody who may not write was heard")
	}
	if t.Failed() {
		t.Logf("judged: %q", got)
	}
	if on := w.Log(thread.ID{Owner: "acme", Name: "widgets", Number: pull.Number}); len(on) > 0 {
		t.Errorf("the pull request became a thread of its own with %d events", len(on))
	}
}

// Anybody may name a branch like Pawl's.
func TestAPullRequestOfSomebodyElseIsNoIssuesWhateverItsBranch(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please add a line.")
	branch := fmt.Sprint(thread.BranchPrefix, issue.Number)
	_, err := w.GitHub.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: branch, Message: "Two", Files: map[string]string{"a.txt": "two\n"}})
	w.Must(err)
	pull, err := w.GitHub.OpenPull(t.Context(), houseRepo, "ada", fakegithub.PullRequest{Title: "Mine", Head: branch})
	w.Must(err)
	before := len(w.Judged(issue))
	_, err = w.GitHub.Comment(houseRepo, pull, "ada", "Just a note to myself.")
	w.Must(err)
	w.Handle()
	if got := w.Judged(issue)[before:]; len(got) > 0 {
		t.Errorf("judged for the issue: %q", got)
	}
}
