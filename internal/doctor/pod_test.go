package doctor

import (
	"io"
	"os/exec"
	"testing"
)

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
