package handlers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver"
)

// reconciled looks once and checks how many events it found.
func (w *house) reconciled(c *CatchUp, want int) {
	w.t.Helper()
	n, err := c.Reconcile(w.t.Context())
	w.must(err)
	if n != want {
		w.t.Errorf("found %d events, want %d", n, want)
	}
}

// newRemarks are the remarks after those that tracking a thread made.
func (w *house) newRemarks(t solver.Thread, want ...string) {
	w.t.Helper()
	got := w.judged(t)[1:]
	if diff := cmp.Diff(want, slices.Clip(got)); diff != "" {
		w.t.Errorf("judged (-want +got)\n%s", diff)
	}
}

func TestACommentThatNeverFiredIsFoundOnce(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	c := NewCatchUp(w.h, w.store)
	w.reconciled(c, 0)
	w.gh.Lose("issue_comment", 2)
	for who, text := range map[string]string{"ada": "/pawl retry", "mallory": "/pawl stop"} {
		_, err := w.gh.Comment(houseRepo, thread.Number, who, text)
		w.must(err)
	}
	w.reconciled(c, 2)
	w.reconciled(c, 0)
	w.reconciled(NewCatchUp(w.h, w.store), 0)
	got := w.judged(thread)[1:]
	slices.Sort(got)
	if diff := cmp.Diff([]string{"+ /pawl retry", "- /pawl stop: mallory has read permission; write is needed"}, got); diff != "" {
		t.Errorf("judged (-want +got)\n%s", diff)
	}
}

func TestAWebhookAfterTheReconciliationHasNoSecondEffect(t *testing.T) {
	w := newHouse(t)
	thread := w.pull()
	c := NewCatchUp(w.h, w.store)
	w.gh.Hold()
	id, err := w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl retr")
	w.must(err)
	w.pass(2 * time.Second)
	w.must(w.gh.EditComment(houseRepo, id, "ada", "/pawl retry"))
	_, err = w.gh.Review(houseRepo, thread.Number, "ada", "CHANGES_REQUESTED", "Not so.")
	w.must(err)
	_, err = w.gh.ReviewComment(t.Context(), houseRepo, thread.Number, "ada", "a.txt", 1, "Nor this.")
	w.must(err)
	w.must(w.gh.EditBody(houseRepo, thread.Number, "ada", "Much more."))
	w.must(w.gh.ClosePull(houseRepo, thread.Number, "ada"))
	if _, err := c.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := len(w.log(thread))
	w.gh.Release()
	w.handle()
	if got := len(w.log(thread)); got != want+3 { // the comment as it was written, and two edits
		t.Errorf("%d events after the webhooks, want %d: %q", got, want+3, w.judged(thread))
	}
	w.newRemarks(thread, unnamed("Much more."), unnamed("/pawl retry"), "+ Not so.", "- : there is no text to work on", "+ Nor this.",
		"+ /pawl retr", "+ /pawl retry", "+ Much more.")
}

// unnamed is a remark that was edited by nobody knows whom.
func unnamed(text string) string { return "- " + text + ": " + editorUnknown }

func TestTheReconciliationAfterWebhooksFindsNothing(t *testing.T) {
	w := newHouse(t)
	thread := w.pull()
	id, err := w.gh.Comment(houseRepo, thread.Number, "mallory", "/pawl retr")
	w.must(err)
	w.must(w.gh.EditComment(houseRepo, id, "mallory", "/pawl retry"))
	_, err = w.gh.Review(houseRepo, thread.Number, "ada", "APPROVED", "")
	w.must(err)
	_, err = w.gh.ReviewComment(t.Context(), houseRepo, thread.Number, "ada", "a.txt", 1, "Nor this.")
	w.must(err)
	w.must(w.gh.EditBody(houseRepo, thread.Number, "ada", "Much more."))
	_, err = w.gh.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: "Three", Files: map[string]string{"a.txt": "three\n"}})
	w.must(err)
	w.must(w.gh.ClosePull(houseRepo, thread.Number, "ada"))
	w.handle()
	w.reconciled(NewCatchUp(w.h, w.store), 0)
	w.must(w.gh.ReopenIssue(houseRepo, thread.Number, "ada"))
	w.handle()
	w.reconciled(NewCatchUp(w.h, w.store), 0)
}

func TestALostEditIsNobodys(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	id, err := w.gh.Comment(houseRepo, thread.Number, "ada", "Hm.")
	w.must(err)
	w.handle()
	w.pass(2 * time.Second)
	w.gh.Lose("", 2)
	w.must(w.gh.EditComment(houseRepo, id, "ada", "/pawl retry"))
	w.must(w.gh.EditBody(houseRepo, thread.Number, "ada", "Please do more."))
	c := NewCatchUp(w.h, w.store)
	w.reconciled(c, 2)
	w.pass(2 * time.Second)
	w.must(w.gh.TouchIssue(houseRepo, thread.Number, "ada"))
	w.reconciled(c, 0)
	w.newRemarks(thread, "- Hm.: it holds no command, and the thread is no pull request of Pawl", unnamed("Please do more."), unnamed("/pawl retry"))
}

