package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limited returns a sandbox with limits, without control groups if plain is set.
func limited(t *testing.T, l Limits, plain bool) *Sandbox {
	t.Helper()
	s := walled(t)
	s.Limit(l)
	if how, groups := s.Limited(); plain {
		s.groups = ""
	} else if !groups {
		t.Skip("this kernel lacks control groups with controllers: " + how)
	}
	return s
}

func TestFileSystemsInMemoryAreLimited(t *testing.T) {
	fill := `for d in /tmp /var/tmp /dev/shm /run; do head -c 70000000 /dev/zero >$d/f 2>/dev/null && echo $d; rm -f $d/f; done; true`
	if got := shell(t, walled(t), script(t, fill)); got != "/tmp\n/var/tmp\n/dev/shm\n/run" {
		t.Errorf("without a limit, files fit only in %q", got)
	}
	if got := shell(t, limited(t, Limits{Memory: 100 << 20}, true), script(t, fill)); got != "" {
		t.Errorf("with a limit, files fit in %q", got)
	}
}

func TestProgramOverALimitIsKilledWithTheReason(t *testing.T) {
	const grow = `python3 -c 'import time
keep = []
while True: keep.append(bytearray(b"x") * (8 << 20)); time.sleep(0.02)'`
	for name, c := range map[string]struct {
		limits Limits
		text   string
		plain  bool
		why    string
	}{
		"memory":          {Limits{Memory: 256 << 20}, grow, false, "sandbox.memory"},
		"memory, watched": {Limits{Memory: 256 << 20}, grow, true, "sandbox.memory"},
		"disk":            {Limits{Disk: 64 << 20}, `i=0; while :; do head -c 4000000 /dev/zero >f$i; i=$((i+1)); sleep 0.02; done`, true, "sandbox.disk"},
		"disk, in HOME":   {Limits{Disk: 64 << 20}, `cd ~; i=0; while :; do head -c 4000000 /dev/zero >f$i; i=$((i+1)); sleep 0.02; done`, true, "sandbox.disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := limited(t, c.limits, c.plain)
			spec := script(t, c.text)
			spec.Env = append(spec.Env, "HOME="+spec.Home)
			out, stderr, exit, err := run(t, s, spec) // without the limit each runs forever
			if err != nil || exit.Code == 0 || !strings.Contains(exit.Exceeded, c.why) {
				t.Errorf("%q %q %+v %v", out, stderr, exit, err)
			}
		})
	}
}

func TestFileSizeIsLimitedToTheDiskLimit(t *testing.T) {
	spec := script(t, `head -c 40000000 /dev/zero >f; ls -l f | cut -d' ' -f5`)
	if got := shell(t, walled(t), spec); got != "40000000" {
		t.Errorf("without a limit: %s", got)
	}
	if got := shell(t, limited(t, Limits{Disk: 32 << 20}, true), spec); got != "33554432" {
		t.Errorf("with one: %s", got)
	}
}

func TestProcessCountIsLimited(t *testing.T) {
	const bomb = `n=0; for i in $(seq 300); do sleep 20 & n=$((n+1)); done 2>/dev/null; echo $n`
	plain := os.Geteuid() != 0
	s := limited(t, Limits{PIDs: 100}, plain) // root's processes are counted only in control groups
	out, _, _, err := run(t, s, script(t, bomb))
	if err != nil || strings.Contains(out, "300") {
		t.Errorf("%q %v", out, err)
	}
	if got := shell(t, walled(t), script(t, bomb)); got != "300" {
		t.Errorf("without a limit: %s", got)
	}
}

func TestHardLinksCountOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	one := used([]string{dir}, 1<<40)
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if two := used([]string{dir}, 1<<40); two != one || one < 1<<20 {
		t.Errorf("%d, then %d", one, two)
	}
	if got := used([]string{dir}, 1<<10); got <= 1<<10 {
		t.Errorf("usage above the limit is reported as %d", got)
	}
}

// A process clears its environment and leaves its session and its parents. Killing it through a control group needs no
// controllers.
func TestControlGroupEndsUnmarkedProcesses(t *testing.T) {
	parent := ""
	for _, at := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := filepath.Join(at, fmt.Sprintf("pawl-test-%d", os.Getpid()))
		var system unix.Statfs_t
		if unix.Statfs(at, &system) == nil && system.Type == unix.CGROUP2_SUPER_MAGIC && os.Mkdir(dir, 0o755) == nil {
			parent = dir
		}
	}
	if parent == "" {
		t.Skip("this kernel lacks control groups of version 2 that this user may make")
	}
	t.Cleanup(func() { os.Remove(parent) })
	for _, grouped := range []bool{false, true} {
		s, name := in(t, None), tag(t, 9)
		if grouped {
			s.groups = parent
		}
		p, err := s.Start(t.Context(), script(t, "(setsid env -i /bin/sleep "+name+" >/dev/null 2>&1 </dev/null &); sleep 0.2"))
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, p.Stderr())
		go io.Copy(io.Discard, p.Stdout())
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
		if left := alive(t, name); (left == 0) != grouped {
			t.Errorf("with a control group %t: %d processes are left", grouped, left)
		}
		killAll(func() (left []int) { // leftovers of the run without a group
			dirs, _ := filepath.Glob("/proc/[0-9]*")
			for _, dir := range dirs {
				if text, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && strings.Contains(string(text), "sleep\x00"+name) {
					pid, _ := strconv.Atoi(filepath.Base(dir))
					left = append(left, pid)
				}
			}
			return left
		})
	}
	if left, err := filepath.Glob(filepath.Join(parent, "pawl-*")); err != nil || len(left) > 0 {
		t.Errorf("control groups are left: %q %v", left, err)
	}
}

// The group's files are written to a plain folder, because not every machine has memory control groups.
func TestLimitsHaveTheKernelsFormat(t *testing.T) {
	s := &Sandbox{groups: t.TempDir(), limits: Limits{Memory: 8 << 30, CPUs: 1.5, PIDs: 4096}}
	g, err := s.newGroup()
	if err != nil {
		t.Fatal(err)
	}
	defer g.handle.Close()
	for file, want := range map[string]string{"memory.max": "8589934592", "memory.swap.max": "0", "pids.max": "4096", "cpu.max": "150000 100000"} {
		if got, err := os.ReadFile(filepath.Join(g.dir, file)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, want %q: %v", file, got, want, err)
		}
	}
}
