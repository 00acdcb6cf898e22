package doctor

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestOnlyAnUnansweredCallMeansThatTheAPIIsOutOfReach(t *testing.T) {
	over := net.Dialer{Deadline: time.Unix(1, 0)}
	for name, c := range map[string]struct {
		dialer  net.Dialer
		address string
		state   string
		words   string
	}{
		"a timeout": {over, "127.0.0.1:1", OK, "agents do not reach the Kubernetes API at 127.0.0.1:1"},
		"a refusal": {net.Dialer{}, "127.0.0.1:1", Warning, "is unknown: dial tcp 127.0.0.1:1: connect: connection refused"},
		"no port":   {net.Dialer{}, "127.0.0.1:none", Warning, "is unknown: "},
	} {
		_, err := c.dialer.DialContext(t.Context(), "tcp", c.address)
		found := reaches(c.address, err)[0]
		if found.State != c.state || !strings.Contains(found.Text, c.words) {
			t.Errorf("%s: %+v, want %v %q", name, found, c.state, c.words)
		}
	}
}

func TestVariablesOfAnInitAreReported(t *testing.T) {
	for variable, want := range map[string]bool{"KUBERNETES_SERVICE_HOST=10.96.0.1": true, "PATH=/bin": false} {
		cmd := exec.Command("cat") // it copies a line once its variables are in place
		cmd.Env = []string{variable}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, "line\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		if got := holdsEnvironment(cmd.Process.Pid); got != want {
			t.Errorf("a process with %s: %v, want %v", variable, got, want)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if holdsEnvironment(-1) {
		t.Error("no process has a pod's variables")
	}
}
