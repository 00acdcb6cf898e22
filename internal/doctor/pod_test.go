package doctor

import (
	"os/exec"
	"testing"
)

func TestVariablesOfAnInitAreReported(t *testing.T) {
	for variable, want := range map[string]bool{"KUBERNETES_SERVICE_HOST=10.96.0.1": true, "PATH=/bin": false} {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = []string{variable}
		if err := cmd.Start(); err != nil {
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
