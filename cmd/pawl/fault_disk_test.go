package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
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
	"github.com/pawlbot/pawl/policy"
)

// send delivers a ping with a payload that takes about n bytes, under a GUID of
// its own, and returns both. The code is 0 where nobody answers.
func (r *rig) send(n int) (guid string, code int) {
	r.t.Helper()
	zen := make([]byte, n/2)
	rand.Read(zen)
	guid = fmt.Sprintf("00000000-0000-4000-8000-%012x", zen[:6])
	body := fmt.Appendf(nil, `{"zen":"%x"}`, zen)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url("/api/github/hook"), bytes.NewReader(body))
	r.must(err)
	for k, v := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": guid,
		"X-Hub-Signature-256": "sha256=" + signature(sha256.New, body)} {
		req.Header.Set(k, v)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return guid, 0
	}
	answer.Body.Close()
	return guid, answer.StatusCode
}

// hasAll checks that every delivery that was answered 2xx is stored.
func (r *rig) hasAll(guids []string) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		for _, guid := range guids {
			if _, err := db.Delivery(r.t.Context(), guid); err != nil {
				r.t.Errorf("a delivery that was answered: %v", err)
			}
		}
	})
}

// failing has the kernel answer an error to system calls of the server on its
// database, until heal is called or the server ends.
func (r *rig) failing(calls, errno string) (heal func()) {
	r.t.Helper()
	path := needs.Program(r.t, "strace")
	args := []string{"-f", "-o", os.DevNull, "-e", "trace=" + calls, "-e", "inject=" + calls + ":error=" + errno, "-p", fmt.Sprint(r.server.cmd.Process.Pid)}
	for _, name := range []string{"pawl.db", "pawl.db-wal"} {
		args = append(args, "-P", filepath.Join(r.dir, name))
	}
	trace := exec.Command(path, args...)
	trace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	said, err := trace.StderrPipe()
	r.must(err)
	r.must(trace.Start())
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
	r.t.Cleanup(heal)
	if !strings.Contains(all, "attached") {
		r.t.Skipf("strace cannot attach to the server here: %s", all)
	}
	return heal
}

func TestAFailedFsyncEndsTheServerAndNothingAnsweredIsLost(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.start()
	var answered []string
	for range 5 {
		guid, code := r.send(100)
		if code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
		answered = append(answered, guid)
	}
	r.failing("fsync,fdatasync", "EIO")
	for range 5 {
		if guid, code := r.send(100); code/100 == 2 {
			t.Errorf("%s was answered %d although no fsync works", guid, code)
		}
	}
	if code := r.ended(r.server); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(r.log.String(), "the disk may be failing: look at the kernel's log") {
		t.Error("the log does not say what to do")
	}
	r.start()
	r.hasAll(answered)
	r.wantSolved(r.solve("A second line", "Please add a second line to a.txt."))
}

// A disk that answers errors, and one that the kernel has made read-only.
func TestWhileNothingCanBeWrittenWebhooksAreAnswered503(t *testing.T) {
	t.Parallel()
	for name, errno := range map[string]string{"errors of the disk": "EIO", "a file system that became read-only": "EROFS"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			r.agent("cat > /dev/null; echo two >> a.txt\n", "")
			r.start()
			guid, code := r.send(100)
			if code != http.StatusOK {
				t.Fatalf("answered %d", code)
			}
			heal := r.failing("pwrite64,ftruncate", errno)
			for range 3 {
				if _, code := r.send(100); code != http.StatusServiceUnavailable {
					t.Errorf("answered %d while nothing can be written, want 503", code)
				}
			}
			heal()
			r.await("a webhook to be stored again", func() bool {
				more, code := r.send(100)
				if code == http.StatusOK {
					r.hasAll([]string{guid, more})
				}
				return code == http.StatusOK
			})
			r.wantSolved(r.solve("A second line", "Please add a second line to a.txt."))
		})
	}
}

