package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// post sends all of a webhook except its last byte, and returns once the server reads the body. finish sends the last
// byte and returns the status of the answer.
func (r *rig) post(guid, signature, body string) (finish func() int) {
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
		r.T.Fatalf("%q, %v; want the server to ask for the body", line, err)
	}
	_, err = conn.Write([]byte(body[:len(body)-1]))
	r.Must(err)
	return func() int {
		r.T.Helper()
		_, err := conn.Write([]byte(body[len(body)-1:]))
		r.Must(err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		r.Must(err)
		resp.Body.Close()
		return resp.StatusCode
	}
}

func TestSlowRequestDoesNotDelayAStop(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	n := r.AtWork()
	const body, refused, taken = `{"zen": "Keep it logically awesome."}`, "99999999-2222-4333-8444-555555555555", "88888888-2222-4333-8444-555555555555"
	stranger := r.post(refused, strings.Repeat("0", 64), body)
	github := r.post(taken, testrig.Signature(sha256.New, []byte(body)), body)
	r.Must(r.Server.Cmd.Process.Signal(syscall.SIGTERM))
	r.Await("the agent to be ended", func() bool { return strings.Contains(r.Log.String(), `"attempt handed over"`) })
	// Both requests are incomplete, so the server did not wait for them.
	if got := github(); got != http.StatusOK {
		t.Errorf("the webhook got status %d, want it stored", got)
	}
	if got := stranger(); got != http.StatusUnauthorized {
		t.Errorf("the other webhook got status %d, want it refused", got)
	}
	if code := r.Ended(r.Server); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if d := r.DeliveryOf(taken); d.GUID != taken {
		t.Error("the acknowledged webhook is not stored")
	}
	r.Touch("go")
	r.Start()
	r.WantSolved(n)
	if d := r.DeliveryOf(taken); d.State != thread.Handled {
		t.Errorf("the webhook is %s after the next start, want it handled", d.State)
	}
}

// A starting server may wait for the database. Stopping it then is not a failure: the exit code is 0.
func TestStopWhileWaitingForTheDatabase(t *testing.T) {
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
		t.Errorf("%v, want exit code 0; the log is\n%s", err, log.String())
	}
}

// After SIGHUP the server reads its file immediately, even if the file did not change.
func TestSIGHUPReloadsTheFile(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	hangup := func(n int) {
		r.Must(r.Server.Cmd.Process.Signal(syscall.SIGHUP))
		r.Await("the file to be read", func() bool { return strings.Count(r.Log.String(), "the new configuration is in force") >= n })
	}
	r.Solved()
	hangup(1)
	r.Edit = strings.NewReplacer("level: debug", "level: info")
	r.File()
	hangup(2)
	before := len(r.Log.String())
	r.Solved()
	after := r.Log.String()[before:]
	if !strings.Contains(r.Log.String(), `"level":"debug"`) || strings.Contains(after, `"level":"debug"`) || !strings.Contains(after, "pull request opened") {
		t.Errorf("after the change from debug to info, the log has:\n%s", after)
	}
	r.Must(r.Server.Cmd.Process.Signal(syscall.SIGTERM))
	if code := r.Ended(r.Server); code != exitDone || len(r.Status().Servers) > 0 {
		t.Errorf("exit code %d and %+v, want %d and no server that runs", code, r.Status().Servers, exitDone)
	}
}
