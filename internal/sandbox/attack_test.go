package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackCommand is the first argument that turns this test binary into an attacker.
const attackCommand = "attack"

// attack runs an attack and returns why it failed, or nil if it succeeded.
func attack(name string) error {
	runtime.LockOSThread() // ptrace ties the tracee to a thread
	sys := func(number uintptr, args ...uintptr) error {
		args = append(args, 0, 0, 0, 0, 0, 0)
		if _, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5]); errno != 0 {
			return errno
		}
		return nil
	}
	socket := func(family, kind, protocol int) error {
		_, err := unix.Socket(family, kind, protocol)
		return err
	}
	var room [4096]byte
	at := uintptr(unsafe.Pointer(&room))
	// A new child exits at once. Its status is ignored.
	child := func(number uintptr, args ...uintptr) error {
		args = append(args, 0, 0, 0, 0, 0)
		pid, _, errno := unix.RawSyscall6(number, args[0], args[1], args[2], args[3], args[4], 0)
		switch {
		case errno != 0:
			return errno
		case pid == 0:
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, err := unix.Wait4(int(pid), nil, 0, nil)
		return err
	}
	switch name {
	case "key":
		id, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", "pawl-attack", 0)
		if err == nil {
			_, err = unix.KeyctlBuffer(unix.KEYCTL_READ, id, room[:], len(room))
		}
		return err
	case "add_key":
		_, err := unix.AddKey("user", "pawl-attack-own", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	case "io_uring":
		return sys(unix.SYS_IO_URING_SETUP, 1, at)
	case "userfaultfd":
		return sys(unix.SYS_USERFAULTFD, 1) // user mode only
	case "bpf":
		*(*[4]uint32)(unsafe.Pointer(&room)) = [4]uint32{unix.BPF_MAP_TYPE_ARRAY, 4, 4, 1}
		return sys(unix.SYS_BPF, unix.BPF_MAP_CREATE, at, 72)
	case "perf":
		p := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
		_, err := unix.PerfEventOpen(&p, 0, -1, -1, 0)
		return err
	case "open_by_handle_at":
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/etc", 0)
		if err != nil {
			return err
		}
		dir, err := unix.Open("/etc", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err == nil {
			_, err = unix.OpenByHandleAt(dir, handle, unix.O_PATH)
		}
		return err
	case "ptrace 1":
		return sys(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1)
	case "ptrace own":
		cmd := exec.Command("sleep", "10")
		if err := cmd.Start(); err != nil {
			return err
		}
		defer cmd.Process.Kill()
		return sys(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(cmd.Process.Pid))
	case "vsock":
		return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	case "alg":
		return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	case "netlink":
		return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC)
	case "netlink, high bits": // the kernel reads only the lower half
		return sys(unix.SYS_SOCKET, 1<<32|unix.AF_NETLINK, unix.SOCK_RAW, 1<<32|unix.NETLINK_GENERIC)
	case "routes":
		return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	case "clone":
		return child(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD))
	case "clone3":
		*(*[8]uint64)(unsafe.Pointer(&room)) = [8]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
		return child(unix.SYS_CLONE3, at, 64)
	case "x32":
		return sys(x32 | unix.SYS_GETPID)
	}
	return attackOnFiles(name)
}

