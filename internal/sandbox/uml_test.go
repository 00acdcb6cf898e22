package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/needs"
)

// The tests of limits run in User Mode Linux, a kernel that runs as an ordinary program. It has control groups with
// controllers on every machine.
func TestControlGroupsEnforceLimits(t *testing.T) {
	needs.All(t, "it boots a kernel")
	kernel := needs.Program(t, "linux.uml")
	if os.Geteuid() != 0 {
		t.Skip("mounts inside User Mode Linux need root's files on this machine")
	}
	walled(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if built, ok := debug.ReadBuildInfo(); ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("this kernel lacks the address space that the race detector needs")
	}
	dir := t.TempDir()
	// The guest's root is the machine's root, so the test can read results from this folder.
	script := fmt.Sprintf(`#!/bin/sh
export PATH=%q HOME=%q TMPDIR=/var/tmp PAWL_TEST_ALL=1
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t cgroup2 none /sys/fs/cgroup && mount -t tmpfs -o mode=1777 none /var/tmp
cd %q
%q -test.v -test.run '^(TestLimitsInsideUML)$' >%q 2>&1
echo "rc $?" >>%q
echo o >/proc/sysrq-trigger
sleep 60
`, os.Getenv("PATH"), os.Getenv("HOME"), here, self, dir+"/out", dir+"/out")
	if err := os.WriteFile(filepath.Join(dir, "init"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), 8*time.Minute)
	defer end()
	cmd := exec.CommandContext(ctx, kernel, "mem=1G", "rootfstype=hostfs", "rootflags=/", "rw", "init="+dir+"/init", "con=null", "con0=null,fd:1", "umid="+filepath.Base(dir)+fmt.Sprint(os.Getpid()))
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	console, _ := cmd.CombinedOutput() // its exit status is meaningless
	if bytes.Contains(console, []byte("set fp regs failed")) {
		t.Skip("this kernel lacks a floating-point state that User Mode Linux can set: Linux 6.1's cannot on a processor with AMX")
	}
	out, err := os.ReadFile(dir + "/out")
	if err != nil || !strings.Contains(string(out), "\nrc 0\n") || strings.Count(string(out), "--- PASS") < 3 || strings.Contains(string(out), "SKIP") {
		t.Errorf("%v\n%s\n%s", err, out, console)
	}
	t.Logf("%s", out)
}

// TestLimitsInsideUML is run by TestControlGroupsEnforceLimits.
func TestLimitsInsideUML(t *testing.T) {
	if text, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err != nil || !strings.Contains(string(text), "memory") {
		t.Skip("this kernel lacks control groups with controllers")
	}
	for name, c := range map[string]struct {
		limits    Limits
		text, why string
	}{
		"memory": {Limits{Memory: 128 << 20}, "head -c 400000000 /dev/zero | tail", "the kernel ended 1 of its processes for lack of memory, which sandbox.memory limits"},
		"pids":   {Limits{PIDs: 20}, "for i in $(seq 40); do sleep 5 & done; wait", "processes beyond the 20 that sandbox.pids allows"},
	} {
		t.Run(name, func(t *testing.T) {
			s := limited(t, c.limits, false)
			out, stderr, exit, err := run(t, s, script(t, c.text))
			if err != nil || !strings.Contains(exit.Exceeded, c.why) {
				t.Errorf("%q %q %+v %v", out, stderr, exit, err)
			}
			t.Logf("%s: %s", name, exit.Exceeded)
		})
	}
}
