package server_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/orders"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
)

// Nothing begins in a repository that somebody paused, the check says who it was, and
// what stopped for that goes on when somebody ends it.
func TestNothingBeginsInAPausedRepository(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt", "")
	r.Start()
	by := orders.Person{Login: testrig.Writer, ID: 1001, Where: "in the shell", At: time.Now()}
	decide := func(f func(*store.Store) error) {
		t.Helper()
		db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(r.Dir, "pawl.db"), store.Options{Access: store.Beside})
		r.Must(err)
		defer db.Close()
		r.Must(f(db))
	}
	decide(func(db *store.Store) error { return orders.Pause(t.Context(), db, "acme", "widgets", by) })
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.Rule != "paused" || r.Calls() != 0 || !strings.Contains(strings.Join(s.Reasons, " "), "ada paused acme/widgets in the shell") {
		t.Fatalf("%s (%s %q) after %d calls of the agent", s.State, s.Rule, s.Reasons, r.Calls())
	}
	decide(func(db *store.Store) error {
		_, err := orders.Unpause(t.Context(), db, "acme", "widgets", by)
		return err
	})
	r.Await("the work", func() bool { return r.State(n).Ended && r.Calls() == 1 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
}

// Whoever maintains a repository pauses it by a comment, also on a thread where Pawl was never asked to work, and is
// answered; who may write and no more is refused in words, and who may only read is not heard.
func TestMaintainersPauseTheirRepositoryByComment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt", "")
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.Start()
	says := func(n int, want string) {
		t.Helper()
		r.Await(want, func() bool { return len(r.CommentsWith(n, want)) > 0 })
	}
	apart, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Something else", "No order.")
	r.Must(err)
	r.Writes(apart, testrig.Reader, "/pawl pause")
	r.Writes(apart, testrig.Writer, "/pawl pause")
	says(apart, "To pause it or to end that, the maintain or admin permission is needed; nothing was done.")
	r.Writes(apart, "mia", "/pawl pause")
	says(apart, "Nothing begins in `acme/widgets` until somebody comments `/pawl unpause`.")

	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.Rule != "paused" || r.Calls() != 0 || !strings.Contains(strings.Join(s.Reasons, " "), "mia paused acme/widgets in a comment") {
		t.Fatalf("%s (%s %q) after %d calls of the agent", s.State, s.Rule, s.Reasons, r.Calls())
	}
	r.Writes(n, "mia", "/pawl pause")
	says(n, "Nothing was done: `acme/widgets` is paused already, by mia.")
	r.Writes(n, testrig.Writer, "/pawl unpause")
	says(n, "To pause it or to end that, the maintain or admin permission is needed; nothing was done.")
	if r.Calls() != 0 {
		t.Fatal("somebody who may only write ended the pause")
	}
	r.Writes(n, "mia", "/pawl unpause")
	says(n, "Work may begin in `acme/widgets` again, and what stopped for the pause goes on.")
	r.Await("the work", func() bool { return r.State(n).Ended && r.Calls() == 1 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
}
