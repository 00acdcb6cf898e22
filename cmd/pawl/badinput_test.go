package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// pawl runs the binary to its end and returns its exit code and what it wrote.
func pawl(t *testing.T, dir string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), pawlBinary, args...)
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
			r.must(appendTo(path, "polcy: {}\n"))
		}, nil, []string{"pawl.yml:", "polcy", "not a known key"}},
		{"a value of the wrong kind", func(r *rig, path string) {
			r.must(appendTo(path, "workers: many\n"))
		}, nil, []string{"pawl.yml:12", "workers", "many"}},
		{"no YAML at all", func(r *rig, path string) {
			r.must(os.WriteFile(path, []byte("server: [\n"), 0o600))
		}, nil, []string{"pawl.yml:"}},
		{"no configuration file", func(r *rig, path string) { r.must(os.Remove(path)) }, nil, []string{"pawl.yml", "no such file"}},
		{"no key file", func(r *rig, _ string) { r.must(os.Remove(filepath.Join(r.dir, "app.pem"))) }, nil,
			[]string{"app.pem", "no such file", "private_key_file"}},
		{"a key file without a key", func(r *rig, _ string) {
			r.must(os.WriteFile(filepath.Join(r.dir, "app.pem"), []byte("junk"), 0o600))
		}, nil, []string{"app.pem", "PEM"}},
		{"a database that is none", func(r *rig, _ string) {
			r.must(os.WriteFile(filepath.Join(r.dir, "pawl.db"), bytes.Repeat([]byte("junk"), 5000), 0o600))
		}, nil, []string{"pawl.db", "not a SQLite database"}},
		{"a database that is a directory", func(r *rig, _ string) { r.must(os.Mkdir(filepath.Join(r.dir, "pawl.db"), 0o700)) }, nil, []string{"pawl.db"}},
		{"no bubblewrap", func(r *rig, path string) {
			text, err := os.ReadFile(path)
			r.must(err)
			r.must(os.WriteFile(path, bytes.Replace(text, []byte("mode: none"), []byte("mode: auto"), 1), 0o600))
		}, []string{"PATH=/nowhere"}, []string{"bubblewrap", "install", "sandbox.mode"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.agent("exit 0\n", "")
			path := r.file()
			c.prepare(r, path)
			code, _, said := pawl(t, r.dir, c.env, "serve", "--config", path)
			if code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			for _, w := range c.want {
				if !strings.Contains(said, w) {
					t.Errorf("the message lacks %q:\n%s", w, said)
				}
			}
			if strings.Contains(said, "goroutine") || strings.Contains(said, rigSecret) {
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
	r.agent("exit 0\n", "")
	path, junk := r.file(), bytes.Repeat([]byte("junk"), 5000)
	db := filepath.Join(r.dir, "pawl.db")
	r.must(os.WriteFile(db, junk, 0o600))
	for _, command := range []string{"serve", "status"} {
		pawl(t, r.dir, nil, command, "--config", path)
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

func TestAMissingAgentIsToldAsAMisconfiguration(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"none", "auto"} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, nil)
			gone := filepath.Join(r.dir, "my-agent")
			r.must(os.WriteFile(gone, []byte("#!/bin/sh\n"), 0o700))
			r.config = "sandbox: {mode: " + mode + "}\nbackends:\n  - {name: mine, kind: command, argv: [" + gone + "]}\n"
			r.start()
			r.must(os.Remove(gone)) // else the server would not start
			n := r.solve("A second line", "Please add a second line to a.txt.")
			s := r.ending(n)
			if s.State != "stopped" || s.Rule != "misconfigured" || !strings.Contains(s.Reasons[0], gone) || s.Attempts != 1 {
				t.Errorf("%s (%s %q) after %d attempts; want stopped by misconfigured with the program's name after 1", s.State, s.Rule, s.Reasons, s.Attempts)
			}
		})
	}
}

func TestARepositoryWithoutCommitsIsToldSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.must(r.world.AddRepo(t.Context(), "acme/empty", nil))
	r.must(r.world.AddUser("eve", 1003, map[string]string{"acme/empty": "write"}))
	r.agent("exit 0\n", "")
	r.start()
	n, err := r.world.OpenIssue("acme/empty", "eve", "Begin", "Please add a file.")
	r.must(err)
	_, err = r.world.Comment("acme/empty", n, "eve", "/pawl solve")
	r.must(err)
	s := r.over(fmt.Sprintf("acme/empty#%d", n))
	r.settle()
	if s.Rule != "empty_repository" || r.calls() != 0 {
		t.Errorf("%s (%s %q) after %d calls; want empty_repository and none", s.State, s.Rule, s.Reasons, r.calls())
	}
	if c := r.world.Comments("acme/empty", n); !strings.Contains(c[len(c)-1].Body, "no commits") {
		t.Errorf("the status comment does not say why: %+v", c)
	}
}

func TestAnEmptyIssueIsAskedAbout(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt\n", "")
	r.start()
	n := r.solve("Something", "")
	s := r.ending(n)
	if s.Rule != "empty_task" || r.calls() != 0 {
		t.Errorf("%s (%s %q) after %d calls; want empty_task and none", s.State, s.Rule, s.Reasons, r.calls())
	}
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve add a line to a.txt")
	r.must(err)
	if s := r.ending(n); s.State != "done" || r.calls() != 1 {
		t.Errorf("once asked for something: %s (%s %q) after %d calls; want done after 1", s.State, s.Rule, s.Reasons, r.calls())
	}
}

func TestAnErrorInTheRepositorysConfigurationIsShownAtItsLineAndNothingRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify:\n  - true\nbackend: [mine]\n"})
	r.agent("echo two >> a.txt\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	s := r.ending(n)
	if r.calls() != 0 || s.Rule != "config_error" {
		t.Errorf("%d calls, then %s (%s %q); want none and config_error", r.calls(), s.State, s.Rule, s.Reasons)
	}
	c := r.check(r.world.Branches(rigRepo)["main"], "pawl")
	if c.Conclusion == "success" || c.Conclusion == "" || !strings.Contains(c.Summary, ".github/pawl.yml:3") || !strings.Contains(c.Summary, "backend") {
		t.Errorf("check run pawl on main: %q %q\n%s\nwant a failure that names the file, line 3 and the key", c.Conclusion, c.Title, c.Summary)
	}
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "main", Message: "Correct it",
		Files: map[string]string{".github/pawl.yml": "verify:\n  - \"true\"\n"}})
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl retry")
	r.must(err)
	if s := r.ending(n); s.State != "done" || r.calls() != 1 {
		t.Errorf("once corrected: %s (%s %q) after %d calls; want done after 1", s.State, s.Rule, s.Reasons, r.calls())
	}
}

func TestRefusedWritesEndTheRunWithoutEndlessRetries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, route, rule string
		calls             int
	}{
		{"check runs", "POST /repos/{owner}/{repo}/check-runs", "done", 1},
		{"comments", "POST /repos/{owner}/{repo}/issues/{number}/comments", "done", 1},
		{"pull requests", "POST /repos/{owner}/{repo}/pulls", "pawl_failed", 1},
		{"pushes", "POST /{owner}/{repo}.git/git-receive-pack", "pawl_failed", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.world.Inject(fakegithub.Fault{Route: c.route, Status: 403, Message: "Resource not accessible by integration", Times: -1})
			r.agent("echo two >> a.txt\n", "")
			r.start()
			n := r.solve("A second line", "Please add a second line to a.txt.")
			s := r.ending(n)
			if string(s.Rule) != c.rule || r.calls() != c.calls {
				t.Errorf("%s (%s %q) after %d calls; want %s after %d", s.State, s.Rule, s.Reasons, r.calls(), c.rule, c.calls)
			}
			before := len(r.world.Requests())
			if before > 40 {
				t.Errorf("%d requests for one run", before)
			}
		})
	}
}
