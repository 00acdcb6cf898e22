package server_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestBackupOfRunningServerRestores(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Start()
	first, _ := r.Solved()
	r.Gate()
	second := r.Solve("A third line", "Please add another line to a.txt.")
	r.Await("the second agent", func() bool { return r.Calls() == 2 })

	restore := r.backUp()

	// The server continues. Its later work is not in the backup.
	r.Open()
	if s := r.Over(testrig.ThreadName(second)); s.State != "done" {
		t.Fatalf("%s (%s %q) while the backup was made, want done", s.State, s.Rule, s.Reasons)
	}
	r.Settle()
	r.OneOfEach(second)
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	restore()
	if s := r.Thread(testrig.ThreadName(first)); s.State != "done" || s.Attempts != 1 {
		t.Errorf("the first thread is %s after %d attempts, want it as it was", s.State, s.Attempts)
	}
	// The attempt that the backup shows as running continues once its lease has expired.
	if s := r.Over(testrig.ThreadName(second)); s.State != "done" || s.Attempts != 2 {
		t.Errorf("the second thread is %s after %d attempts (%s %q), want done after 2", s.State, s.Attempts, s.Rule, s.Reasons)
	}
	third, _ := r.Solved()
	for _, n := range []int{first, second, third} {
		r.OneOfEach(n)
	}
}

// From GitHub's list, the server fetches the deliveries that the backup lacks. It finds its own earlier results.
func TestRestoreFetchesCommandsSinceTheBackup(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	first, _ := r.Solved()
	restore := r.backUp()
	// One issue is solved before the disk is lost. Another is opened while no server runs.
	done, _ := r.Solved()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	missed := r.Solve("Another line", "Please add another line to a.txt.")
	r.Must(r.World.WaitDelivered(t.Context()))

	restore()
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

// backUp copies the database of the running server as docs/operations.md describes. restore starts a server from the
// copy in an empty directory.
func (r *rig) backUp() (restore func()) {
	r.T.Helper()
	backup := filepath.Join(r.T.TempDir(), "pawl.db")
	_, err := r.Database().ExecContext(r.T.Context(), "VACUUM INTO ?", backup)
	r.Must(err)
	return func() {
		r.T.Helper()
		key, err := os.ReadFile(filepath.Join(r.Dir, "app.pem"))
		r.Must(err)
		r.Dir = filepath.Dir(backup)
		r.Must(os.MkdirAll(r.Ctrl(), 0o700))
		r.Must(os.WriteFile(filepath.Join(r.Dir, "app.pem"), key, 0o600))
		r.Clock.Pass(time.Minute) // the next search for missed deliveries is due
		r.Start()
	}
}
