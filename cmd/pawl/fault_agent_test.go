package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// These tests let an agent use as much of the machine's resources as Pawl allows.

// maxTranscript is the maximum size of a transcript, in bytes.
const maxTranscript = 256 << 20

func TestGigabyteOfOutputNeedsLittleMemoryAndDisk(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	line := strings.Repeat("output that says nothing ", 40)
	r.Agent("cat > /dev/null; echo two >> a.txt; yes '"+line+"' | head -c 1073741824; echo the last words\n", "timeout: 1h")
	r.Start()
	before := r.peak()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if grown := r.peak() - before; grown > 64<<10 {
		t.Errorf("the server grew by %d KiB to %d KiB, want at most 64 MiB", grown, r.peak())
	}
	a := r.State(n).Attempts[0]
	t.Logf("1 GiB in %s; the server grew by %d KiB", a.EndedAt.Sub(a.At).Round(1e9), r.peak()-before)
	info, err := os.Stat(a.Receipt.Transcript)
	r.Must(err)
	if most := int64(maxTranscript + 1<<10); info.Size() > most || info.Size() < maxTranscript/2 {
		t.Errorf("the transcript has %d bytes, want %d at most", info.Size(), most)
	}
	end, err := exec.Command("tail", "-c", "1000000", a.Receipt.Transcript).Output()
	r.Must(err)
	if !bytes.Contains(end, []byte("bytes are left out here")) || !bytes.HasSuffix(end, []byte("the last words\n")) {
		t.Errorf("the transcript ends with %q, want a note and the last words", end[max(0, len(end)-200):])
	}
}

// peak returns the server's maximum memory since its start, in KiB.
func (r *rig) peak() (kib int) {
	r.T.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Server.Cmd.Process.Pid))
	r.Must(err)
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		r.T.Fatal(err)
	}
	return kib
}

// ordinary returns a command prefix. It lowers the priority and, for root, changes to a user whose processes the kernel
// counts.
func ordinary(t *testing.T) []string {
	t.Helper()
	before := []string{"nice", "-n", "19"}
	if os.Geteuid() != 0 {
		return before
	}
	needs.Program(t, "setpriv") // the kernel does not count the processes of root
	return append(before, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig", "keep", "--")
}

// The bomb forks until the kernel refuses a process: Pawl allows it 4,096 processes. Then it waits to be killed.
func TestForkBombIsLimitedAndDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	const most = 4096
	r := newProcessRig(t, nil)
	r.Agent("", "timeout: 20m, startup_timeout: 20m, idle_timeout: 20m")
	script := filepath.Join(r.Dir, "agent.sh")
	r.Must(os.WriteFile(script, []byte(`#!/bin/sh
grep -q bomb || { echo two >> a.txt; exit 0; }
mkfifo "$HOME/never"
(while :; do (read x < "$HOME/never") & done) 2> "$HOME/refused"
: > "$HOME/full"
read x < "$HOME/never"
`), 0o755))
	r.Config += "sandbox: {mode: auto}\n"
	program := filepath.Join(r.Dir, "pawl")
	copyProgram(t, program)
	before := ordinary(t)
	path := r.File()
	if os.Geteuid() == 0 {
		r.Must(exec.Command("chown", "-R", "65534:65534", filepath.Dir(r.Dir)).Run())
	}
	r.ServeBy(exec.Command(before[0], append(before[1:], program, "serve", "--config", path)...))

	bad := r.Solve("One", "Please bomb.")
	bomb := "/bin/sh\x00" + script
	full := filepath.Join(r.Dir, "data", "attempts", "*", "*", "*", "home", "full")
	r.Await("the bomb's end of growth", func() bool {
		found, err := filepath.Glob(full)
		r.Must(err)
		return len(found) > 0
	})
	grown := r.Below(bomb)
	if grown > most || grown < most*3/4 {
		t.Errorf("the bomb has %d processes, want at most %d, and not many fewer", grown, most)
	}
	// The server and another agent's sandbox still work.
	good := r.Solve("Two", "Please add a line.")
	r.Over(testrig.ThreadName(good))
	if s := r.State(good); s.Decision.Action != policy.DoDone || len(s.Attempts) != 1 {
		t.Errorf("the other thread: %+v after attempts %+v, want done after one", s.Decision, s.Attempts)
	}
	if again := r.Below(bomb); again != grown {
		t.Errorf("the bomb had %d processes and now has %d", grown, again)
	}
	r.Writes(bad, testrig.Writer, "/pawl stop")
	r.Over(testrig.ThreadName(bad))
	if a := r.State(bad).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Cancelled {
		t.Errorf("attempts %+v, want one that was cancelled", a)
	}
	if left := r.Below(bomb); left != 0 {
		t.Errorf("%d processes are left", left)
	}
	t.Logf("%d processes at most", grown)
}

// smallMemory creates a control group of 512 MiB and returns a command prefix that enters it.
func smallMemory(t *testing.T) []string {
	t.Helper()
	root, limit := "/sys/fs/cgroup", map[string]string{"memory.max": "512M", "memory.swap.max": "0"}
	if _, err := os.Stat(root + "/memory"); err == nil { // version 1
		root, limit = root+"/memory", map[string]string{"memory.limit_in_bytes": "512M"}
	}
	dir := filepath.Join(root, fmt.Sprintf("pawl-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no control group can be made here, so memory cannot run out: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Rmdir(dir); err != nil {
			t.Logf("%s is left: %v", dir, err)
		}
	})
	for name, value := range limit {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil && !(name == "memory.swap.max" && os.IsNotExist(err)) {
			t.Skipf("memory cannot be limited here: %v", err)
		}
	}
	return []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs")}
}

// The server and its agents share 512 MiB, and an agent uses all of it. The kernel must kill the agent and not the server.
func TestOutOfMemoryKillsTheAgentNotTheServer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"none", "auto"} {
		t.Run(mode, func(t *testing.T) {
			start := smallMemory(t)
			r := newProcessRig(t, nil)
			r.Agent("", "timeout: 20m, startup_timeout: 20m, idle_timeout: 20m")
			r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"),
				[]byte("#!/bin/sh\ngrep -q starve && exec tail /dev/zero\necho two >> a.txt\n"), 0o700)) // tail keeps the endless line in memory
			r.Config += "sandbox: {mode: " + mode + "}\n"
			r.ServeBy(exec.Command(start[0], append(start[1:], testrig.Program, "serve", "--config", r.File())...))
			bad := r.Solve("One", "Please starve.")
			s := r.Ending(bad)
			if a := r.State(bad).Attempts; s.State != "stopped" || len(a) != 1 || a[0].Receipt.Exit != 128+9 {
				t.Errorf("%s (%s %q), attempts %+v; want stopped after one killed attempt", s.State, s.Rule, s.Reasons, a)
			}
			good := r.Solve("Two", "Please add a line.")
			if s := r.Ending(good); s.State != "done" {
				t.Errorf("the next thread is %s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			r.Stop(syscall.SIGTERM)
		})
	}
}
