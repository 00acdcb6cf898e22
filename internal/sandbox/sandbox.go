package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

type Mode string

// Modes, as in the configuration.
const (
	Auto Mode = "auto" // bubblewrap or an error
	None Mode = "none" // plain processes
)

// Marker is the environment variable with the Spec's ID. Mode None sets it for the program, mode Auto for bubblewrap.
const Marker = "PAWL_PROCESS"

// ErrUnavailable means that mode Auto does not work here.
var ErrUnavailable = errors.New("the sandbox does not work on this machine")

// Sandbox starts programs in one mode. Use New.
type Sandbox struct {
	mode     Mode
	bwrap    string // in mode Auto
	noUserns string // option that forbids user namespaces; empty before bubblewrap 0.8.0
	sizes    bool   // tmpfs sizes work (since bubblewrap 0.7.0)
	limits   Limits
	groups   string // parent of control groups, or empty
	noGroups error  // why groups is empty
	// program calls Inside; nil without UseProgram.
	program  *os.File
	networks bool
}

// Spec describes a program to start. All paths are absolute.
type Spec struct {
	Argv     []string // program and arguments; a name without a slash is found in Env's PATH
	Dir      string   // working directory, writable
	Home     string   // home directory, writable
	Env      []string // complete environment, NAME=value
	ReadOnly []string // other visible paths; nested paths override
	// Root is a folder, such as an unpacked image, that replaces the host's files. Mode None refuses it. Only Pawl
	// may write there.
	Root string
	// HostPath is the host's search path for a program shown inside Root; empty for Root's own program.
	HostPath string
	// Mounts are shown at other paths read-only, and Folders writable. Mode None refuses both.
	Mounts, Folders []Mount
	// DirAt and HomeAt are the paths of Dir and Home inside; empty for no change, as in mode None.
	DirAt, HomeAt string
	// Overlays are mounted first; see the method Overlays.
	Overlays []Overlay
	// Network is the program's own network; nil uses the host's. See UseProgram.
	Network *Network
	Stdin   []byte // complete standard input
	// ID identifies the process for Sweep. Use a prefix unique to this Pawl and a suffix per process. Empty means
	// random.
	ID string
}

// Mount shows the host's From at To.
type Mount struct{ From, To string }

// Overlay shows Lower's files below Upper's and writes to Upper. Work is an empty folder on the same file system.
// Paths may not contain a comma, colon, backslash or double quote.
type Overlay struct{ Lower, Upper, Work string }

// New prepares a sandbox. Mode Auto tests bubblewrap once and may return ErrUnavailable with a remedy. New disables
// core dumps of this process and hides inherited files from children.
func New(ctx context.Context, mode Mode) (*Sandbox, error) {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return nil, fmt.Errorf("switch core dumps off: %w", err)
	}
	if err := hideFiles(); err != nil {
		return nil, err
	}
	switch mode {
	case None:
		return &Sandbox{mode: None}, nil
	case Auto:
		return probe(ctx)
	}
	return nil, fmt.Errorf("sandbox mode %q: use auto or none", mode)
}

// hideFiles hides this process's open files from children.
func hideFiles() error {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("hide inherited files: %w (is /proc mounted?)", err)
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// HideProcess keeps other processes of this user, such as agents in mode None, from tracing this process and from
// reading its memory and environment. It does not protect against root. Do not call it in mode Auto: the process could
// not create user namespaces afterwards.
func HideProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process from others: %w", err)
	}
	return nil
}

func (s *Sandbox) Mode() Mode { return s.mode }

// User returns the programs' login name, or empty if Pawl's user has none.
func (s *Sandbox) User() string {
	if s.mode != None {
		return insideName
	}
	own, err := user.Current()
	if err != nil {
		return ""
	}
	return own.Username
}

func probe(ctx context.Context) (*Sandbox, error) {
	const otherwise = "or set sandbox.mode to none, which confines nothing"
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, fmt.Errorf("%w: bubblewrap (bwrap) is not installed: install the package bubblewrap, %s", ErrUnavailable, otherwise)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("find bubblewrap: %w", err)
	}
	s := &Sandbox{mode: Auto, bwrap: path}
	help := exec.CommandContext(ctx, path, "--help")
	help.Env = []string{}
	text, _ := help.CombinedOutput()
	if strings.Contains(string(text), "--disable-userns") {
		s.noUserns = "--disable-userns"
	}
	s.sizes = strings.Contains(string(text), "--size")
	output, err := s.try(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %s: %s, %s", ErrUnavailable, err, output, hint(output), otherwise)
	}
	return s, nil
}

// try runs bwrap --version in a sandbox and returns its standard error.
func (s *Sandbox) try(ctx context.Context, network *Network) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second) // usually takes milliseconds
	defer cancel()
	dir, err := os.MkdirTemp("", "pawl-probe-")
	if err != nil {
		return "", fmt.Errorf("try the sandbox: %w", err)
	}
	defer os.RemoveAll(dir)
	output, exit, err := s.once(ctx, Spec{Argv: []string{s.bwrap, "--version"}, Dir: dir, Home: dir, Network: network})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("it ended with status %d", exit.Code)
	}
	return strings.TrimSpace(output), err
}

// once runs a program to its end, and returns up to 4096 bytes of its standard error.
func (s *Sandbox) once(ctx context.Context, spec Spec) (said string, exit Exit, err error) {
	p, err := s.Start(ctx, spec)
	if err != nil {
		return "", Exit{}, err
	}
	go io.Copy(io.Discard, p.Stdout())
	text, _ := io.ReadAll(io.LimitReader(p.Stderr(), 4096))
	exit, err = p.Wait()
	return string(text), exit, err
}

