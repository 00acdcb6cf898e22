package catchup

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestMissedCommentIsFoundOnce(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	c := w.watcher()
	w.reconciled(c, 0)
	w.GitHub.Lose("issue_comment", 2)
	for who, text := range map[string]string{"ada": "/pawl retry", "mallory": "/pawl stop"} {
		_, err := w.GitHub.Comment(houseRepo, issue.Number, who, text)
		w.Must(err)
	}
	w.reconciled(c, 2)
	w.reconciled(c, 0)
	w.reconciled(w.watcher(), 0)
	got := w.Judged(issue)[1:]
	slices.Sort(got)
	// The second event makes Pawl reply to a user without permission.
	if diff := cmp.Diff([]string{"+ /pawl retry", "+ /pawl stop", "- /pawl stop: mallory has read permission; write is needed"}, got); diff != "" {
		t.Errorf("judged (-want +got)\n%s", diff)
	}
}

func TestWebhookAfterReconciliationHasNoEffect(t *testing.T) {
	w := newHouse(t)
	issue := w.Pull()
	c := w.watcher()
	w.GitHub.Hold()
	id, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl retr")
	w.Must(err)
	w.Pass(2 * time.Second)
	w.Must(w.GitHub.EditComment(houseRepo, id, "ada", "/pawl retry"))
	_, err = w.GitHub.Review(houseRepo, issue.Number, "ada", "CHANGES_REQUESTED", "Not so.")
	w.Must(err)
	_, err = w.GitHub.ReviewComment(t.Context(), houseRepo, issue.Number, "ada", "a.txt", 1, "Nor this.")
	w.Must(err)
	w.Must(w.GitHub.EditBody(houseRepo, issue.Number, "ada", "Much more."))
	w.Must(w.GitHub.ClosePull(houseRepo, issue.Number, "ada"))
	if _, err := c.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := len(w.Log(issue))
	w.GitHub.Release()
	w.Handle()
	if got := len(w.Log(issue)); got != want+3 { // the comment as it was written, and two edits
		t.Errorf("%d events after the webhooks, want %d: %q", got, want+3, w.Judged(issue))
	}
	w.newRemarks(issue, unnamed("Much more."), unnamed("/pawl retry"), "+ Not so.", "- : there is no text to work on", "+ Nor this.",
		"+ /pawl retr", "+ /pawl retry", "+ Much more.")
}

// unnamed returns the verdict on an edit by an unknown user.
func unnamed(text string) string {
	return "- " + text + ": " + "the editor is unknown: no webhook reported the edit; write a new comment to request it"
}

func TestReconciliationAfterWebhooksFindsNothing(t *testing.T) {
	w := newHouse(t)
	issue := w.Pull()
	id, err := w.GitHub.Comment(houseRepo, issue.Number, "mallory", "/pawl retr")
	w.Must(err)
	w.Must(w.GitHub.EditComment(houseRepo, id, "mallory", "/pawl retry"))
	_, err = w.GitHub.Review(houseRepo, issue.Number, "ada", "APPROVED", "")
	w.Must(err)
	_, err = w.GitHub.ReviewComment(t.Context(), houseRepo, issue.Number, "ada", "a.txt", 1, "Nor this.")
	w.Must(err)
	w.Must(w.GitHub.EditBody(houseRepo, issue.Number, "ada", "Much more."))
	_, err = w.GitHub.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: "Three", Files: map[string]string{"a.txt": "three\n"}})
	w.Must(err)
	w.Must(w.GitHub.ClosePull(houseRepo, issue.Number, "ada"))
	w.Handle()
	w.reconciled(w.watcher(), 0)
	w.Must(w.GitHub.ReopenIssue(houseRepo, issue.Number, "ada"))
	w.Handle()
	w.reconciled(w.watcher(), 0)
}

func TestMissedEditHasNoEditor(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	id, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "Hm.")
	w.Must(err)
	w.Handle()
	w.Pass(2 * time.Second)
	w.GitHub.Lose("", 2)
	w.Must(w.GitHub.EditComment(houseRepo, id, "ada", "/pawl retry"))
	w.Must(w.GitHub.EditBody(houseRepo, issue.Number, "ada", "Please do more."))
	c := w.watcher()
	w.reconciled(c, 2)
	w.Pass(2 * time.Second)
	w.Must(w.GitHub.TouchIssue(houseRepo, issue.Number, "ada"))
	w.reconciled(c, 0)
	w.newRemarks(issue, "- Hm.: it holds no command, and the thread is not a pull request of Pawl", unnamed("Please do more."), unnamed("/pawl retry"))
}

