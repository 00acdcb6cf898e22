package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

// Users may write on a new pull request before the log knows its number.
func TestRemarkOnANewPullRequestCounts(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please add a line.")
	pull := w.ownPull(issue)
	before := len(w.Judged(issue))
	w.Must(w.comments(pull, "ada", "Please add a third one.")())
	_, err := w.GitHub.Review(testRepo, pull, "ada", "CHANGES_REQUESTED", "Not like this.")
	w.Must(err)
	_, err = w.GitHub.ReviewComment(t.Context(), testRepo, pull, "ada", "a.txt", 1, "This line is wrong.")
	w.Must(err)
	w.Writes(pull, "mallory", "And I want a pony.")
	got := w.Judged(issue)[before:]
	for _, want := range []string{"+ Please add a third one.", "+ Not like this.", "+ This line is wrong."} {
		if !slices.Contains(got, want) {
			t.Errorf("the issue's thread lacks %q", want)
		}
	}
	if slices.Contains(got, "+ And I want a pony.") {
		t.Error("a remark by a user without write permission counts")
	}
	if t.Failed() {
		t.Logf("judged: %q", got)
	}
	if on := w.Log(thread.ID{Owner: "acme", Name: "widgets", Number: pull}); len(on) > 0 {
		t.Errorf("the pull request became a thread of its own with %d events", len(on))
	}
}

// Anyone may give a branch a name like Pawl's.
func TestOthersPullRequestBelongsToNoIssue(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please add a line.")
	branch := fmt.Sprint(thread.BranchPrefix, issue.Number)
	w.push(branch, "Two", "a.txt", "two\n")
	pull, err := w.GitHub.OpenPull(t.Context(), testRepo, "ada", fakegithub.PullRequest{Title: "Mine", Head: branch})
	w.Must(err)
	before := len(w.Judged(issue))
	w.Writes(pull, "ada", "Just a note to myself.")
	if got := w.Judged(issue)[before:]; len(got) > 0 {
		t.Errorf("judged for the issue: %q", got)
	}
}

// A closing waits for the log, which would otherwise show the pull request as open.
func TestClosedNewPullRequestIsHandledOnceLogged(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please add a line.")
	lease, err := w.Store.Acquire(t.Context(), issue, "test")
	w.Must(err)
	pullAct := func(kind thread.Kind, number int) thread.Batch {
		return thread.Batch{Alias: number, Events: []thread.NewEvent{{Kind: kind, At: w.Now(), Data: thread.Act{Key: thread.ActPull, ID: int64(number)}}}}
	}
	w.Must(w.Store.AppendLeased(t.Context(), lease, pullAct(thread.KindActStarted, 0)))
	pull := w.ownPull(issue)
	w.Must(w.GitHub.ClosePull(testRepo, pull, "ada"))
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	list, err := w.Store.Deliveries(t.Context(), 5000)
	w.Must(err)
	var why error
	for _, d := range list {
		why = errors.Join(why, w.Deliver(t.Context(), d))
	}
	closes := func() []thread.Change {
		return slices.DeleteFunc(w.Changes(issue), func(c thread.Change) bool { return c.What == "head_moved" })
	}
	if why == nil || !strings.Contains(why.Error(), fmt.Sprintf("pull request #%d was closed before the log of", pull)) || len(closes()) > 0 {
		t.Fatalf("the close got the error %v and logged %+v, want a retry and no change", why, closes())
	}
	w.Must(w.Store.AppendLeased(t.Context(), lease, pullAct(thread.KindActDone, pull)))
	w.Pass(time.Hour)
	w.Handle()
	if got := closes(); len(got) != 1 || got[0].What != "pull_closed" || got[0].Number != pull {
		t.Errorf("the log has %+v, want its pull request closed", got)
	}
}
