package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/needs"
)

const path = "PATH=/usr/local/bin:/usr/bin:/bin"

// in returns a sandbox of the mode, or skips the test if the machine does not support it.
func in(t *testing.T, mode Mode) *Sandbox {
	t.Helper()
	if mode == Auto {
		needs.All(t, "bubblewrap")
	}
	s, err := New(t.Context(), mode)
	if errors.Is(err, ErrUnavailable) {
		t.Skipf("no sandbox here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// both runs a test in each mode.
func both(t *testing.T, test func(t *testing.T, s *Sandbox)) {
	for _, mode := range []Mode{Auto, None} {
		t.Run(string(mode), func(t *testing.T) { test(t, in(t, mode)) })
	}
}

// script returns a spec that runs a shell script in new directories.
func script(t *testing.T, text string) Spec {
	t.Helper()
	dir := t.TempDir()
	spec := Spec{Dir: filepath.Join(dir, "checkout"), Home: filepath.Join(dir, "home"), Env: []string{path}, Argv: []string{"sh", "-c", text}}
	for _, d := range []string{spec.Dir, spec.Home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return spec
}

// run runs a program to its end.
func run(t *testing.T, s *Sandbox, spec Spec) (stdout, stderr string, exit Exit, err error) {
	t.Helper()
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		return "", "", Exit{}, err
	}
	errs := make(chan string)
	go func() {
		b, _ := io.ReadAll(p.Stderr())
		errs <- string(b)
	}()
	b, readErr := io.ReadAll(p.Stdout())
	stderr = <-errs
	if readErr != nil {
		t.Error(readErr)
	}
	exit, err = p.Wait()
	return string(b), stderr, exit, err
}

// shell runs a script and returns its output; the script must succeed.
func shell(t *testing.T, s *Sandbox, spec Spec) string {
	t.Helper()
	out, stderr, exit, err := run(t, s, spec)
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v, %+v\n%s%s", err, exit, out, stderr)
	}
	return strings.TrimSpace(out)
}

func TestEnvironmentIsExactlyTheSpecs(t *testing.T) {
	t.Setenv("HOST_SECRET", "leaked")
	both(t, func(t *testing.T, s *Sandbox) {
		spec := script(t, "")
		spec.Argv = []string{"env", "-0"}
		spec.Env = []string{path, "A=1", "EMPTY=", "LINES=a\nb", "LD_LIBRARY_PATH=/none"}
		spec.ID = "id-1"
		want := slices.Clone(spec.Env)
		if s.Mode() == None {
			want = append(want, Marker+"=id-1")
		} else {
			want = append(want, "PWD="+spec.Dir) // bubblewrap sets it, as a shell would
		}
		got := strings.Split(strings.TrimSuffix(shell(t, s, spec), "\x00"), "\x00")
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOtherProcessesInsideShowNoSecrets(t *testing.T) {
	t.Setenv("HOST_SECRET", "leaked")
	s := in(t, Auto)
	spec := script(t, `for p in /proc/[0-9]*; do echo "== $p"; tr '\0' '\n' < $p/environ; tr '\0' ' ' < $p/cmdline; echo; done`)
	spec.Env = append(spec.Env, "GIVEN=inside")
	out := shell(t, s, spec)
	for _, secret := range []string{"leaked", "HOST_SECRET", "--bind", "--setenv"} {
		if strings.Contains(out, secret) {
			t.Errorf("%s is visible:\n%s", secret, out)
		}
	}
	if n := strings.Count(out, "== /proc/"); n > 5 {
		t.Errorf("%d processes are visible inside", n)
	}
	first, _, _ := strings.Cut(out, "== /proc/2")
	if strings.Contains(first, "GIVEN") {
		t.Logf("the first process shows the program's own environment, which is not a leak:\n%s", first)
	}
	fds := script(t, `ls /proc/self/fd; ls -l /proc/self/fd >&2`)
	if got := strings.Fields(shell(t, s, fds)); !slices.Equal(got, []string{"0", "1", "2", "3"}) { // 3 is the directory that ls reads
		t.Errorf("open files: %v", got)
	}
}

func TestTheHostIsInvisibleAndReadOnly(t *testing.T) {
	s := in(t, Auto)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := script(t, `
		for f in "$SECRET" /etc/shadow /etc/ssl/private /etc/ssh /root /home /var/lib /srv /opt /mnt /sys /boot /run/systemd /var/run/docker.sock; do
			if [ -e "$f" ]; then echo "visible: $f"; fi
		done
		# Opened for appending and closed again: should one be writable, nothing is harmed.
		for f in /usr/pawl-x /etc/pawl-x /pawl-x /bin/pawl-x /var/pawl-x /etc/resolv.conf /proc/sysrq-trigger \
			/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/drop_caches; do
			if ( : >> "$f" ) 2>/dev/null; then echo "writable: $f"; fi
		done
		ls -A /run /tmp /var/tmp | grep -v : | grep .
		for d in "$PWD" "$HOME" /tmp /dev/shm; do
			echo x > "$d/mine" || echo "not writable: $d"
		done
		grep -E '^Cap(Prm|Eff|Bnd|Inh|Amb)' /proc/self/status | grep -v 0000000000000000
		mount -t tmpfs none /mnt 2>/dev/null && echo "may mount"
		unshare -Ur true 2>/dev/null && echo "may make namespaces"
		true`)
	spec.Env = append(spec.Env, "SECRET="+secret, "HOME="+spec.Home)
	// The directories are below /tmp, so their parent directories are visible in /tmp.
	out := shell(t, s, spec)
	var lines []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.Contains(spec.Dir, "/"+line+"/") || s.noUserns == "" && line == "may make namespaces" {
			continue
		}
		lines = append(lines, line)
	}
	if len(lines) > 0 {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	for _, d := range []string{spec.Dir, spec.Home} {
		if _, err := os.Stat(filepath.Join(d, "mine")); err != nil {
			t.Error(err)
		}
	}
}

func TestTheSystemInsideIsUsable(t *testing.T) {
	s := in(t, Auto)
	spec := script(t, `id -un; id -u; hostname; ls -d /etc/resolv.conf; ls -d /etc/hosts; ls -d /etc/ssl/certs /etc/pki 2>/dev/null | head -1; test -c /dev/null; cd ~ && pwd`)
	spec.Env = append(spec.Env, "HOME="+spec.Home)
	got := strings.Fields(shell(t, s, spec))
	want := []string{"agent", "1000", "pawl", "/etc/resolv.conf", "/etc/hosts"}
	if len(got) != 7 || !slices.Equal(got[:5], want) || got[6] != spec.Home {
		t.Errorf("%q", got)
	}
	if _, err := exec.LookPath("node"); err == nil {
		spec.Argv = []string{"node", "-e", "console.log(require('os').userInfo().username)"}
		if got := shell(t, s, spec); got != "agent" {
			t.Errorf("node printed %q", got)
		}
	}
}

func TestHostnameAndLocalhostResolveInside(t *testing.T) {
	getent := needs.Program(t, "getent")
	s := in(t, Auto)
	roots := map[string]string{"the host's files": "", "an image": newRoot(t, []string{"sh", getent}, map[string]string{"etc/hosts": "192.0.2.1 pawl localhost\n", "etc/nsswitch.conf": "hosts: files\n"})}
	for name, root := range roots {
		t.Run(name, func(t *testing.T) {
			spec := script(t, `for h in pawl localhost; do for f in v4 v6; do getent ahosts$f $h | while read a k n; do echo $h $f $a; break; done; done; done`)
			spec.Root = root
			want := "pawl v4 127.0.0.1\npawl v6 ::ffff:127.0.0.1\nlocalhost v4 127.0.0.1\nlocalhost v6 ::1"
			if diff := cmp.Diff(want, shell(t, s, spec)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadOnlyPathsAreVisibleAndReadOnly(t *testing.T) {
	s := in(t, Auto)
	spec := script(t, `cat "$RO/objects/f" && (echo x > "$RO/objects/f") 2>/dev/null && echo "wrote read-only"
		echo x > nested/f 2>/dev/null && echo "wrote nested read-only"; ls "$RO"; true`)
	ro := t.TempDir()
	for _, f := range []string{filepath.Join(ro, "objects", "f"), filepath.Join(ro, "secret"), filepath.Join(spec.Dir, "nested", "f")} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("object\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec.Env = append(spec.Env, "RO="+ro)
	spec.ReadOnly = []string{filepath.Join(ro, "objects"), filepath.Join(spec.Dir, "nested")}
	if diff := cmp.Diff("object\nobjects", shell(t, s, spec)); diff != "" {
		t.Error(diff)
	}
}

func TestExecutableAtAnyPathRuns(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		dir := t.TempDir()
		real := filepath.Join(dir, "real", "agent")
		if err := os.Mkdir(filepath.Dir(real), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(real, []byte("#!/bin/sh\necho \"ran $1\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "agent")
		if err := os.Symlink("real/agent", link); err != nil {
			t.Fatal(err)
		}
		for _, argv := range [][]string{{real, "a b"}, {link, "a b"}, {"agent", "a b"}} {
			spec := script(t, "")
			spec.Argv, spec.Env = argv, []string{"PATH=/usr/bin:" + dir}
			if got := shell(t, s, spec); got != "ran a b" {
				t.Errorf("%v: %q", argv, got)
			}
		}
	})
}

func TestFailedStartIsAnErrorNotAnExit(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		bad := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(bad, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*Spec){
			"nothing":        func(s *Spec) { s.Argv = nil },
			"missing":        func(s *Spec) { s.Argv = []string{"no-such-agent"} },
			"missing path":   func(s *Spec) { s.Argv = []string{"/no/such/agent"} },
			"no interpreter": func(s *Spec) { s.Argv = []string{bad} },
			"no directory":   func(s *Spec) { s.Dir = "/no/such/dir" },
			"relative":       func(s *Spec) { s.Dir = "." },
			"the root":       func(s *Spec) { s.ReadOnly = []string{"/"} },
			"NUL":            func(s *Spec) { s.Env = append(s.Env, "A=\x00--bind") },
		} {
			spec := script(t, "true")
			change(&spec)
			if _, _, exit, err := run(t, s, spec); err == nil {
				t.Errorf("%s: it ended with %+v", name, exit)
			}
		}
	})
}

func TestExitCodesAndSignalsAreReported(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		for text, want := range map[string]Exit{
			"exit 0": {}, "exit 7": {Code: 7}, "kill -9 $$": {Code: 137, Signal: "SIGKILL"}, "kill -TERM $$": {Code: 143, Signal: "SIGTERM"},
			"exit 128": {Code: 128}, "exit 160": {Code: 160}, "exit 255": {Code: 255}, // 128 plus a number that is not a signal
		} {
			if _, _, got, err := run(t, s, script(t, text)); err != nil || got != want {
				t.Errorf("%s: %+v, %v", text, got, err)
			}
		}
	})
}

func TestStandardInputIsTheSpecsAndEnds(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		spec := script(t, "cat")
		if got := shell(t, s, spec); got != "" {
			t.Errorf("without input: %q", got)
		}
		spec.Stdin = []byte(strings.Repeat("prompt ", 100_000))
		if got := shell(t, s, spec); got != strings.TrimSpace(string(spec.Stdin)) {
			t.Errorf("%d bytes came back", len(got))
		}
		spec.Argv = []string{"true"} // it does not read its input
		shell(t, s, spec)
	})
}

func TestOutputIsNotBuffered(t *testing.T) {
	needs.All(t, "it prints 300 MB")
	both(t, func(t *testing.T, s *Sandbox) {
		p, err := s.Start(t.Context(), script(t, "yes 'a line of output' | head -c 300000000; echo done >&2"))
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, p.Stderr())
		n, err := io.Copy(io.Discard, p.Stdout())
		if err != nil || n != 300_000_000 {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			var kib int
			if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil && kib > 200<<10 {
				t.Errorf("300 MB of output made this process %d KiB large", kib)
			}
		}
	})
}

func TestNoCoreIsDumped(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		if got := shell(t, s, script(t, "ulimit -H -c")); got != "0" {
			t.Errorf("the limit is %s", got)
		}
	})
}

func TestMissingBubblewrapIsReported(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := New(t.Context(), Auto)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "install the package bubblewrap") || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
	// This fake bubblewrap fails as it does when the kernel permits no namespaces.
	dir := t.TempDir()
	fake := "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	_, err = New(t.Context(), Auto)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "No permissions") || !strings.Contains(err.Error(), "user.max_user_namespaces") {
		t.Error(err)
	}
	if _, err := New(t.Context(), "chroot"); err == nil {
		t.Error("an unknown mode was accepted")
	}
}

func TestCancelledContextEndsOrPreventsTheProgram(t *testing.T) {
	both(t, func(t *testing.T, s *Sandbox) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := s.Start(ctx, script(t, "exec sleep 1000"))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		exit, err := p.Wait()
		if err != nil || exit.Signal == "" {
			t.Errorf("%+v, %v", exit, err)
		}
		if _, err := s.Start(ctx, script(t, "true")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
