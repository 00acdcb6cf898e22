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
		db, err := store.OpenBeside(t.Context(), "sqlite:"+filepath.Join(r.dir, "pawl.db"), store.Options{})
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
