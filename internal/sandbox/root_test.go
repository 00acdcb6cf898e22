package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
)

// newRoot returns a root with the given programs of this machine, their loader and libraries, and the given files.
func newRoot(t *testing.T, programs []string, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range programs {
		path := needs.Program(t, name)
		copyTo(t, path, filepath.Join(root, "bin", filepath.Base(name)))
		listed, _ := exec.Command("ldd", path).Output() // fails for static programs
		for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(listed), -1) {
			copyTo(t, library, filepath.Join(root, library))
		}
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestRootReplacesTheHostsFiles(t *testing.T) {
	s := in(t, Auto)
	spec := script(t, `only-here
cat /etc/release /usr/lib/own
test -e /usr/bin/env || echo no env
command -v git || echo no git
{ echo x >/bin/new; } 2>/dev/null || echo read-only
{ echo x >/new; } 2>/dev/null || echo read-only
cat /etc/passwd /usr/lib/os-release >/dev/null && echo shown
echo x >file && echo x >"$HOME/file" && echo writable`)
	spec.Root = newRoot(t, []string{"sh", "cat"}, map[string]string{
		"bin/only-here": "#!/bin/sh\necho the image\n", "etc/release": "image 1\n", "etc/passwd": "of the image\n", "usr/lib/own": "own\n",
	})
	spec.Env = append(spec.Env, "HOME="+spec.Home)
	spec.ReadOnly = []string{"/usr/lib/os-release"} // next to the image's files
	want := "the image\nimage 1\nown\nno env\nno git\nread-only\nread-only\nshown\nwritable"
	if got := shell(t, s, spec); got != want {
		t.Errorf("inside:\n%s\nwant:\n%s", got, want)
	}
}

func TestLinksInARootCannotReachTheHost(t *testing.T) {
	s := in(t, Auto)
	victim := t.TempDir()
	spec := script(t, "echo $(cat /etc/passwd >/dev/null && echo ran)")
	spec.Root = newRoot(t, []string{"sh", "cat"}, nil)
	// While bubblewrap mounts, the host's files are at /oldroot.
	for _, link := range []string{"tmp", "var", "run", "opt", "home", "etc"} {
		if err := os.Symlink("/oldroot"+victim, filepath.Join(spec.Root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := shell(t, s, spec); got != "ran" {
		t.Errorf("inside: %q", got)
	}
	if made, err := os.ReadDir(victim); err != nil || len(made) > 0 {
		t.Errorf("on the host: %v %v", made, err)
	}
}

func TestHostProgramRunsInARoot(t *testing.T) {
	s := in(t, Auto)
	root := newRoot(t, []string{"sh", "cat"}, map[string]string{"bin/tool": "#!/bin/sh\necho tool of the image\n"})
	host := t.TempDir()
	write(t, filepath.Join(host, "agent"), "#!/bin/sh\ntool; echo \"$0 $1\"; cat\n")
	spec := script(t, "")
	spec.Root, spec.HostPath, spec.Argv, spec.Stdin = root, host, []string{"agent", "argument"}, []byte("the task")
	if got, want := shell(t, s, spec), "tool of the image\n/opt/pawl/2/agent argument\nthe task"; got != want {
		t.Errorf("inside: %q, want %q", got, want)
	}
	spec.ReadOnly = []string{host}
	if got := shell(t, s, spec); !strings.Contains(got, host+"/agent argument") {
		t.Errorf("a program in a visible folder was moved: %q", got)
	}
}

func TestNodeCLIRunsWithTheHostsNodeInARoot(t *testing.T) {
	s := in(t, Auto)
	needs.Program(t, "node")
	root := newRoot(t, []string{"sh", "node"}, nil)
	if err := os.Remove(filepath.Join(root, "bin/node")); err != nil { // keep its libraries
		t.Fatal(err)
	}
	host := t.TempDir()
	write(t, filepath.Join(host, "lib/node_modules/cli/bin/cli.js"), "#!/usr/bin/env -S node --no-warnings\nconsole.log(require('beside'), process.argv[2], process.execPath, process.execArgv[0])\n")
	write(t, filepath.Join(host, "lib/node_modules/beside/index.js"), "module.exports = 'a package'\n")
	if err := os.Symlink("lib/node_modules/cli/bin/cli.js", filepath.Join(host, "cli")); err != nil {
		t.Fatal(err)
	}
	spec := script(t, "")
	spec.Root, spec.HostPath, spec.Argv = root, host+":"+os.Getenv("PATH"), []string{"cli", "argument"}
	if got := shell(t, s, spec); got != "a package argument /opt/pawl/2/node --no-warnings" {
		t.Errorf("inside: %q", got)
	}
}

func TestProgramThatCannotRunInARootIsRefused(t *testing.T) {
	s := in(t, Auto)
	whole := newRoot(t, []string{"sh"}, nil)
	foreign, old := t.TempDir(), newRoot(t, []string{"sh"}, nil)
	libraries, err := filepath.Glob(old + "/lib/*/libc.so.6")
	if err != nil || len(libraries) != 1 {
		t.Skipf("needs a Debian: %v %v", libraries, err)
	}
	write(t, libraries[0], "of long ago\x00GLIBC_2.0\x00")
	host := t.TempDir()
	write(t, filepath.Join(host, "agent"), "#!/bin/no-such-shell\n")
	for name, c := range map[string]struct {
		root, path string
		argv       []string
		want       string
	}{
		"another loader":       {foreign, os.Getenv("PATH"), []string{"sh", "-c", "true"}, "cannot run in the image, which lacks /lib"},
		"an older library":     {old, os.Getenv("PATH"), []string{"sh", "-c", "true"}, " of libc.so.6: use an image with glibc"},
		"no interpreter":       {whole, host, []string{"agent"}, "is a script for /bin/no-such-shell, which the image lacks"},
		"no program":           {whole, "", []string{"/bin/cat"}, "the image has no such program"},
		"no program in PATH":   {whole, "", []string{"git"}, "the image has no such program"},
		"no agent on the host": {whole, host, []string{"codex"}, "install it"},
	} {
		spec := script(t, "")
		spec.Root, spec.HostPath, spec.Argv = c.root, c.path, c.argv
		if _, err := s.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	spec := script(t, "true")
	spec.Root = whole
	if _, err := in(t, None).Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "without a sandbox there is no image") {
		t.Errorf("mode none: %v", err)
	}
}

func TestLinksInARootAreResolvedInsideIt(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "usr/bin/sh"), "inside")
	for name, target := range map[string]string{"bin": "/usr/bin", "out": "../../../../etc", "etc": "usr"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Has(root, "/bin/bash"); err == nil || Has(root, "/bin/sh") != nil {
		t.Errorf("%v", err)
	}
	for path, want := range map[string]string{"/bin/sh": "inside", "/out/bin/sh": "inside", "/out/passwd": ""} {
		f, err := OpenIn(root, path)
		if want == "" && err == nil || want != "" && err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			text, _ := io.ReadAll(f)
			f.Close()
			if string(text) != want {
				t.Errorf("%s: %q", path, text)
			}
		}
	}
}