// A permitted bot edits a writer's comment. Earlier versions took that for the writer's edit if the reconciliation
// saw it first.
func TestBotsEditIsNotTheWriters(t *testing.T) {
	for name, lost := range map[string]bool{"its webhooks are lost": true, "its webhooks come late": false} {
		t.Run(name, func(t *testing.T) {
			w := newHouse(t)
			w.Must(w.GitHub.AddUser("robot[bot]", 1003, map[string]string{houseRepo: "write"}))
			issue := w.Issue("Please.")
			id, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "Hm.")
			w.Must(err)
			w.Handle()
			w.Pass(2 * time.Second)
			if lost {
				w.GitHub.Lose("", 4)
			}
			w.GitHub.Hold()
			w.Must(w.GitHub.EditComment(houseRepo, id, "robot[bot]", "/pawl retry with more"))
			w.Must(w.GitHub.EditBody(houseRepo, issue.Number, "robot[bot]", "Please do harm."))
			fresh, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "Nothing yet.")
			w.Must(err)
			w.Pass(2 * time.Second)
			w.Must(w.GitHub.EditComment(houseRepo, fresh, "robot[bot]", "/pawl stop"))
			c := w.watcher()
			w.reconciled(c, 3)
			w.GitHub.Release()
			w.Handle()
			w.reconciled(c, 0)
			for _, text := range w.Judged(issue)[1:] {
				if text[0] == '+' {
					t.Errorf("accepted %q", text)
				}
			}
		})
	}
}

func TestRemarksBeforeTheFirstStartAreIgnored(t *testing.T) {
	w := newHouse(t)
	_, err := w.GitHub.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: "Two", Files: map[string]string{"a.txt": "two\n"}})
	w.Must(err)
	n, err := w.GitHub.OpenPull(t.Context(), houseRepo, "ada", fakegithub.PullRequest{Title: "Two lines", Head: "topic"})
	w.Must(err)
	_, err = w.GitHub.Comment(houseRepo, n, "mallory", "/pawl solve") // is logged as refused
	w.Must(err)
	w.Pass(2 * time.Second)
	_, err = w.GitHub.ReviewComment(t.Context(), houseRepo, n, "ada", "a.txt", 1, "This is wrong.")
	w.Must(err)
	_, err = w.GitHub.Comment(houseRepo, n, "ada", "/pawl stop")
	w.Must(err)
	w.Handle()
	w.Pass(2 * time.Second)
	w.Tracked(n)
	c := w.watcher()
	w.reconciled(c, 0)
}

