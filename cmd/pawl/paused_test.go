package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/orders"
	"github.com/pawlbot/pawl/internal/store"
)

// Nothing begins in a repository that somebody paused, the check says who it was, and
// what stopped for that goes on when somebody ends it.
func TestNothingBeginsInAPausedRepository(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt", "")
	r.start()
	by := orders.Person{Login: writer, ID: 1001, Where: "in the shell", At: time.Now()}
	decide := func(f func(*store.Store) error) {
		t.Helper()
		db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(r.dir, "pawl.db"), store.Options{Access: store.Beside})
		r.must(err)
		defer db.Close()
		r.must(f(db))
	}
	decide(func(db *store.Store) error { return orders.Pause(t.Context(), db, "acme", "widgets", by) })
	n := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.ending(n); s.Rule != "paused" || r.calls() != 0 || !strings.Contains(strings.Join(s.Reasons, " "), "ada paused acme/widgets in the shell") {
		t.Fatalf("%s (%s %q) after %d calls of the agent", s.State, s.Rule, s.Reasons, r.calls())
	}
	decide(func(db *store.Store) error {
		_, err := orders.Unpause(t.Context(), db, "acme", "widgets", by)
		return err
	})
	r.await("the work", func() bool { return r.state(n).Ended && r.calls() == 1 })
	if s := r.ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
}

// Whoever maintains a repository pauses it by a comment, also on a thread where Pawl was never asked to work, and is
// answered; who may write and no more is refused in words, and who may only read is not heard.
func TestMaintainersPauseTheirRepositoryByComment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt", "")
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.start()
	says := func(n int, want string) {
		t.Helper()
		r.await(want, func() bool { return len(r.commentsWith(n, want)) > 0 })
	}
	apart, err := r.world.OpenIssue(rigRepo, writer, "Something else", "No order.")
	r.must(err)
	r.writes(apart, reader, "/pawl pause")
	r.writes(apart, writer, "/pawl pause")
	says(apart, "To pause it or to end that, the maintain or admin permission is needed; nothing was done.")
	r.writes(apart, "mia", "/pawl pause")
	says(apart, "Nothing begins in `acme/widgets` until somebody comments `/pawl unpause`.")

	n := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.ending(n); s.Rule != "paused" || r.calls() != 0 || !strings.Contains(strings.Join(s.Reasons, " "), "mia paused acme/widgets in a comment") {
		t.Fatalf("%s (%s %q) after %d calls of the agent", s.State, s.Rule, s.Reasons, r.calls())
	}
	r.writes(n, "mia", "/pawl pause")
	says(n, "Nothing was done: `acme/widgets` is paused already, by mia.")
	r.writes(n, writer, "/pawl unpause")
	says(n, "To pause it or to end that, the maintain or admin permission is needed; nothing was done.")
	if r.calls() != 0 {
		t.Fatal("somebody who may only write ended the pause")
	}
	r.writes(n, "mia", "/pawl unpause")
	says(n, "Work may begin in `acme/widgets` again, and what stopped for the pause goes on.")
	r.await("the work", func() bool { return r.state(n).Ended && r.calls() == 1 })
	if s := r.ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
}
