package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// hasAll checks that every delivery that was answered 2xx is stored.
func (r *rig) hasAll(guids []string) {
	r.T.Helper()
	r.Read(func(db *store.Store) {
		for _, guid := range guids {
			if _, err := db.Delivery(r.T.Context(), guid); err != nil {
				r.T.Errorf("a delivery that was answered: %v", err)
			}
		}
	})
}

// failing has the kernel answer an error to system calls of the server on its
// database, until heal is called or the server ends.
func (r *rig) failing(calls, errno string) (heal func()) {
	r.T.Helper()
	path := needs.Program(r.T, "strace")
	args := []string{"-f", "-o", os.DevNull, "-e", "trace=" + calls, "-e", "inject=" + calls + ":error=" + errno, "-p", fmt.Sprint(r.Server.Cmd.Process.Pid)}
	for _, name := range []string{"pawl.db", "pawl.db-wal"} {
		args = append(args, "-P", filepath.Join(r.Dir, name))
	}
	trace := exec.Command(path, args...)
	trace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	said, err := trace.StderrPipe()
	r.Must(err)
	r.Must(trace.Start())
	lines, all := bufio.NewScanner(said), ""
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

func TestAFailedFsyncEndsTheServerAndNothingAnsweredIsLost(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Start()
	var answered []string
	for range 5 {
		guid, code := r.Send(100)
		if code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
		answered = append(answered, guid)
	}
	r.failing("fsync,fdatasync", "EIO")
	for range 5 {
		if guid, code := r.Send(100); code/100 == 2 {
			t.Errorf("%s was answered %d although no fsync works", guid, code)
		}
	}
	if code := r.Ended(r.Server); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(r.Log.String(), "the disk may be failing: look at the kernel's log") {
		t.Error("the log does not say what to do")
	}
	r.Start()
	r.hasAll(answered)
	r.WantSolved(r.Solve("A second line", "Please add a second line to a.txt."))
}

// A disk that answers errors, and one that the kernel has made read-only.
func TestWhileNothingCanBeWrittenWebhooksAreAnswered503(t *testing.T) {
	t.Parallel()
	for name, errno := range map[string]string{"errors of the disk": "EIO", "a file system that became read-only": "EROFS"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
			r.Start()
			guid, code := r.Send(100)
			if code != http.StatusOK {
				t.Fatalf("answered %d", code)
			}
			heal := r.failing("pwrite64,ftruncate", errno)
			for range 3 {
				if _, code := r.Send(100); code != http.StatusServiceUnavailable {
					t.Errorf("answered %d while nothing can be written, want 503", code)
				}
			}
			heal()
			r.Await("a webhook to be stored again", func() bool {
				more, code := r.Send(100)
				if code == http.StatusOK {
					r.hasAll([]string{guid, more})
				}
				return code == http.StatusOK
			})
			r.WantSolved(r.Solve("A second line", "Please add a second line to a.txt."))
		})
	}
}

// onSmallDisk puts the rig's folder on a file system of 16 MiB, and what attempts
// need on another one. It returns the configuration.
func (r *rig) onSmallDisk() (config string) {
	r.T.Helper()
	testrig.SmallDisk(r.T, r.Dir, 16)
	r.Must(os.WriteFile(filepath.Join(r.Dir, "app.pem"), r.World.PrivateKeyPEM(), 0o600))
	r.Agent(testrig.Waiting+"touch \"$CTRL/done\"\n", "startup_timeout: 20m, idle_timeout: 20m")
	config = r.File()
	text, err := os.ReadFile(config)
	r.Must(err)
	data, err := json.Marshal(r.T.TempDir())
	r.Must(err)
	r.Must(os.WriteFile(config, bytes.Replace(text, []byte("data_dir: data"), append([]byte("data_dir: "), data...), 1), 0o600))
	return config
}

func TestAFullDiskIsAnswered503AndRecovers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.StartWith(r.onSmallDisk())
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent at work", func() bool { return r.Has("ready") })
	filler, err := os.Create(filepath.Join(r.Dir, "filler"))
	r.Must(err)
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	r.Must(filler.Close())
	var answered []string
	full := false
	for range 200 { // what is in the database's files already is room, too
		guid, code := r.Send(100 << 10)
		if full = code == http.StatusServiceUnavailable; full {
			break
		}
		if code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
		answered = append(answered, guid)
	}
	if !full {
		t.Fatal("the disk does not get full")
	}
	r.Touch("go")
	r.Await("the agent's end", func() bool { return r.Has("done") })
	r.Must(os.Remove(filler.Name()))
	r.Await("a webhook to be stored again", func() bool {
		guid, code := r.Send(100 << 10)
		if code == http.StatusOK {
			answered = append(answered, guid)
		}
		return code == http.StatusOK
	})
	r.hasAll(answered)
	s := r.Ending(n)
	r.Once(n)
	a := r.State(n).Attempts
	if s.State != "done" || len(a) != 1 {
		t.Errorf("%s (%s %q), attempts %+v; want done after the one, which waited for room", s.State, s.Rule, s.Reasons, a)
	}
}

// spoil overwrites the database's pages from the third on.
func (r *rig) spoil() {
	r.T.Helper()
	f, err := os.OpenFile(filepath.Join(r.Dir, "pawl.db"), os.O_RDWR, 0)
	r.Must(err)
	defer f.Close()
	info, err := f.Stat()
	r.Must(err)
	noise := make([]byte, info.Size()-2*4096)
	rand.Read(noise)
	_, err = f.WriteAt(noise, 2*4096)
	r.Must(err)
}

func TestADamagedDatabaseEndsTheServerAndIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("", "")
	r.Start()
	for range 100 {
		if _, code := r.Send(20 << 10); code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
	}
	r.Stop(syscall.SIGTERM) // the log goes into the file, and the next server has read no page
	r.Start()
	r.spoil()
	r.Await("the server to answer no more", func() bool {
		_, code := r.Send(20 << 10)
		return code == 0
	})
	if code := r.Ended(r.Server); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	const hint = "restore a backup"
	if !strings.Contains(r.Log.String(), hint) {
		t.Errorf("the log does not say: %s", hint)
	}
	before, err := os.ReadFile(filepath.Join(r.Dir, "pawl.db"))
	r.Must(err)
	code, _, said := pawl(t, r.Dir, nil, "serve", "--config", filepath.Join(r.Dir, "pawl.yml"))
	if code != exitFailed || !strings.Contains(said, hint) || !strings.Contains(said, "pawl.db") {
		t.Errorf("exit code %d\n%s\nwant %d, the file's name and: %s", code, said, exitFailed, hint)
	}
	after, err := os.ReadFile(filepath.Join(r.Dir, "pawl.db"))
	r.Must(err)
	if !bytes.Equal(before, after) {
		t.Error("a file that was refused has changed")
	}
}

// A server that is stopped while nothing can be written cannot hand over; its files can.
func TestWhatTheLogDoesNotTakeAtAStopIsGoneOnWith(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.AtWorkUntil(1)
	heal := r.failing("write,pwrite64,ftruncate,fallocate", "ENOSPC")
	defer heal()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.Start()
	r.Ending(n)
	if a := r.State(n).Attempts; len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted || a[1].Receipt.Outcome != policy.Edited {
		t.Errorf("attempts %+v, want one that was interrupted and one that went on", a)
	}
	if text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\npart 1\ntwo\n" {
		t.Errorf("a.txt on the branch is %q, %v; want what both calls wrote", text, err)
	}
	r.Once(n)
	r.WantNoRest(n)
}