// A bot that may write edits what a writer wrote: before, that counted as the
// writer's as soon as the reconciliation saw it first.
func TestWhatABotMadeOfAWritersTextIsNotTheWriters(t *testing.T) {
	for name, lost := range map[string]bool{"its webhooks are lost": true, "its webhooks come late": false} {
		t.Run(name, func(t *testing.T) {
			w := newHouse(t)
			w.must(w.gh.AddUser("robot[bot]", 1003, map[string]string{houseRepo: "write"}))
			thread := w.issue("Please.")
			id, err := w.gh.Comment(houseRepo, thread.Number, "ada", "Hm.")
			w.must(err)
			w.handle()
			w.pass(2 * time.Second)
			if lost {
				w.gh.Lose("", 4)
			}
			w.gh.Hold()
			w.must(w.gh.EditComment(houseRepo, id, "robot[bot]", "/pawl retry with more"))
			w.must(w.gh.EditBody(houseRepo, thread.Number, "robot[bot]", "Please do harm."))
			fresh, err := w.gh.Comment(houseRepo, thread.Number, "ada", "Nothing yet.")
			w.must(err)
			w.pass(2 * time.Second)
			w.must(w.gh.EditComment(houseRepo, fresh, "robot[bot]", "/pawl stop"))
			c := NewCatchUp(w.h, w.store)
			w.reconciled(c, 3)
			w.gh.Release()
			w.handle()
			w.reconciled(c, 0)
			for _, text := range w.judged(thread)[1:] {
				if text[0] == '+' {
					t.Errorf("accepted %q", text)
				}
			}
		})
	}
}

func TestWhatWasSaidBeforePawlListenedStaysUnheard(t *testing.T) {
	w := newHouse(t)
	_, err := w.gh.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: "Two", Files: map[string]string{"a.txt": "two\n"}})
	w.must(err)
	n, err := w.gh.OpenPull(t.Context(), houseRepo, "ada", fakegithub.PullRequest{Title: "Two lines", Head: "topic"})
	w.must(err)
	_, err = w.gh.Comment(houseRepo, n, "mallory", "/pawl solve") // is in the log, as refused
	w.must(err)
	w.pass(2 * time.Second)
	_, err = w.gh.ReviewComment(t.Context(), houseRepo, n, "ada", "a.txt", 1, "This is wrong.")
	w.must(err)
	_, err = w.gh.Comment(houseRepo, n, "ada", "/pawl stop")
	w.must(err)
	w.handle()
	w.pass(2 * time.Second)
	w.tracked(n)
	c := NewCatchUp(w.h, w.store)
	w.reconciled(c, 0)
}

