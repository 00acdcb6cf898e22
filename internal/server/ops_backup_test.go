package server_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The statement is that of docs/operations.md: what the backup does not know is
// taken in again from GitHub's list, and what was done for it is found again.
func TestWhatWasAskedAfterABackupIsTakenInAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	first, _ := r.Solved()
	backup := filepath.Join(t.TempDir(), "pawl.db")
	_, err := r.Database().ExecContext(t.Context(), "VACUUM INTO ?", backup)
	r.Must(err)

	// One is done before the disk is lost, one is asked while nobody serves.
	done, _ := r.Solved()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	missed := r.Solve("Another line", "Please add another line to a.txt.")
	r.Must(r.World.WaitDelivered(t.Context()))

	key, err := os.ReadFile(filepath.Join(r.Dir, "app.pem"))
	r.Must(err)
	r.Dir = filepath.Dir(backup)
	r.Must(os.MkdirAll(r.Ctrl(), 0o700))
	r.Must(os.WriteFile(filepath.Join(r.Dir, "app.pem"), key, 0o600))
	r.Start()
	for _, n := range []int{done, missed} {
		if s := r.Over(testrig.ThreadName(n)); s.State != "done" {
			t.Errorf("%s is %s (%s %q) after the restore, want done", testrig.ThreadName(n), s.State, s.Rule, s.Reasons)
		}
	}
	r.Settle()
	for _, n := range []int{first, done, missed} {
		r.OneOfEach(n)
	}
	if s := r.Thread(testrig.ThreadName(first)); s.Attempts != 1 {
		t.Errorf("the first thread has %d attempts, want the one that the backup knows", s.Attempts)
	}
}
