package server_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The statement is that of docs/operations.md.
func TestABackupThatIsMadeWhileServingGoesOnInANewDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Start()
	first, _ := r.Solved()
	r.Gate()
	second := r.Solve("A third line", "Please add another line to a.txt.")
	r.Await("the second agent", func() bool { return r.Calls() == 2 })

	backup := filepath.Join(t.TempDir(), "pawl.db")
	_, err := r.Database().ExecContext(t.Context(), "VACUUM INTO ?", backup)
	r.Must(err)

	// The server goes on, and what it does from here on is not in the backup.
	r.Open()
	if s := r.Over(testrig.ThreadName(second)); s.State != "done" {
		t.Fatalf("%s (%s %q) while the backup was made, want done", s.State, s.Rule, s.Reasons)
	}
	r.Settle()
	r.OneOfEach(second)
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	key, err := os.ReadFile(filepath.Join(r.Dir, "app.pem"))
	r.Must(err)
	r.Dir = filepath.Dir(backup)
	r.Must(os.WriteFile(filepath.Join(r.Dir, "app.pem"), key, 0o600))
	r.Start()
	if s := r.Thread(testrig.ThreadName(first)); s.State != "done" || s.Attempts != 1 {
		t.Errorf("the first thread is %s after %d attempts, want it as it was", s.State, s.Attempts)
	}
	// The attempt that the backup holds half of is taken up when its lease has
	// run out.
	if s := r.Over(testrig.ThreadName(second)); s.State != "done" || s.Attempts != 2 {
		t.Errorf("the second thread is %s after %d attempts (%s %q), want done after 2", s.State, s.Attempts, s.Rule, s.Reasons)
	}
	third, _ := r.Solved()
	for _, n := range []int{first, second, third} {
		r.OneOfEach(n)
	}
}