func TestALostEndAndReturnAndHeadAreFound(t *testing.T) {
	w := newHouse(t)
	issue, pull := w.issue("Please."), w.pull()
	c := NewCatchUp(w.h, w.store)
	w.gh.Lose("", 1)
	w.must(w.gh.CloseIssue(houseRepo, issue.Number, "ada"))
	w.reconciled(c, 1)
	w.gh.Lose("", 1)
	w.must(w.gh.ReopenIssue(houseRepo, issue.Number, "ada"))
	w.reconciled(c, 1)
	push := func(text string) {
		_, err := w.gh.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: text, Files: map[string]string{"a.txt": text}})
		w.must(err)
	}
	push("heard")
	w.handle()
	w.gh.Lose("", 2)
	push("lost")
	w.reconciled(c, 1)
	w.gh.Lose("", 3)
	_, err := w.gh.MergePull(t.Context(), houseRepo, pull.Number, "ada")
	w.must(err)
	w.reconciled(c, 1)
	w.reconciled(c, 0)
	var got []string
	for _, t := range []solver.Thread{issue, pull} {
		for _, c := range w.changes(t) {
			got = append(got, fmt.Sprint(t.Number, " ", c.What))
		}
	}
	if diff := cmp.Diff([]string{"1 closed", "1 reopened", "2 head_moved", "2 head_moved", "2 merged"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestARepositoryWithoutChangesCostsOneRequest(t *testing.T) {
	w := newHouse(t)
	for range 3 {
		w.issue("Please.")
	}
	c := NewCatchUp(w.h, w.store)
	w.reconciled(c, 0)
	w.pass(time.Hour)
	w.reconciled(c, 0)
	w.pass(time.Hour)
	w.gh.ResetCalls()
	w.reconciled(c, 0)
	calls := w.gh.Calls()
	delete(calls, "POST /app/installations/{id}/access_tokens")
	if diff := cmp.Diff(map[string]int{"GET /repos/{owner}/{repo}/issues": 1}, calls); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

// meeting does something else just before the next event is appended.
type meeting struct {
	Store
	before func()
}

func (m *meeting) Append(ctx context.Context, t solver.Thread, wake bool, events ...solver.NewEvent) (int, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Store.Append(ctx, t, wake, events...)
}

func TestAWebhookDuringTheReconciliationCountsOnce(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	at := &meeting{Store: w.store}
	w.h.Store = at
	c := NewCatchUp(w.h, w.store)
	var id int64
	for _, one := range []struct {
		happens func() error
		events  int
	}{
		{func() (err error) { id, err = w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl retry"); return err }, 1},
		{func() error { return w.gh.EditComment(houseRepo, id, "ada", "/pawl resume") }, 2}, // hers, and the one of nobody
		{func() error { return w.gh.CloseIssue(houseRepo, thread.Number, "ada") }, 1},
	} {
		before := len(w.log(thread))
		w.pass(2 * time.Second)
		w.gh.Hold()
		w.must(one.happens())
		at.before = func() { w.gh.Release(); w.handle() }
		w.reconciled(c, 1)
		if got := len(w.log(thread)) - before; got != one.events {
			t.Errorf("%d events for one that came both ways, want %d: %q", got, one.events, w.judged(thread))
		}
	}
	w.newRemarks(thread, "+ /pawl retry", "+ /pawl resume", unnamed("/pawl resume"))
}

// GitHub's times are whole seconds, so such edits look alike.
func TestAnEditThereAndBackAndThereWithinASecondIsThreeEdits(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	id, err := w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl retry")
	w.must(err)
	made := w.now().UTC()
	w.handle()
	installation, err := w.gh.InstallationID(houseRepo)
	w.must(err)
	was := "/pawl retry"
	for i, text := range []string{"/pawl resume", "/pawl retry", "/pawl resume"} {
		payload := fmt.Sprintf(`{"action": "edited", "issue": {"number": %d, "title": "A title"}, "changes": {"body": {"from": %q}},
			"comment": {"id": %d, "body": %q, "user": {"id": 1001, "login": "ada", "type": "User"}, "updated_at": %q},
			"repository": {"name": "widgets", "owner": {"login": "acme"}}, "installation": {"id": %d}, "sender": {"id": 1001, "login": "ada", "type": "User"}}`,
			thread.Number, was, id, text, made.Format(time.RFC3339), installation)
		for range 2 { // and the queue tries each again
			if _, err := w.h.Handle(t.Context(), "issue_comment", fmt.Sprint("guid-", i), []byte(payload)); err != nil {
				t.Fatal(err)
			}
		}
		was = text
	}
	w.newRemarks(thread, "+ /pawl retry", "+ /pawl resume", "+ /pawl retry", "+ /pawl resume")
}

func TestAThreadThatFailsHoldsUpNoOtherAndIsTriedAgain(t *testing.T) {
	w := newHouse(t)
	first, second := w.issue("Please."), w.issue("Please.")
	c := NewCatchUp(w.h, w.store)
	w.reconciled(c, 0)
	w.gh.Lose("issue_comment", 2)
	for _, thread := range []solver.Thread{first, second} {
		w.pass(time.Second)
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl retry")
		w.must(err)
	}
	w.gh.Inject(fakegithub.Fault{Route: fmt.Sprintf("GET /repos/acme/widgets/issues/%d/comments", first.Number), Status: 500, Times: -1})
	for i, want := range []int{1, 0} {
		if n, err := c.Reconcile(t.Context()); n != want || err == nil {
			t.Errorf("look %d found %d, %v; want %d and an error", i, n, err, want)
		}
		w.pass(time.Hour)
	}
	w.newRemarks(second, "+ /pawl retry")
	w.gh.ClearFaults()
	w.reconciled(c, 1)
	w.newRemarks(first, "+ /pawl retry")
	w.reconciled(c, 0)
}

func TestALogThatCannotBeReadHidesNoRepository(t *testing.T) {
	w := newHouse(t)
	good, bad := w.issue("Please."), w.issue("Please.")
	_, err := w.store.Append(t.Context(), bad, false, solver.NewEvent{Kind: solver.KindDecision, At: w.now(), Data: "no decision"})
	w.must(err)
	w.gh.Lose("issues", 1)
	w.must(w.gh.CloseIssue(houseRepo, good.Number, "ada"))
	n, err := NewCatchUp(w.h, w.store).Reconcile(t.Context())
	if n != 1 || err == nil {
		t.Errorf("found %d, %v; want the end, and an error for the other thread", n, err)
	}
}

func TestRepositoriesGoByTurns(t *testing.T) {
	c := NewCatchUp(nil, nil)
	c.bounds.repos = 2
	var got [][]string
	for range 3 {
		names := c.inTurn([]string{"a", "b", "c"})
		c.turn = names[len(names)-1]
		got = append(got, names)
	}
	if diff := cmp.Diff([][]string{{"a", "b"}, {"c", "a"}, {"b", "c"}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
