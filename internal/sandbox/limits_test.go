package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// limited is a sandbox with limits; without control groups where plain is set.
func limited(t *testing.T, l Limits, plain bool) *Sandbox {
	t.Helper()
	s := walled(t)
	s.Limit(l)
	if how, groups := s.Limited(); plain {
		s.groups = ""
	} else if !groups {
		t.Skip("this machine lets nobody make control groups: " + how)
	}
	return s
}

func TestWhatIsInMemoryIsBounded(t *testing.T) {
	fill := `for d in /tmp /var/tmp /dev/shm /run; do head -c 70000000 /dev/zero >$d/f 2>/dev/null && echo $d; rm -f $d/f; done; true`
	if got := shell(t, walled(t), script(t, fill)); got != "/tmp\n/var/tmp\n/dev/shm\n/run" {
		t.Errorf("with the machine's memory there should be room: %q", got)
	}
	if got := shell(t, limited(t, Limits{Memory: 100 << 20}, true), script(t, fill)); got != "" {
		t.Errorf("there is room in %q", got)
	}
}

func TestAProgramThatTakesTooMuchIsEndedWithTheReason(t *testing.T) {
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
		"disk, at home":   {Limits{Disk: 64 << 20}, `cd ~; i=0; while :; do head -c 4000000 /dev/zero >f$i; i=$((i+1)); sleep 0.02; done`, true, "sandbox.disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := limited(t, c.limits, c.plain)
			spec := script(t, c.text)
			spec.Env = append(spec.Env, "HOME="+spec.Home)
			began := time.Now()
			out, stderr, exit, err := run(t, s, spec)
			if err != nil || exit.Code == 0 || !strings.Contains(exit.Exceeded, c.why) {
				t.Errorf("%q %q %+v %v", out, stderr, exit, err)
			}
			if time.Since(began) > 40*time.Second {
				t.Errorf("it took %s", time.Since(began))
			}
		})
	}
}

func TestAFileIsNoLargerThanTheDisk(t *testing.T) {
	spec := script(t, `head -c 40000000 /dev/zero >f; ls -l f | cut -d' ' -f5`)
	if got := shell(t, walled(t), spec); got != "40000000" {
		t.Errorf("without a limit: %s", got)
	}
	if got := shell(t, limited(t, Limits{Disk: 32 << 20}, true), spec); got != "33554432" {
		t.Errorf("with one: %s", got)
	}
}

func TestProcessesAreBounded(t *testing.T) {
	const bomb = `n=0; for i in $(seq 300); do sleep 20 & n=$((n+1)); done 2>/dev/null; echo $n`
	plain := os.Geteuid() != 0
	s := limited(t, Limits{PIDs: 100}, plain) // for root the kernel counts in control groups only
	out, _, _, err := run(t, s, script(t, bomb))
	if err != nil || strings.Contains(out, "300") {
		t.Errorf("%q %v", out, err)
	}
	if got := shell(t, walled(t), script(t, bomb)); got != "300" {
		t.Errorf("without a limit: %s", got)
	}
}

func TestFilesWithTwoNamesCountOnce(t *testing.T) {
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
		t.Errorf("too much is told as %d", got)
	}
}
