package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary act as a Pawl that is killed; see victim.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == InsideCommand {
		fmt.Fprintln(os.Stderr, Inside(os.Args[2:]))
		os.Exit(126)
	}
	if len(os.Args) > 1 && os.Args[1] == attackCommand {
		if err := attack(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if mode := os.Getenv("TEST_PAWL_MODE"); mode != "" {
		victim(Mode(mode))
	}
	os.Exit(m.Run())
}

// tag returns a unique number of seconds to sleep. A test uses it to find its processes from outside the sandbox.
func tag(t *testing.T, n int) string {
	t.Helper()
	return fmt.Sprintf("%d.%d", 100000+n, time.Now().UnixNano())
}

// alive counts the live sleep processes with text as their argument.
func alive(t *testing.T, text string) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, dir := range dirs {
		// A zombie process has no arguments.
		b, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err == nil && strings.Contains(string(b), "sleep\x00"+text) {
			n++
		}
	}
	return n
}

// detach starts children that are detached in different ways and sleep.
const detach = `
	sleep $TAG &
	setsid sleep $TAG &
	(setsid sh -c 'sleep $TAG & sleep $TAG' &) # a double fork
	(setsid nohup sh -c 'trap "" TERM HUP INT; sleep $TAG' >/dev/null 2>&1 </dev/null &)
	`

// detached is the number of sleeps that detach starts.
const detached = 5

// started starts a script and returns once it has printed "ready".
func started(t *testing.T, s *Sandbox, spec Spec) (*Process, *bufio.Reader) {
	t.Helper()
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, p.Stderr())
	out := bufio.NewReader(p.Stdout())
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the script printed %q, %v", line, err)
	}
	return p, out
}

// waitAlive waits until n processes with the tag are alive, or until the test's deadline.
func waitAlive(t *testing.T, tag string, n int) {
	t.Helper()
	for alive(t, tag) != n {
		if t.Context().Err() != nil {
			t.Fatal("the test ended before the processes ran")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestKillEndsEveryDescendant(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		name := tag(t, 1)
		spec := script(t, detach+"echo ready; wait; sleep 1000")
		spec.Env = append(spec.Env, "TAG="+name)
		p, out := started(t, s, spec)
		waitAlive(t, name, detached)
		p.Kill()
		if n := alive(t, name); n != 0 {
			t.Errorf("%d processes survived", n)
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		if exit, err := p.Wait(); err != nil || exit.Signal == "" {
			t.Errorf("%+v, %v", exit, err)
		}
		p.Kill() // a second kill has no effect
	})
}

func TestDescendantsEndWithTheProgram(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		name := tag(t, 2)
		spec := script(t, detach+"echo ready; read go < gate; exit 3")
		spec.Env = append(spec.Env, "TAG="+name)
		gate := filepath.Join(spec.Dir, "gate")
		if err := unix.Mkfifo(gate, 0o600); err != nil {
			t.Fatal(err)
		}
		p, out := started(t, s, spec)
		waitAlive(t, name, detached)
		if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		if exit, err := p.Wait(); err != nil || exit != (Exit{Code: 3}) {
			t.Errorf("%+v, %v", exit, err)
		}
		if n := alive(t, name); n != 0 {
			t.Errorf("%d processes survived", n)
		}
	})
}

func TestBubblewrapKillsProcessesWithoutTheMarker(t *testing.T) {
	s := in(t, Auto)
	name := tag(t, 3)
	p, _ := started(t, s, script(t, "(setsid env -i /bin/sh -c '/bin/sleep "+name+" & /bin/sleep "+name+"' &); echo ready; sleep 1000"))
	for alive(t, name) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	p.Kill()
	if n := alive(t, name); n != 0 {
		t.Errorf("%d processes survived", n)
	}
}

func TestProgramGetsTimeToExit(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		p, out := started(t, s, script(t, `trap 'echo saved; exit 5' TERM; echo ready; while :; do sleep 0.05; done`))
		p.Kill()
		rest, err := io.ReadAll(out)
		if err != nil || string(rest) != "saved\n" {
			t.Errorf("%q, %v", rest, err)
		}
		if exit, err := p.Wait(); err != nil || exit != (Exit{Code: 5}) {
			t.Errorf("%+v, %v", exit, err)
		}
	})
}

func TestProgramThatIgnoresSIGTERMIsKilled(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		p, _ := started(t, s, script(t, `trap "" TERM INT HUP; echo ready; while :; do sleep 0.1; done`))
		p.Kill()
		if exit, err := p.Wait(); err != nil || exit.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", exit, err)
		}
	})
	if grace+dying >= 5*time.Second {
		t.Error("a killed program may take longer than the promised 5 s")
	}
}

