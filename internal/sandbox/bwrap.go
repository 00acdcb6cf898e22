package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// User and host name inside the sandbox. Some agents refuse to run as root. Files still belong to Pawl's user.
const (
	insideID   = "1000"
	insideName = "agent"
	insideHost = "pawl"
)

// insideHosts resolves localhost in IPv4 and IPv6, and the sandbox's own host name.
const insideHosts = "127.0.0.1\tlocalhost " + insideHost + "\n::1\tlocalhost ip6-localhost ip6-loopback\n"

// hosts returns the content of /etc/hosts inside. Programs on the host's network also see the host's entries.
func (spec Spec) hosts() string {
	if spec.Network != nil {
		return insideHosts
	}
	neighbours, _ := os.ReadFile("/etc/hosts") // the file may be missing
	return insideHosts + string(neighbours)
}

// etcShown lists the visible parts of /etc as filepath.Match patterns. It leaves out logins, mail, daemons, and files
// that may hold passwords, such as Maven's settings.
var etcShown = slices.Concat(
	[]string{"resolv.conf", "nsswitch.conf", "host.conf", "gai.conf", "protocols", "services"},                             // names of hosts and services
	[]string{"ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "crypto-policies"}, // TLS on Debian
	[]string{"pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf"},                                   // TLS on Red Hat
	[]string{"ld.so.cache", "ld.so.conf", "ld.so.conf.d"},                                                                  // libraries
	[]string{"alternatives"}, // links from /usr/bin to cc, java, editor and others
	[]string{"java*/security", "java*/*.properties", "java*/*.cfg", "java*/management/*.properties", "java*/*.policy", "maven/m2.conf", "maven/logging"}, // for Debian's JVM and Maven
	[]string{"perl", "python*"}, // modules of interpreters
	[]string{"localtime", "timezone", "locale.alias", "locale.conf", "terminfo", "fonts", "magic", "mime.types"}, // time, language, terminals, file types
	[]string{"os-release", "lsb-release", "debian_version", "redhat-release", "shells"},                          // system names for installers
)

// usrHidden lists folders below /usr that may hold credentials.
var usrHidden = []string{"/usr/etc", "/usr/local/etc", "/usr/local/var"}

// bwrapCommand returns bubblewrap's command. Arguments go through a memory file, so that no process list shows the
// environment or host paths.
func (s *Sandbox) bwrapCommand(ctx context.Context, exe string, spec Spec, p *Process) (_ *exec.Cmd, err error) {
	var files passedFiles
	defer func() {
		if err != nil {
			closeAll(append(files, p.status, p.release)...)
			p.hand.close()
		}
	}()
	command, args, err := s.arguments(exe, spec, &files)
	if err == nil && spec.Network != nil {
		args = append(args, "--unshare-net")
		if !s.networks {
			err = errors.New("this sandbox cannot give programs their own networks")
		}
	}
	if err == nil && s.program != nil {
		command, p.hand, err = s.throughInside(command, spec, &files)
	}
	if err != nil {
		return nil, err
	}
	var status, block, list *os.File
	if p.status, status, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", exe, err)
	}
	args = append(args, "--json-status-fd", files.add(status))
	if block, p.release, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", exe, err)
	}
	args = append(args, "--block-fd", files.add(block))
	if list, err = memoryFile(strings.Join(args, "\x00") + "\x00"); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.bwrap, append([]string{"--args", files.add(list), "--"}, command...)...)
	if len(spec.Overlays) > 0 {
		cmd = overlaid(ctx, cmd.Args, spec.Overlays)
	}
	cmd.Env = []string{p.marker} // for Sweep; --clearenv hides the marker from the program
	cmd.Dir = "/"
	cmd.ExtraFiles = files
	return cmd, nil
}

type passedFiles []*os.File

func (h *passedFiles) add(f *os.File) string {
	*h = append(*h, f)
	return strconv.Itoa(2 + len(*h))
}

// arguments returns the command inside and bubblewrap's options, which refer to files by descriptor.
func (s *Sandbox) arguments(exe string, spec Spec, files *passedFiles) (command, args []string, err error) {
	command, list, err := spec.binds(exe)
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", exe, err)
	}
	args = []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session",
		"--uid", insideID, "--gid", insideID, "--hostname", insideHost, "--cap-drop", "ALL", "--clearenv",
	}
	if s.noUserns != "" {
		args = append(args, s.noUserns)
	}
	if spec.Root == "" {
		args = append(args, hostMounts()...)
	} else {
		own := append([]string{"/etc/passwd", "/etc/group", "/etc/hosts"}, ownPlaces...)
		for _, b := range list {
			own = append(own, b.path)
		}
		mounts, err := rootMounts(spec.Root, own)
		if err != nil {
			return nil, nil, fmt.Errorf("start %s: %w", exe, err)
		}
		args = append(args, mounts...)
	}
	args = append(args, s.freshMounts()...)
	for _, f := range []struct{ path, text string }{
		{"/etc/passwd", fmt.Sprintf("root:x:0:0:root:/nonexistent:/bin/sh\n%s:x:%s:%s:%[1]s:%[4]s:/bin/sh\n", insideName, insideID, insideID, cmp.Or(spec.HomeAt, spec.Home))},
		{"/etc/group", fmt.Sprintf("root:x:0:\n%s:x:%s:\n", insideName, insideID)},
		{"/etc/hosts", spec.hosts()},
	} {
		file, err := memoryFile(f.text)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, "--perms", "0444", "--ro-bind-data", files.add(file), f.path)
	}
	calls, err := filterFile()
	if err != nil {
		return nil, nil, err
	}
	args = append(args, "--seccomp", files.add(calls))
	for _, b := range list {
		args = append(args, b.option, b.from, b.path)
	}
	args = append(args, "--remount-ro", "/", "--chdir", cmp.Or(spec.DirAt, spec.Dir))
	for _, v := range spec.Env {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, nil, fmt.Errorf("start %s: environment entry %.40q is not NAME=value", exe, v)
		}
		args = append(args, "--setenv", name, value)
	}
	return command, args, nil
}

