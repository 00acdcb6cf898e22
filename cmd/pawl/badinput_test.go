package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// pawl runs the binary to its end and returns its exit code and what it wrote.
func pawl(t *testing.T, dir string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testrig.Program, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestServeRefusesWhatItCannotWorkWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(r *rig, path string) // of the configuration
		env     []string
		want    []string // in the message
	}{
		{"an unknown key", func(r *rig, path string) {
			r.Must(appendTo(path, "polcy: {}\n"))
		}, nil, []string{"pawl.yml:", "polcy", "not a known key"}},
		{"a value of the wrong kind", func(r *rig, path string) {
			r.Must(appendTo(path, "workers: many\n"))
		}, nil, []string{"pawl.yml:12", "workers", "many"}},
		{"no YAML at all", func(r *rig, path string) {
			r.Must(os.WriteFile(path, []byte("server: [\n"), 0o600))
		}, nil, []string{"pawl.yml:"}},
		{"no configuration file", func(r *rig, path string) { r.Must(os.Remove(path)) }, nil, []string{"pawl.yml", "no such file"}},
		{"no key file", func(r *rig, _ string) { r.Must(os.Remove(filepath.Join(r.Dir, "app.pem"))) }, nil,
			[]string{"app.pem", "no such file", "private_key_file"}},
		{"a key file without a key", func(r *rig, _ string) {
			r.Must(os.WriteFile(filepath.Join(r.Dir, "app.pem"), []byte("junk"), 0o600))
		}, nil, []string{"app.pem", "PEM"}},
		{"a database that is none", func(r *rig, _ string) {
			r.Must(os.WriteFile(filepath.Join(r.Dir, "pawl.db"), bytes.Repeat([]byte("junk"), 5000), 0o600))
		}, nil, []string{"pawl.db", "not a SQLite database"}},
		{"a database that is a directory", func(r *rig, _ string) { r.Must(os.Mkdir(filepath.Join(r.Dir, "pawl.db"), 0o700)) }, nil, []string{"pawl.db"}},
		{"no bubblewrap", func(r *rig, path string) {
			text, err := os.ReadFile(path)
			r.Must(err)
			r.Must(os.WriteFile(path, bytes.Replace(text, []byte("mode: none"), []byte("mode: auto"), 1), 0o600))
		}, []string{"PATH=/nowhere"}, []string{"bubblewrap", "install", "sandbox.mode"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.Agent("exit 0\n", "")
			path := r.File()
			c.prepare(r, path)
			code, _, said := pawl(t, r.Dir, c.env, "serve", "--config", path)
			if code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			for _, w := range c.want {
				if !strings.Contains(said, w) {
					t.Errorf("the message lacks %q:\n%s", w, said)
				}
			}
			if strings.Contains(said, "goroutine") || strings.Contains(said, testrig.Secret) {
				t.Errorf("the message is no message:\n%s", said)
			}
		})
	}
}

func appendTo(path, text string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, text...), 0o600)
}

func TestAFileThatIsNoDatabaseIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("exit 0\n", "")
	path, junk := r.File(), bytes.Repeat([]byte("junk"), 5000)
	db := filepath.Join(r.Dir, "pawl.db")
	r.Must(os.WriteFile(db, junk, 0o600))
	for _, command := range []string{"serve", "status"} {
		pawl(t, r.Dir, nil, command, "--config", path)
		if got, err := os.ReadFile(db); err != nil || !bytes.Equal(got, junk) {
			t.Errorf("pawl %s changed the file: %v", command, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want int
	}{
		{"version", exitDone}, {"version --json", exitDone}, {"--help", exitDone}, {"serve --help", exitDone},
		{"frobnicate", exitUsage}, {"serve", exitUsage}, {"status", exitUsage}, {"serve --config a b", exitUsage}, {"version --frob", exitUsage},
		{"run", exitUsage}, {"run --task a --task-file b", exitUsage}, {"run --task a --backend nonsense --repo REPO", exitUsage},
		{"run --task a --repo .", exitUsage}, {"run --task a --sandbox some --repo REPO", exitUsage}, {"run --task a --config /nowhere/pawl.yml --repo REPO", exitFailed},
		{"serve --config /nowhere/pawl.yml", exitFailed}, {"status --config /nowhere/pawl.yml", exitFailed},
	} {
		t.Run(c.args, func(t *testing.T) {
			repo := t.TempDir()
			if err := os.Mkdir(filepath.Join(repo, ".git"), 0o700); err != nil {
				t.Fatal(err)
			}
			args := strings.Fields(strings.ReplaceAll(c.args, "REPO", repo))
			code, out, said := pawl(t, t.TempDir(), []string{"HOME=" + t.TempDir()}, args...)
			if code != c.want {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.want, out, said)
			}
			if (code == exitDone) != (out != "") || (code == exitDone) == (said != "") {
				t.Errorf("results belong on standard output, errors on standard error:\nout: %s\nerr: %s", out, said)
			}
		})
	}
}

func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	code, out, _ := pawl(t, t.TempDir(), nil, "version", "--json")
	var v struct{ Version, Commit, Go string }
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitDone || v.Version == "" || !strings.HasPrefix(v.Go, "go1.") {
		t.Errorf("exit code %d, %q: %v", code, out, err)
	}
}
