package sandbox

import (
	"io"
	"os"
	"strings"
	"testing"
)

// printed runs a script in a sandbox and returns its output.
func printed(t *testing.T, s *Sandbox, text string) string {
	t.Helper()
	p, err := s.Start(t.Context(), script(t, text))
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, p.Stderr())
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestKernelKillsAgentsFirstIfMemoryRunsOut(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		if got := printed(t, s, "sleep 0.2; sh -c 'cat /proc/self/oom_score_adj'"); got != "1000\n" {
			t.Errorf("a child's oom_score_adj is %q, want 1000", got)
		}
	})
	if own, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || string(own) == "1000\n" {
		t.Errorf("this process's is %q, %v", own, err)
	}
}

// The kernel does not count root's processes. If the tests run as root, TestSandboxWorksForOrdinaryUsers runs this test
// as another user.
func TestForkBombIsLimited(t *testing.T) {
	if os.Geteuid() == 0 {
		return
	}
	s := in(t, Auto)
	s.limits.PIDs = 4096
	before := printed(t, s, "grep 'Max processes' /proc/self/limits")
	if f := strings.Fields(before); len(f) < 4 || f[2] != "4096" || f[3] != "4096" {
		t.Errorf("limits: %q, want 4096 processes", before)
	}
	// The kernel counts only the processes inside, so the script may set a limit below the user's number of processes. The
	// script's processes live until the sandbox ends.
	got := printed(t, s, `ulimit -p 40 2>/dev/null || ulimit -u 40
i=0; while [ $i -lt 80 ]; do sh -c 'sleep 600 >/dev/null & ' 2>/dev/null || break; i=$((i+1)); done; echo $i`)
	if got == "80\n" {
		t.Error("80 processes were started with a limit of 40")
	}
	if got := printed(t, s, "sh -c 'echo well'"); got != "well\n" {
		t.Errorf("another sandbox printed %q", got)
	}
}