// victim acts as a Pawl that runs a program with detached children and prints its output until the program ends.
func victim(mode Mode) {
	ctx := context.Background()
	s, err := New(ctx, mode)
	if err == nil {
		dir := os.Getenv("TEST_PAWL_DIR")
		var p *Process
		spec := Spec{Dir: dir, Home: dir, ID: os.Getenv("TEST_PAWL_ID"), Env: []string{path, "TAG=" + os.Getenv("TEST_PAWL_TAG")},
			Argv: []string{"sh", "-c", detach + "echo ready; sleep 1000"}}
		if over := os.Getenv("TEST_PAWL_OVER"); over != "" {
			o := Overlay{over + "/lower", over + "/upper", over + "/work"}
			spec.Dir, spec.Overlays = o.Upper, []Overlay{o}
		}
		p, err = s.Start(ctx, spec)
		if err == nil {
			_, err = io.Copy(os.Stdout, p.Stdout())
		}
	}
	fmt.Println("victim:", err)
	os.Exit(1)
}

// killedPawl runs a victim, kills it with SIGKILL and returns the tag of its processes.
func killedPawl(t *testing.T, mode Mode, id string, env ...string) string {
	t.Helper()
	name := tag(t, 4)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "TEST_PAWL_MODE="+string(mode), "TEST_PAWL_DIR="+t.TempDir(), "TEST_PAWL_ID="+id, "TEST_PAWL_TAG="+name)
	cmd.Env = append(cmd.Env, env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	waitAlive(t, name, detached)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	stdout.Close() // otherwise Wait would wait for orphans with open output
	if err := cmd.Wait(); err == nil {
		t.Fatal("the victim exited without an error")
	}
	return name
}

func TestSandboxEndsIfPawlIsKilled(t *testing.T) {
	s, dir := in(t, Auto), t.TempDir()
	waitAlive(t, killedPawl(t, Auto, "x"), 0)
	for _, d := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if s.Overlays(t.Context(), dir) == nil {
		waitAlive(t, killedPawl(t, Auto, "y", "TEST_PAWL_OVER="+dir), 0)
	}
}

func TestLeftoversOfAKilledPawlAreSwept(t *testing.T) {
	node := fmt.Sprintf("node-%d/", time.Now().UnixNano())
	name := killedPawl(t, None, node+"attempt-1")
	other, _ := started(t, in(t, None), func() Spec {
		spec := script(t, "echo ready; sleep 1000")
		spec.ID = "other-" + node
		return spec
	}())
	n, err := Sweep(node)
	if err != nil || n < detached {
		t.Errorf("%d swept, %v", n, err)
	}
	if n := alive(t, name); n != 0 {
		t.Errorf("%d processes survived", n)
	}
	select {
	case <-other.done:
		t.Error("another Pawl's process was swept as well")
	default:
	}
	other.Kill()
	if n, err := Sweep(node); n != 0 || err != nil {
		t.Errorf("a second sweep: %d, %v", n, err)
	}
	if _, err := Sweep(""); err == nil {
		t.Error("a sweep of all nodes' processes was accepted")
	}
}

func TestKillSparesSimilarIDs(t *testing.T) {
	s := in(t, None)
	start := func(id string) *Process {
		spec := script(t, "echo ready; sleep 1000")
		spec.ID = id
		p, _ := started(t, s, spec)
		return p
	}
	one, ten := start("attempt-1"), start("attempt-10")
	one.Kill()
	select {
	case <-ten.done:
		t.Error("attempt-10 died with attempt-1")
	default:
	}
	ten.Kill()
}

func TestReaderEndsAlthoughAProcessHoldsTheOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // stands in for a process that keeps the output open
	text := strings.Repeat("x", 60_000)
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(&output{f: r})
	if err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A running sandbox stands in for one that outlived its Pawl, which a test cannot produce.
func TestLeftoverSandboxIsSwept(t *testing.T) {
	node := fmt.Sprintf("node-%d/", time.Now().UnixNano())
	spec := script(t, "echo ready; (setsid sleep 1000 &); sleep 1000")
	spec.ID = node + "attempt-1"
	p, _ := started(t, in(t, Auto), spec)
	if n, err := Sweep(node); err != nil || n == 0 {
		t.Errorf("%d swept, %v", n, err)
	}
	<-p.done
	if left := family(Marker+"="+node, 0); len(left) != 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

func TestProcessesFoundAfterTheDeadlineAreKilled(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	synctest.Test(t, func(t *testing.T) {
		found := []int{cmd.Process.Pid}
		left := killAll(func() []int {
			time.Sleep(2 * dying) // as long as a scan of thousands of processes takes
			pids := found
			found = nil
			return pids
		})
		if left != 0 {
			t.Fatalf("%d processes are left", left)
		}
	})
	if t.Failed() {
		return
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v, want it killed", err)
	}
}