// hostMounts returns mounts of the host's system files, for programs without a root.
func hostMounts() []string {
	args := []string{"--ro-bind", "/usr", "/usr"}
	for _, dir := range usrHidden {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			args = append(args, "--tmpfs", dir, "--remount-ro", dir)
		}
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	for _, pattern := range etcShown {
		found, _ := filepath.Glob("/etc/" + pattern) // constant, well-formed patterns
		for _, path := range found {
			if _, err := os.Stat(path); err == nil {
				args = append(args, "--ro-bind", path, path)
			}
		}
	}
	return args
}

// ownPlaces lists the mount points of freshMounts.
var ownPlaces = []string{"/proc", "/dev", "/tmp", "/run", "/var/tmp"}

// procShown lists the entries of /proc that programs read, apart from processes. sys is read-only: root could otherwise
// change kernel settings, and one of them names a program that the kernel runs as root.
var procShown = []string{"cgroups", "cpuinfo", "devices", "diskstats", "filesystems", "loadavg", "meminfo", "mounts", "net", "partitions", "pressure", "self", "stat", "swaps", "sys",
	"thread-self", "uptime", "version", "vmstat"}

// freshMounts returns a program's own mounts, and limits the size of those in memory.
func (s *Sandbox) freshMounts() []string {
	args := []string{"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"}
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info)
	base := cmp.Or(s.limits.Memory, int64(info.Totalram)*int64(info.Unit))
	memory := func(path string, part int64) {
		if s.sizes {
			args = append(args, "--size", strconv.FormatInt(max(base/part, leastTmpfs), 10))
		}
		args = append(args, "--tmpfs", path)
	}
	memory("/dev/shm", 4)
	args = append(args, "--remount-ro", "/dev")
	memory("/tmp", 2)
	memory("/var/tmp", 4)
	memory("/run", 64)
	entries, _ := os.ReadDir("/proc") // New has already read /proc
	for _, e := range entries {
		if staysInProc(e) {
			continue
		}
		path := "/proc/" + e.Name()
		if e.IsDir() {
			args = append(args, "--tmpfs", path, "--remount-ro", path)
		} else {
			args = append(args, "--ro-bind", "/dev/null", path) // bubblewrap mounts it nodev, so it cannot be opened
		}
	}
	return args
}

// staysInProc reports whether an entry of /proc stays visible.
func staysInProc(e os.DirEntry) bool {
	_, err := strconv.Atoi(e.Name())
	isProcess := err == nil
	if isProcess || slices.Contains(procShown, e.Name()) {
		return true
	}
	return e.Type() == os.ModeSymlink
}

// leastTmpfs is the minimum size of a folder in memory, in bytes.
const leastTmpfs = 16 << 20

// bind describes the mount of a host file or folder at a path.
type bind struct{ path, option, from string }

// binds returns the command inside and its mounts: directories, and the executable if not visible yet.
func (spec Spec) binds(exe string) (argv []string, list []bind, err error) {
	list = []bind{{cmp.Or(spec.DirAt, spec.Dir), "--bind", spec.Dir}, {cmp.Or(spec.HomeAt, spec.Home), "--bind", spec.Home}}
	for _, m := range spec.Folders {
		list = append(list, bind{m.To, "--bind", m.From})
	}
	for _, path := range spec.ReadOnly {
		list = append(list, bind{path, "--ro-bind", path})
	}
	for _, m := range spec.Mounts {
		list = append(list, bind{m.To, "--ro-bind", m.From})
	}
	argv = append([]string{exe}, spec.Argv[1:]...)
	switch {
	case spec.Root == "":
		list = append(list, showing(exe, list)...)
	case spec.HostPath != "":
		argv, list, err = spec.guest(exe, list)
	}
	if spec.Root != "" && spec.Network == nil { // the program uses the host's network
		const path = "/etc/resolv.conf"
		if _, err := os.Stat(path); err == nil {
			list = append(list, bind{path, "--ro-bind", path})
		}
	}
	// Mount outer paths before inner ones. At the same path, read-only binds come last.
	slices.SortStableFunc(list, func(a, b bind) int { return cmp.Compare(len(a.path), len(b.path)) })
	return argv, list, err
}

// showing returns mounts of an executable that is not visible yet.
func showing(exe string, list []bind) (more []bind) {
	real, err := filepath.EvalSymlinks(exe)
	if err != nil {
		real = exe
	}
	for _, path := range []string{exe, real} {
		shown := slices.ContainsFunc(slices.Concat(list, more), func(b bind) bool { return within(path, b.path) })
		for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"} {
			shown = shown || within(path, dir)
		}
		if !shown {
			more = append(more, bind{path, "--ro-bind", path})
		}
	}
	return more
}

func within(path, dir string) bool { return strings.HasPrefix(path+"/", dir+"/") }

func memoryFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("pawl", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("write a memory file: %w", err)
	}
	return f, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