// attackOnFiles runs attacks that need more than one system call.
func attackOnFiles(name string) error {
	var room [4096]byte
	switch name {
	case "hold 1": // while the child lives, it holds PID 1 stopped
		self, _ := os.Executable()
		cmd := exec.Command(self, attackCommand, "holder")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return err
		}
		n, _ := out.Read(room[:])
		if text := string(room[:n]); text != "held\n" {
			return errors.New(text)
		}
		return nil
	case "holder":
		err := attack("ptrace 1")
		if err == nil {
			err = unix.PtraceInterrupt(1)
		}
		if err != nil {
			return err
		}
		fmt.Println("held")
		time.Sleep(time.Minute)
		return nil
	case "memory of 1", "read /proc/1/mem":
		maps, err := os.ReadFile("/proc/1/maps")
		if err != nil {
			return err
		}
		var from uintptr
		if _, err := fmt.Sscanf(string(maps), "%x-", &from); err != nil {
			return err
		}
		if name == "memory of 1" {
			_, err = unix.ProcessVMReadv(1, []unix.Iovec{{Base: &room[0], Len: 16}}, []unix.RemoteIovec{{Base: from, Len: 16}}, 0)
			return err
		}
		f, err := os.Open("/proc/1/mem")
		if err == nil {
			_, err = f.ReadAt(room[:16], int64(from))
		}
		return err
	case "32 bits": // getpid through the 32-bit system call table
		file := filepath.Join(os.TempDir(), "elf32")
		if err := os.WriteFile(file, elf32, 0o755); err != nil {
			return err
		}
		return exec.Command(file).Run()
	case "a file in /dev":
		return os.WriteFile("/dev/pawl-attack", nil, 0o600)
	case "kallsyms", "timer_list", "config.gz", "cmdline", "vmallocinfo":
		text, err := os.ReadFile("/proc/" + name)
		if err == nil && len(text) == 0 {
			err = errors.New("empty")
		}
		return err
	case "sysrq":
		f, err := os.OpenFile("/proc/sysrq-trigger", os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	case "passwords":
		_, err := os.ReadFile("/etc/maven/settings.xml")
		return err
	}
	return fmt.Errorf("no attack is called %s", name)
}

// elf32 is a minimal 32-bit x86 program: exit(0).
var elf32 = append([]byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x03\x00\x01\x00\x00\x00\x54\x80\x04\x08\x34\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x34\x00\x20\x00\x01\x00\x00\x00\x00\x00\x00\x00"),
	[]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x80\x04\x08\x00\x80\x04\x08\x60\x00\x00\x00\x60\x00\x00\x00\x05\x00\x00\x00\x00\x10\x00\x00"+
		"\x31\xdb\x31\xc0\x40\xcd\x80\x90\x90\x90\x90\x90")...)