// onSmallDisk puts the rig's folder on a file system of 16 MiB, and what attempts
// need on another one. It returns the configuration.
func (r *rig) onSmallDisk() (config string) {
	r.t.Helper()
	smallDisk(r.t, r.dir, 16)
	r.must(os.WriteFile(filepath.Join(r.dir, "app.pem"), r.world.PrivateKeyPEM(), 0o600))
	r.agent(waiting+"touch \"$CTRL/done\"\n", "startup_timeout: 20m, idle_timeout: 20m")
	config = r.file()
	text, err := os.ReadFile(config)
	r.must(err)
	data, err := json.Marshal(r.t.TempDir())
	r.must(err)
	r.must(os.WriteFile(config, bytes.Replace(text, []byte("data_dir: data"), append([]byte("data_dir: "), data...), 1), 0o600))
	return config
}

func TestAFullDiskIsAnswered503AndRecovers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.startWith(r.onSmallDisk())
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the agent at work", func() bool { return r.has("ready") })
	filler, err := os.Create(filepath.Join(r.dir, "filler"))
	r.must(err)
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	r.must(filler.Close())
	var answered []string
	full := false
	for range 200 { // what is in the database's files already is room, too
		guid, code := r.send(100 << 10)
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
	r.touch("go")
	r.await("the agent's end", func() bool { return r.has("done") })
	r.must(os.Remove(filler.Name()))
	r.await("a webhook to be stored again", func() bool {
		guid, code := r.send(100 << 10)
		if code == http.StatusOK {
			answered = append(answered, guid)
		}
		return code == http.StatusOK
	})
	r.hasAll(answered)
	s := r.ending(n)
	r.once(n)
	a := r.state(n).Attempts
	if s.State != "done" || len(a) != 1 {
		t.Errorf("%s (%s %q), attempts %+v; want done after the one, which waited for room", s.State, s.Rule, s.Reasons, a)
	}
}

// spoil overwrites the database's pages from the third on.
func (r *rig) spoil() {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.dir, "pawl.db"), os.O_RDWR, 0)
	r.must(err)
	defer f.Close()
	info, err := f.Stat()
	r.must(err)
	noise := make([]byte, info.Size()-2*4096)
	rand.Read(noise)
	_, err = f.WriteAt(noise, 2*4096)
	r.must(err)
}

func TestADamagedDatabaseEndsTheServerAndIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.agent("", "")
	r.start()
	for range 100 {
		if _, code := r.send(20 << 10); code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
	}
	r.stop(syscall.SIGTERM) // the log goes into the file, and the next server has read no page
	r.start()
	r.spoil()
	r.await("the server to answer no more", func() bool {
		_, code := r.send(20 << 10)
		return code == 0
	})
	if code := r.ended(r.server); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	const hint = "restore a backup"
	if !strings.Contains(r.log.String(), hint) {
		t.Errorf("the log does not say: %s", hint)
	}
	before, err := os.ReadFile(filepath.Join(r.dir, "pawl.db"))
	r.must(err)
	code, _, said := pawl(t, r.dir, nil, "serve", "--config", filepath.Join(r.dir, "pawl.yml"))
	if code != exitFailed || !strings.Contains(said, hint) || !strings.Contains(said, "pawl.db") {
		t.Errorf("exit code %d\n%s\nwant %d, the file's name and: %s", code, said, exitFailed, hint)
	}
	after, err := os.ReadFile(filepath.Join(r.dir, "pawl.db"))
	r.must(err)
	if !bytes.Equal(before, after) {
		t.Error("a file that was refused has changed")
	}
}

// A server that is stopped while nothing can be written cannot hand over; its files can.
func TestWhatTheLogDoesNotTakeAtAStopIsGoneOnWith(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.atWorkUntil(1)
	heal := r.failing("write,pwrite64,ftruncate,fallocate", "ENOSPC")
	defer heal()
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.start()
	r.ending(n)
	if a := r.state(n).Attempts; len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted || a[1].Receipt.Outcome != policy.Edited {
		t.Errorf("attempts %+v, want one that was interrupted and one that went on", a)
	}
	if text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\npart 1\ntwo\n" {
		t.Errorf("a.txt on the branch is %q, %v; want what both calls wrote", text, err)
	}
	r.once(n)
	r.wantNoRest(n)
}
