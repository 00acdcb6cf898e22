package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
)

// failing makes the server's system calls on its database fail with errno, until heal is called or the server exits.
func (r *rig) failing(calls, errno string) (heal func()) {
	r.T.Helper()
	path := needs.Program(r.T, "strace")
	args := []string{"-f", "-o", os.DevNull, "-e", "trace=" + calls, "-e", "inject=" + calls + ":error=" + errno, "-p", fmt.Sprint(r.Server.Cmd.Process.Pid)}
	for _, name := range []string{"pawl.db", "pawl.db-wal"} {
		args = append(args, "-P", filepath.Join(r.Dir, name))
	}
	trace := exec.Command(path, args...)
	trace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	output, err := trace.StderrPipe()
	r.Must(err)
	r.Must(trace.Start())
	lines, all := bufio.NewScanner(output), ""
	for !strings.Contains(all, "attached") && lines.Scan() {
		all += lines.Text() + "\n"
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
		}
		trace.Wait()
	}()
	heal = func() {
		trace.Process.Signal(syscall.SIGINT)
		<-done
	}
	r.T.Cleanup(heal)
	if !strings.Contains(all, "attached") {
		r.T.Skipf("strace cannot attach to the server here: %s", all)
	}
	return heal
}

func TestFailedFsyncStopsTheServerWithoutLoss(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	var acknowledged []string
	for range 5 {
		guid, code := r.Send(100)
		if code != http.StatusOK {
			t.Fatalf("status %d, want 200", code)
		}
		acknowledged = append(acknowledged, guid)
	}
	r.failing("fsync,fdatasync", "EIO")
	for range 5 {
		if guid, code := r.Send(100); code/100 == 2 {
			t.Errorf("%s got %d although fsync fails", guid, code)
		}
	}
	if code := r.Ended(r.Server); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(r.Log.String(), "the disk may be failing: look at the kernel's log") {
		t.Error("the log does not contain the remedy")
	}
	r.Start()
	r.hasAll(acknowledged)
	r.Solved()
}

func TestWebhooksGet503WhileWritesFail(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	heal := r.failing("pwrite64,ftruncate", "EIO")
	for range 3 {
		if _, code := r.Send(100); code != http.StatusServiceUnavailable {
			t.Errorf("status %d while nothing can be written, want 503", code)
		}
	}
	heal()
	r.Await("a webhook to be stored again", func() bool { _, code := r.Send(100); return code == http.StatusOK })
	r.Solved()
}

// The answers of /readyz are documented in docs/operations.md.
func TestFullDiskGives503AndRecovers(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	testrig.SmallDisk(t, r.Dir, 16) // only for the database; the attempts' folder is elsewhere
	r.Must(os.WriteFile(filepath.Join(r.Dir, "app.pem"), r.World.PrivateKeyPEM(), 0o600))
	r.Data = t.TempDir()
	r.Agent(testrig.Waiting+"touch \"$CTRL/done\"\n", "startup_timeout: 20m, idle_timeout: 20m")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent at work", func() bool { return r.Has("ready") })
	if code, health := r.Ready(); code != http.StatusOK {
		t.Errorf("%d %+v, want ready", code, health)
	}
	filler, err := os.Create(filepath.Join(r.Dir, "filler"))
	r.Must(err)
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	r.Must(filler.Close())
	var acknowledged []string
	send := func() int {
		guid, code := r.Send(100 << 10)
		if code == http.StatusOK {
			acknowledged = append(acknowledged, guid)
		}
		return code
	}
	code := http.StatusOK
	for range 200 { // the database first fills the pages that it already has
		if code = send(); code != http.StatusOK {
			break
		}
	}
	if code != http.StatusServiceUnavailable {
		t.Fatalf("status %d on a full disk, want 503", code)
	}
	r.Await("a server that is not ready", func() bool {
		code, health := r.Ready()
		return code == http.StatusServiceUnavailable && !health.Part(t, "database").OK && r.Metric(`pawl_healthy{part="database"}`) == 0
	})
	r.Touch("go")
	r.Await("the agent's end", func() bool { return r.Has("done") })
	r.Must(os.Remove(filler.Name()))
	if code, health := r.Ready(); code != http.StatusOK {
		t.Errorf("%d %+v with free space again, want ready", code, health)
	}
	r.Await("a webhook to be stored again", func() bool { return send() == http.StatusOK })
	r.hasAll(acknowledged)
	if ok, refused := r.Metric(`pawl_webhooks_total{code="200"}`), r.Metric(`pawl_webhooks_total{code="503"}`); int(ok) < len(acknowledged) || refused < 1 {
		t.Errorf("the metrics count %v stored and %v refused, want at least %d and 1", ok, refused, len(acknowledged))
	}
	s := r.Ending(n)
	if a := r.State(n).Attempts; s.State != "done" || len(a) != 1 {
		t.Errorf("%s (%s %q), attempts %+v; want done after one attempt, which waited for free space", s.State, s.Rule, s.Reasons, a)
	}
	r.Once(n)
}

// A server that stops while writes fail cannot log a handover. The next server continues from the attempt's files.
func TestWorkContinuesAfterAStopThatCouldNotBeLogged(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.AtWorkUntil(1)
	heal := r.failing("write,pwrite64,ftruncate,fallocate", "ENOSPC")
	defer heal()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.Start()
	r.wantContinued(n, "one\npart 1\ntwo\n")
}
