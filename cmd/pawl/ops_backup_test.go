package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The statement is that of docs/operations.md: what the backup does not know is
// taken in again from GitHub's list, and what was done for it is found again.
func TestWhatWasAskedAfterABackupIsTakenInAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	first, _ := r.solved()
	backup := filepath.Join(t.TempDir(), "pawl.db")
	_, err := r.database().ExecContext(t.Context(), "VACUUM INTO ?", backup)
	r.must(err)

	// One is done before the disk is lost, one is asked while nobody serves.
	done, _ := r.solved()
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	missed := r.solve("Another line", "Please add another line to a.txt.")
	r.must(r.world.WaitDelivered(t.Context()))

	key, err := os.ReadFile(filepath.Join(r.dir, "app.pem"))
	r.must(err)
	r.dir = filepath.Dir(backup)
	r.must(os.MkdirAll(r.ctrl(), 0o700))
	r.must(os.WriteFile(filepath.Join(r.dir, "app.pem"), key, 0o600))
	r.start()
	for _, n := range []int{done, missed} {
		if s := r.over(threadName(n)); s.State != "done" {
			t.Errorf("%s is %s (%s %q) after the restore, want done", threadName(n), s.State, s.Rule, s.Reasons)
		}
	}
	r.settle()
	for _, n := range []int{first, done, missed} {
		r.oneOfEach(n)
	}
	if s := r.thread(threadName(first)); s.Attempts != 1 {
		t.Errorf("the first thread has %d attempts, want the one that the backup knows", s.Attempts)
	}
}
