package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/checkrun"
)

// oneOfEach checks that a thread has one draft and one status comment.
func (r *rig) oneOfEach(n int) {
	r.t.Helper()
	drafts, comments := 0, 0
	for _, p := range r.world.Pulls(rigRepo) {
		if p.Pull.Head == fmt.Sprintf("pawl/issue-%d", n) {
			drafts++
		}
	}
	for _, c := range r.world.Comments(rigRepo, n) {
		if strings.Contains(c.Body, checkrun.StatusMarker(threadName(n))) {
			comments++
		}
	}
	if drafts != 1 || comments != 1 {
		r.t.Errorf("%s has %d drafts and %d status comments, want one of each", threadName(n), drafts, comments)
	}
}

// The statement is that of docs/operations.md.
func TestABackupThatIsMadeWhileServingGoesOnInANewDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(gatedAgent, "")
	r.start()
	first, _ := r.solved()
	r.gate()
	second := r.solve("A third line", "Please add another line to a.txt.")
	r.await("the second agent", func() bool { return r.calls() == 2 })

	backup := filepath.Join(t.TempDir(), "pawl.db")
	_, err := r.database().ExecContext(t.Context(), "VACUUM INTO ?", backup)
	r.must(err)

	// The server goes on, and what it does from here on is not in the backup.
	r.open()
	if s := r.over(threadName(second)); s.State != "done" {
		t.Fatalf("%s (%s %q) while the backup was made, want done", s.State, s.Rule, s.Reasons)
	}
	r.settle()
	r.oneOfEach(second)
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	key, err := os.ReadFile(filepath.Join(r.dir, "app.pem"))
	r.must(err)
	r.dir = filepath.Dir(backup)
	r.must(os.WriteFile(filepath.Join(r.dir, "app.pem"), key, 0o600))
	r.start()
	if s := r.thread(threadName(first)); s.State != "done" || s.Attempts != 1 {
		t.Errorf("the first thread is %s after %d attempts, want it as it was", s.State, s.Attempts)
	}
	// The attempt that the backup holds half of is taken up when its lease has
	// run out.
	if s := r.over(threadName(second)); s.State != "done" || s.Attempts != 2 {
		t.Errorf("the second thread is %s after %d attempts (%s %q), want done after 2", s.State, s.Attempts, s.Rule, s.Reasons)
	}
	third, _ := r.solved()
	for _, n := range []int{first, second, third} {
		r.oneOfEach(n)
	}
}
