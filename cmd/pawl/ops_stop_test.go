package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/thread"
)

// slowPost is a webhook of which the last byte has not been sent.
type slowPost struct {
	conn net.Conn
	last string
}

// post sends a webhook but for its last byte, and returns once the server reads
// its body: it is asked to say so.
func (r *rig) post(guid, signature, body string) slowPost {
	r.T.Helper()
	conn, err := net.Dial("tcp", r.Addr)
	r.Must(err)
	r.T.Cleanup(func() { conn.Close() })
	r.Must(conn.SetDeadline(time.Now().Add(testrig.Patience)))
	_, err = fmt.Fprintf(conn, "POST /api/github/hook HTTP/1.1\r\nHost: pawl\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n"+
		"X-GitHub-Event: ping\r\nX-GitHub-Delivery: %s\r\nX-Hub-Signature-256: sha256=%s\r\n\r\n", len(body), guid, signature)
	r.Must(err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") {
		r.T.Fatalf("%q, %v, want the server to read on", line, err)
	}
	_, err = conn.Write([]byte(body[:len(body)-1]))
	r.Must(err)
	return slowPost{conn, body[len(body)-1:]}
}

// finish sends the last byte and returns the status of the answer.
func (p slowPost) finish(t *testing.T) int {
	t.Helper()
	if _, err := p.conn.Write([]byte(p.last)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(p.conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestASlowRequestKeepsNoAgentAtWorkWhenTheServerStops(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.AtWork()
	const body, refused, taken = `{"zen": "Keep it logically awesome."}`, "99999999-2222-4333-8444-555555555555", "88888888-2222-4333-8444-555555555555"
	stranger := r.post(refused, strings.Repeat("0", 64), body)
	github := r.post(taken, testrig.Signature(sha256.New, []byte(body)), body)
	r.Must(r.Server.Cmd.Process.Signal(syscall.SIGTERM))
	r.Await("the agent to be ended", func() bool { return strings.Contains(r.Log.String(), `"attempt handed over"`) })
	// Both requests are still on their way, so the server did not wait for them.
	if got := github.finish(t); got != http.StatusOK {
		t.Errorf("the webhook was answered %d, want it stored", got)
	}
	if got := stranger.finish(t); got != http.StatusUnauthorized {
		t.Errorf("the other one was answered %d, want it refused", got)
	}
	if code := r.Ended(r.Server); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	if d := r.DeliveryOf(taken); d.GUID != taken {
		t.Error("the webhook that was answered is not stored")
	}
	r.Touch("go")
	r.Start()
	r.WantSolved(n)
	if d := r.DeliveryOf(taken); d.State != thread.Handled {
		t.Errorf("the webhook is %s after the next start, want it handled", d.State)
	}
}

func TestFoldersOfServersThatAreGoneAreCleaned(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	old := time.Now().Add(-60 * 24 * time.Hour)
	transcript := func(folder string) string {
		t.Helper()
		path := filepath.Join(r.Dir, "data", folder, "attempts", "acme", "widgets", "7", "1", "transcript")
		r.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		r.Must(os.WriteFile(path, []byte("old"), 0o600))
		r.Must(os.Chtimes(path, old, old))
		return path
	}
	// A folder has the lock of the server that used it; what has none is none.
	gone, used, other := transcript("node-1"), transcript("node-2"), transcript("node-3")
	for _, folder := range []string{"node-1", "node-2"} {
		r.Must(os.WriteFile(filepath.Join(r.Dir, "data", folder, "pawl.lock"), nil, 0o600))
	}
	lock, err := wait.Lock(t.Context(), filepath.Join(r.Dir, "data", "node-2", "pawl.lock"), 0)
	r.Must(err)
	defer lock.Close()
	r.Start()
	r.Await("the cleaning at the start", func() bool { return strings.Contains(r.Log.String(), `"old records removed"`) })
	for path, want := range map[string]bool{gone: false, used: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it kept: %t", path, err, want)
		}
	}
	// Its place is free again.
	if lock, err := wait.Lock(t.Context(), filepath.Join(r.Dir, "data", "node-1", "pawl.lock"), 0); err != nil {
		t.Error(err)
	} else {
		lock.Close()
	}
}

// A start may wait for the database; a stop meanwhile is no failure of the service.
func TestAStopWhileTheDatabaseDoesNotAnswerIsOrderly(t *testing.T) {
	testrig.EndToEnd(t)
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("exit 0\n", "")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	r.Must(err)
	defer silent.Close()
	r.Must(silent.(*net.TCPListener).SetDeadline(time.Now().Add(testrig.Patience)))
	r.DSN = fmt.Sprintf("postgres://pawl@%s/pawl?sslmode=disable", silent.Addr())
	var log testrig.LogBuffer
	cmd := exec.Command(testrig.Program, "serve", "--config", r.File())
	cmd.Stderr = &log
	r.Must(cmd.Start())
	conn, err := silent.Accept()
	r.Must(err)
	defer conn.Close()
	r.Must(cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil || !strings.Contains(log.String(), "stopped before it served") {
		t.Errorf("%v, want an orderly end; it said\n%s", err, log.String())
	}
}

// A server asks each CLI for its version as it starts. A child of one that does not answer
// keeps the pipe open.
func TestAStopDoesNotWaitForAnAgentThatDoesNotTellItsVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Must(os.MkdirAll(r.Ctrl(), 0o700))
	slow := filepath.Join(r.Dir, "slow")
	r.Must(os.WriteFile(slow, []byte("#!/bin/sh\ntouch '"+r.Ctrl()+"/asked'; sleep 100000\n"), 0o700))
	r.Config += fmt.Sprintf("backends: [{name: slow, kind: codex, argv: [%q]}]\n", slow)
	r.Start()
	r.Await("the question", func() bool { return r.Has("asked") })
	if code := r.Stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("exit code %d, want %d", code, exitDone)
	}
}
