package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// While one attempt has filled the data directory, what other threads ask for
// waits, and is done without a further word when there is room again.
func TestWhileAWorkspaceIsFullOtherThreadsWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	data := filepath.Join(r.dir, "data")
	r.must(os.Mkdir(data, 0o700))
	smallDisk(t, data, 16)
	r.agent(`grep -q fill || { echo two >> a.txt; exit 0; }
[ -f "$CTRL/full" ] && exit 1
cat /dev/zero > big 2> /dev/null
touch "$CTRL/full"
while [ ! -f "$CTRL/go" ]; do sleep 0.05; done
exit 1
`, "startup_timeout: 20m, idle_timeout: 20m")
	r.start()
	bad := r.solve("One", "Please fill the disk.")
	r.await("the full disk", func() bool { return r.has("full") })
	good := r.solve("Two", "Please add a line.")
	r.await("the server to meet the full disk twice", func() bool {
		return strings.Count(r.log.String(), "no attempt is begun, since the disk of data_dir") >= 2
	})
	if _, code := r.send(100); code != http.StatusOK {
		t.Errorf("a webhook was answered %d; the database is on another disk", code)
	}
	if code, said := r.ready(); code != http.StatusOK || said.part(t, "data_dir").OK {
		t.Errorf("/readyz: %d %+v, want ready, and data_dir not", code, said)
	}
	if s := r.thread(threadName(good)); s.Attempts != 0 || s.State == "stopped" {
		t.Errorf("the other thread is %s (%s %q) after %d attempts, want none", s.State, s.Rule, s.Reasons, s.Attempts)
	}
	r.touch("go")
	if s := r.ending(good); s.State != "done" || s.Attempts != 1 {
		t.Errorf("the other thread is %s (%s %q) after %d attempts, want done after 1", s.State, s.Rule, s.Reasons, s.Attempts)
	}
	if s := r.ending(bad); s.State != "stopped" {
		t.Errorf("the thread whose agent filled the disk is %s (%s %q), want stopped", s.State, s.Rule, s.Reasons)
	}
}
