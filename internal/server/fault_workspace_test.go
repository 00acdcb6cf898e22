package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// While one attempt fills the data directory, other threads wait. They continue without a command once there is room.
func TestOtherThreadsWaitWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]struct {
		disk func(*testing.T, string, int)
		size int
		fill string
	}{
		"no bytes left":  {testrig.SmallDisk, 16, "cat /dev/zero > big"},
		"no inodes left": {testrig.FewFiles, 6000, "i=0; while touch $i.a $i.b $i.c $i.d $i.e $i.f $i.g $i.h; do i=$((i+1)); done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			otherThreadsWait(t, full.fill, func(dir string) { full.disk(t, dir, full.size) })
		})
	}
}

func otherThreadsWait(t *testing.T, fill string, disk func(dir string)) {
	r := newRig(t, nil)
	data := filepath.Join(r.Dir, "data")
	r.Must(os.Mkdir(data, 0o700))
	disk(data)
	r.Agent(`grep -q fill || { echo two >> a.txt; exit 0; }
[ -f "$CTRL/full" ] && exit 1
`+fill+` 2> /dev/null
touch "$CTRL/full"
while [ ! -f "$CTRL/go" ]; do sleep 0.05; done
exit 1
`, "startup_timeout: 20m, idle_timeout: 20m")
	r.Start()
	bad := r.Solve("One", "Please fill the disk.")
	r.Await("the full disk", func() bool { return r.Has("full") })
	good := r.Solve("Two", "Please add a line.")
	r.Await("the server to meet the full disk twice", func() bool {
		return strings.Count(r.Log.String(), "no attempt starts, because the disk of data_dir") >= 2
	})
	if _, code := r.Send(100); code != http.StatusOK {
		t.Errorf("a webhook was answered %d; the database is on another disk", code)
	}
	if code, ready := r.Ready(); code != http.StatusOK || ready.Part(t, "data_dir").OK {
		t.Errorf("/readyz: %d %+v, want ready, and data_dir not", code, ready)
	}
	if s := r.Thread(testrig.ThreadName(good)); s.Attempts != 0 || s.State == "stopped" {
		t.Errorf("the other thread is %s (%s %q) after %d attempts, want none", s.State, s.Rule, s.Reasons, s.Attempts)
	}
	r.Touch("go")
	if s := r.Ending(good); s.State != "done" || s.Attempts != 1 {
		t.Errorf("the other thread is %s (%s %q) after %d attempts, want done after 1", s.State, s.Rule, s.Reasons, s.Attempts)
	}
	if s := r.Ending(bad); s.State != "stopped" {
		t.Errorf("the thread whose agent filled the disk is %s (%s %q), want stopped", s.State, s.Rule, s.Reasons)
	}
}