func TestMissedStateChangesAreFound(t *testing.T) {
	w := newHouse(t)
	issue, pull := w.Issue("Please."), w.Pull()
	c := w.watcher()
	w.GitHub.Lose("", 1)
	w.Must(w.GitHub.CloseIssue(houseRepo, issue.Number, "ada"))
	w.reconciled(c, 1)
	w.GitHub.Lose("", 1)
	w.Must(w.GitHub.ReopenIssue(houseRepo, issue.Number, "ada"))
	w.reconciled(c, 1)
	push := func(text string) {
		_, err := w.GitHub.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: text, Files: map[string]string{"a.txt": text}})
		w.Must(err)
	}
	push("heard")
	w.Handle()
	w.GitHub.Lose("", 2)
	push("lost")
	w.reconciled(c, 1)
	w.GitHub.Lose("", 3)
	_, err := w.GitHub.MergePull(t.Context(), houseRepo, pull.Number, "ada")
	w.Must(err)
	w.reconciled(c, 1)
	w.reconciled(c, 0)
	var got []string
	for _, t := range []thread.ID{issue, pull} {
		for _, c := range w.Changes(t) {
			got = append(got, fmt.Sprint(t.Number, " ", c.What))
		}
	}
	if diff := cmp.Diff([]string{"1 closed", "1 reopened", "2 head_moved", "2 head_moved", "2 merged"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestUnchangedRepositoryCostsOneRequest(t *testing.T) {
	w := newHouse(t)
	for range 3 {
		w.Issue("Please.")
	}
	c := w.watcher()
	w.reconciled(c, 0)
	w.Pass(time.Hour)
	w.reconciled(c, 0)
	w.Pass(time.Hour)
	w.GitHub.ResetCalls()
	w.reconciled(c, 0)
	calls := w.GitHub.Calls()
	delete(calls, "POST /app/installations/{id}/access_tokens")
	if diff := cmp.Diff(map[string]int{"GET /repos/{owner}/{repo}/issues": 1}, calls); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

// meeting runs a function right before the next append.
type meeting struct {
	handlers.Store
	before func()
}

func (m *meeting) Append(ctx context.Context, t thread.ID, wake bool, events ...thread.NewEvent) (int, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Store.Append(ctx, t, wake, events...)
}

func TestWebhookDuringReconciliationCountsOnce(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	at := &meeting{Store: w.Store}
	w.h.Store = at
	c := w.watcher()
	var id int64
	for _, one := range []struct {
		happens func() error
		events  int
	}{
		{func() (err error) {
			id, err = w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl retry")
			return err
		}, 1},
		{func() error { return w.GitHub.EditComment(houseRepo, id, "ada", "/pawl resume") }, 2}, // her edit, and one by an unknown user
		{func() error { return w.GitHub.CloseIssue(houseRepo, issue.Number, "ada") }, 1},
	} {
		before := len(w.Log(issue))
		w.Pass(2 * time.Second)
		w.GitHub.Hold()
		w.Must(one.happens())
		at.before = func() { w.GitHub.Release(); w.Handle() }
		w.reconciled(c, 1)
		if got := len(w.Log(issue)) - before; got != one.events {
			t.Errorf("%d events for one that arrived both ways, want %d: %q", got, one.events, w.Judged(issue))
		}
	}
	w.newRemarks(issue, "+ /pawl retry", "+ /pawl resume", unnamed("/pawl resume"))
}

func TestFailingThreadBlocksNoOther(t *testing.T) {
	for threads, found := range map[int][]int{50: {1, 0, 0, 0}, 1: {0, 0, 1, 0}} {
		t.Run(fmt.Sprint(threads, " threads a look"), func(t *testing.T) {
			w := newHouse(t)
			first, second := w.Issue("Please."), w.Issue("Please.")
			c := w.watcher()
			w.reconciled(c, 0)
			c.bounds.threads = threads
			w.GitHub.Lose("issue_comment", 2)
			for _, issue := range []thread.ID{first, second} {
				w.Pass(time.Second)
				_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl retry")
				w.Must(err)
			}
			w.GitHub.Inject(fakegithub.Fault{Route: fmt.Sprintf("GET /repos/acme/widgets/issues/%d/comments", first.Number), Status: 500, Times: -1})
			for i, want := range found {
				if n, err := c.Reconcile(t.Context()); n != want || err == nil && want == 0 {
					t.Errorf("look %d found %d, %v; want %d and an error", i, n, err, want)
				}
				w.Pass(time.Hour)
			}
			w.newRemarks(second, "+ /pawl retry")
			w.GitHub.ClearFaults()
			w.reconciled(c, 1)
			w.newRemarks(first, "+ /pawl retry")
			w.reconciled(c, 0)
		})
	}
}

func TestUnreadableLogHidesNoRepository(t *testing.T) {
	w := newHouse(t)
	good, bad := w.Issue("Please."), w.Issue("Please.")
	_, err := w.Store.Append(t.Context(), bad, false, thread.NewEvent{Kind: thread.KindDecision, At: w.Now(), Data: "no decision"})
	w.Must(err)
	w.GitHub.Lose("issues", 1)
	w.Must(w.GitHub.CloseIssue(houseRepo, good.Number, "ada"))
	n, err := w.watcher().Reconcile(t.Context())
	if n != 1 || err == nil {
		t.Errorf("found %d, %v; want the end, and an error for the other thread", n, err)
	}
}

func TestRepositoriesGoByTurns(t *testing.T) {
	c := New(nil, nil, nil)
	c.bounds.repos, c.bounds.owned = 3, 2
	var got [][]string
	for range 4 {
		names := c.byTurns([]string{"a/1", "a/2", "a/3", "b/1", "b/2"})
		for _, name := range names {
			c.turn++
			c.turns[name] = c.turn
		}
		got = append(got, names)
	}
	want := [][]string{{"a/1", "a/2", "b/1"}, {"a/3", "b/2", "a/1"}, {"a/2", "b/1", "a/3"}, {"b/2", "a/1", "a/2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// GitHub counts every request of an hour's looks toward the installation's rate limit.
func TestIdleInstallationCostsAtMostSixtyRequests(t *testing.T) {
	w := newHouse(t)
	const repos, looks = 30, 12
	for i := range repos {
		repo := fmt.Sprintf("acme/other%d", i)
		w.Must(w.GitHub.AddRepo(t.Context(), repo, nil))
		w.Must(w.GitHub.SetRole(repo, "ada", "write"))
		n, err := w.GitHub.OpenIssue(repo, "ada", "A title", "Please.")
		w.Must(err)
		_, err = w.GitHub.Comment(repo, n, "ada", "/pawl solve")
		w.Must(err)
		w.Handle()
		_, err = w.Store.Append(t.Context(), thread.ID{Owner: "acme", Name: fmt.Sprintf("other%d", i), Number: n}, false, thread.NewEvent{
			Kind: thread.KindDecision, At: w.Now(), Data: thread.Decided{Decision: policy.Decision{Action: policy.DoDone, Rule: "done"}, Seen: 1}})
		w.Must(err)
	}
	w.Pass(8 * 24 * time.Hour) // nothing more happens
	c := w.watcher()
	w.GitHub.ResetCalls()
	for range looks {
		w.reconciled(c, 0)
		w.Pass(time.Hour / looks)
	}
	asked, calls := 0, w.GitHub.Calls()
	for _, n := range calls {
		asked += n
	}
	if asked > 60 || calls["GET /repos/{owner}/{repo}/issues"] < 2*looks {
		t.Errorf("an hour cost %v, want at most 60, and two comparisons at each look", calls)
	}
	repo := "acme/other29"
	w.GitHub.Lose("issue_comment", 1)
	_, err := w.GitHub.Comment(repo, 1, "ada", "/pawl retry")
	w.Must(err)
	for range repos / 2 {
		if n, err := c.Reconcile(t.Context()); n == 1 || err != nil {
			w.Must(err)
			return
		}
		w.Pass(time.Hour / looks)
	}
	t.Error("a change in the last repository is not found in one turn of them all")
}