// barely returns a command in bubblewrap's namespaces without the other protections.
func barely(args ...string) *exec.Cmd {
	return exec.Command("bwrap", append([]string{"--unshare-user", "--unshare-pid", "--uid", insideID, "--gid", insideID, "--cap-drop", "ALL", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--"}, args...)...)
}

func TestAttacksOnTheKernelFail(t *testing.T) {
	s := walled(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		without string // the environment without the protection, where the attack succeeds
	}{
		{"add_key", "bwrap"}, {"io_uring", "bwrap"}, {"userfaultfd", "bwrap"}, {"perf", "bwrap"}, {"bpf", "root"}, {"open_by_handle_at", "root"},
		{"ptrace 1", "bwrap"}, {"memory of 1", "bwrap"}, {"read /proc/1/mem", "bwrap"},
		{"vsock", "bwrap"}, {"alg", "bwrap"}, {"netlink", "bwrap"}, {"netlink, high bits", "bwrap"}, {"clone", "bwrap"}, {"clone3", "bwrap"}, {"32 bits", "bwrap"},
		{"a file in /dev", "bwrap"}, {"config.gz", "bwrap"}, {"cmdline", "bwrap"}, {"kallsyms", "bwrap"}, {"timer_list", "root"}, {"vmallocinfo", "root"}, {"sysrq", "root"},
		{"passwords", "bwrap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			control := barely(self, attackCommand, c.name)
			if c.without == "root" {
				control = exec.Command(self, attackCommand, c.name)
			}
			output, err := control.CombinedOutput()
			switch {
			case err != nil && c.without == "root" && os.Geteuid() != 0:
				t.Logf("an ordinary user cannot do it anyway: %s", output)
			case err != nil && slices.ContainsFunc([]error{unix.ENOENT, unix.ENOSYS, unix.EAFNOSUPPORT}, func(e error) bool { return strings.Contains(string(output), e.Error()) }):
				t.Skipf("this kernel lacks the attacked feature: %s", output)
			case err != nil:
				t.Errorf("the attack should succeed without the protection: %v %s", err, output)
			}
			spec := script(t, "")
			spec.Argv, spec.Env, spec.Network = []string{self, attackCommand, c.name}, append(spec.Env, "TMPDIR="+spec.Dir), answering(29401)
			if out, stderr, exit, err := run(t, s, spec); err != nil || exit.Code == 0 {
				t.Errorf("the attack succeeded: %q %q %+v %v", out, stderr, exit, err)
			} else {
				t.Logf("%s", bytes.TrimSpace([]byte(stderr)))
			}
		})
	}
	for _, name := range []string{"routes", "ptrace own"} { // programs need these calls
		spec := script(t, "")
		spec.Argv, spec.Network = []string{self, attackCommand, name}, answering(29401)
		shell(t, s, spec)
	}
}

// The test runs itself with a key in its keyring.
func TestProgramsCannotReadThePawlUsersKeyring(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("TEST_PAWL_KEY") == "" {
		in(t, Auto)
		runtime.LockOSThread() // the child inherits the thread's keyring; the thread ends with the test
		if _, err := unix.KeyctlJoinSessionKeyring(""); err != nil {
			t.Skipf("this kernel lacks keyrings: %v", err)
		}
		if _, err := unix.AddKey("user", "pawl-attack", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.v", "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "TEST_PAWL_KEY=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if out, err := barely(self, attackCommand, "key").CombinedOutput(); err != nil {
		t.Errorf("the key should be readable without the protection: %v %s", err, out)
	}
	for name, s := range map[string]*Sandbox{"not permitted": walled(t), "key not available": in(t, None)} { // in mode none, only a new keyring hides the key
		spec := script(t, "")
		spec.Argv = []string{self, attackCommand, "key"}
		if _, stderr, exit, err := run(t, s, spec); err != nil || exit.Code == 0 || !strings.Contains(stderr, name) && !strings.Contains(stderr, "has been revoked") {
			t.Errorf("%s: %q %+v %v", name, stderr, exit, err)
		}
	}
}

// A child of the agent traces bubblewrap's process. Without the protections, the sandbox would then outlive the agent.
func TestStoppedSandboxInitStillEnds(t *testing.T) {
	s := walled(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	control := barely("sh", "-c", self+" "+attackCommand+" 'hold 1' && echo over")
	out, err := control.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	line := make([]byte, 5)
	if _, err := out.Read(line); string(line) != "over\n" {
		t.Fatalf("the attack should succeed without the protections: %q %v", line, err)
	}
	go func() { ended <- control.Wait() }()
	select {
	case err := <-ended:
		t.Errorf("the sandbox should continue without the protections: %v", err)
	case <-time.After(time.Second):
	}
	_ = control.Process.Kill()
	<-ended
	for _, kill := range []bool{false, true} {
		spec := script(t, self+" "+attackCommand+" 'hold 1'; kill -STOP 1; kill -STOP -1; echo ready; "+map[bool]string{false: "exit 3", true: "sleep 1000"}[kill])
		spec.ReadOnly, spec.Network = []string{self}, answering(29401)
		p, _ := started(t, s, spec)
		if kill {
			p.Kill()
		}
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			t.Fatal("the sandbox did not end")
		}
		if exit, err := p.Wait(); err != nil || !kill && exit.Code != 3 {
			t.Errorf("%+v, %v", exit, err)
		}
	}
}

// Only landlock forbids these writes and signals.
func TestLandlockAloneProtectsFilesAndProcesses(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"may", "not"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	command := []string{"/bin/sh", "-c", "cd " + dir + "; for d in may not; do echo x >$d/a && mkdir -p $d/c && ln $d/a $d/c/b && rm -r $d/c $d/a && echo wrote $d; done; cat /etc/hostname >/dev/null && echo read; kill -0 $PPID && echo signals"}
	inside := exec.Command("/proc/self/exe", append([]string{InsideCommand, fmt.Sprintf(`{"Own": 3, "Writable": ["/dev", %q]}`, filepath.Join(dir, "may"))}, command...)...)
	inside.ExtraFiles = []*os.File{self}
	out, _ := inside.Output()
	plain, err := exec.Command(command[0], command[1:]...).Output()
	if want := "wrote may\nwrote not\nread\nsignals\n"; err != nil || string(plain) != want {
		t.Errorf("without landlock: %q %v", plain, err)
	}
	if bytes.HasPrefix(out, plain) {
		t.Skip("this kernel lacks landlock")
	}
	if want := "wrote may\nread\n"; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