// hints maps bubblewrap's errors to remedies. The first match wins.
var hints = []struct{ words, hint string }{
	{"proc", "in a container, start it with --security-opt systempaths=unconfined --security-opt seccomp=unconfined"},
	{"uid map", hintAppArmor},
	{"loopback", hintAppArmor},
	{"namespace", hintNamespaces},
	{"Operation not permitted", hintNamespaces},
}

const (
	hintAppArmor   = "AppArmor restricts user namespaces: add a profile for bwrap or set sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	hintNamespaces = "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1; in a container, --security-opt seccomp=unconfined)"
)

func hint(output string) string {
	for _, h := range hints {
		if strings.Contains(output, h.words) {
			return h.hint
		}
	}
	return "run bwrap by hand to see why"
}

// Start starts a program. Cancelling ctx kills it. The caller must read both outputs to the end and then call Wait.
func (s *Sandbox) Start(ctx context.Context, spec Spec) (*Process, error) {
	spec.ID = cmp.Or(spec.ID, rand.Text())
	exe, err := spec.check()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", exe, context.Cause(ctx))
	}
	p := &Process{marker: Marker + "=" + spec.ID, begun: make(chan struct{}), done: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(ctx)
	var cmd *exec.Cmd
	switch {
	case s.mode != None:
		cmd, err = s.bwrapCommand(ctx, exe, spec, p)
	case spec.Root != "":
		err = fmt.Errorf("start %s: without a sandbox there is no image", exe)
	case spec.Network != nil:
		err = fmt.Errorf("start %s: without a sandbox there is no network of its own", exe)
	case spec.relocates():
		err = fmt.Errorf("start %s: without a sandbox nothing can be shown at another path", exe)
	default:
		cmd = exec.CommandContext(ctx, exe, spec.Argv[1:]...)
		cmd.Args[0], cmd.Dir = spec.Argv[0], spec.Dir
		cmd.Env = append(slices.Clone(spec.Env), Marker+"="+spec.ID)
	}
	if err == nil {
		if err = p.start(ctx, cmd, s, spec); err != nil {
			err = fmt.Errorf("start %s: %w", exe, err)
		}
	}
	if err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// relocates reports whether a path inside differs from the host's.
func (spec Spec) relocates() bool {
	if spec.DirAt != "" || spec.HomeAt != "" {
		return true
	}
	if len(spec.Mounts) > 0 || len(spec.Folders) > 0 {
		return true
	}
	return len(spec.Overlays) > 0
}

// check validates the spec and finds the executable.
func (spec Spec) check() (exe string, err error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", errors.New("start a program: none was named")
	}
	paths, inside := spec.paths()
	for _, path := range slices.Concat(paths, inside) {
		if !proper(path) {
			return "", fmt.Errorf("start %s: path %q must be absolute, clean and not the root", spec.Argv[0], path)
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("start %s: %w", spec.Argv[0], err)
		}
	}
	for _, text := range append(append([]string{spec.ID}, spec.Argv...), append(spec.Env, paths...)...) {
		if strings.ContainsRune(text, 0) {
			return "", fmt.Errorf("start %s: a NUL byte in its arguments, environment or paths", spec.Argv[0])
		}
	}
	return spec.find()
}

// paths returns the host paths that must exist, and the paths inside.
func (spec Spec) paths() (host, inside []string) {
	host = append([]string{spec.Dir, spec.Home}, spec.ReadOnly...)
	if spec.Root != "" {
		host = append(host, spec.Root)
	}
	for _, m := range slices.Concat(spec.Mounts, spec.Folders) {
		host, inside = append(host, m.From), append(inside, m.To)
	}
	for _, o := range spec.Overlays {
		host = append(host, o.Lower, o.Upper, o.Work)
	}
	for _, at := range []string{spec.DirAt, spec.HomeAt} {
		if at != "" {
			inside = append(inside, at)
		}
	}
	return host, inside
}

func proper(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/"
}

func (spec Spec) find() (string, error) {
	name := spec.Argv[0]
	ofWorkTree := !filepath.IsAbs(name) && strings.ContainsRune(name, '/')
	if ofWorkTree {
		return lookUp(filepath.Join(spec.Dir, name), "", os.Stat)
	}
	if spec.HostPath != "" {
		return lookUp(name, spec.HostPath, os.Stat)
	}
	search := ""
	for _, v := range spec.Env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			search = list
		}
	}
	if spec.Root == "" {
		return lookUp(name, search, os.Stat)
	}
	path, err := lookUp(name, search, spec.statIn)
	if err != nil {
		err = fmt.Errorf("start %s: the image has no such program: use one that has it", name)
	}
	return path, err
}

func (spec Spec) statIn(path string) (os.FileInfo, error) {
	f, err := OpenIn(spec.Root, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

func lookUp(name, search string, stat func(string) (os.FileInfo, error)) (string, error) {
	dirs := filepath.SplitList(search)
	if filepath.IsAbs(name) {
		dirs = []string{"/"}
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if !filepath.IsAbs(path) {
			continue
		}
		info, err := stat(path)
		if err != nil {
			continue
		}
		executable := info.Mode()&0o111 != 0
		if executable && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("start %s: %w: install it, or name it by its full path", name, exec.ErrNotFound)
}
