package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/local"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
)

// folder is a git repository in a folder and a configuration with one agent.
type folder struct {
	t                 *testing.T
	dir, repo, config string
}

func newLocal(t *testing.T, script string) *folder {
	t.Helper()
	dir := t.TempDir()
	l := &folder{t: t, dir: dir, repo: filepath.Join(dir, "widgets"), config: filepath.Join(dir, "pawl.yml")}
	l.write("widgets/a.txt", "one\n")
	l.write("agent.sh", "#!/bin/sh\necho x >> "+filepath.Join(dir, "calls")+"\n"+script)
	if err := os.Chmod(filepath.Join(dir, "agent.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.write("pawl.yml", fmt.Sprintf("backends:\n  - {name: mine, kind: command, argv: [%q]}\nlog: {level: error}\n", filepath.Join(dir, "agent.sh")))
	l.git("init", "-q", "-b", "main")
	l.commit("Start")
	return l
}

func (l *folder) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *folder) commit(subject string) {
	l.t.Helper()
	l.git("add", "--force", ".")
	l.git("-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-qm", subject)
}

func (l *folder) git(args ...string) string {
	l.t.Helper()
	out, err := exec.CommandContext(l.t.Context(), "git", append([]string{"-C", l.repo}, args...)...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// run runs pawl run in the repository with its own HOME.
func (l *folder) run(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	home := filepath.Join(l.dir, "home")
	args = append([]string{"run", "--config", l.config, "--backend", "mine", "--repo", l.repo, "--sandbox", "none"}, args...)
	return pawl(l.t, l.dir, []string{"HOME=" + home, "XDG_CACHE_HOME="}, args...)
}

func (l *folder) calls() int {
	b, _ := os.ReadFile(filepath.Join(l.dir, "calls"))
	return strings.Count(string(b), "\n")
}

func TestPawlRunWorksOnANewBranchAndLeavesTheFolderAlone(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt; echo 'a.txt has a second line'\n")
	l.write("widgets/untracked.txt", "mine\n")
	l.write("widgets/a.txt", "one, not committed\n")
	code, out, stderr := l.run("--task", "Add a second line to a.txt.", "--verify", "grep -q two a.txt", "--json")
	var r local.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, stderr)
	}
	if r.State != "done" || len(r.Attempts) != 1 || !r.Attempts[0].Pushed || !r.Attempts[0].Verify[0].Passed || !strings.HasPrefix(r.Branch, "pawl/run-") {
		t.Errorf("result %+v, want done after one verified attempt on a new branch", r)
	}
	if got := l.git("log", "-1", "--format=%s", r.Branch); got != "Add a second line to a.txt.\n" {
		t.Errorf("the commit's subject is %q", got)
	}
	if got := l.git("show", r.Branch+":a.txt"); got != "one\ntwo\n" {
		t.Errorf("a.txt on %s is %q", r.Branch, got)
	}
	if got := strings.TrimSpace(l.git("branch", "--show-current")); got != "main" {
		t.Errorf("the folder is on %s now", got)
	}
	if got := l.git("status", "--porcelain"); got != " M a.txt\n?? untracked.txt\n" {
		t.Errorf("the folder changed: %q", got)
	}
	if b, err := os.ReadFile(r.Attempts[0].Transcript); err != nil || !strings.Contains(string(b), "a second line") {
		t.Errorf("transcript %s: %v %q", r.Attempts[0].Transcript, err, b)
	}
}

func TestPawlRunPrintsReadableReceipts(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
	l.write("task", "Add a second line to a.txt.")
	code, out, stderr := l.run("--task-file", filepath.Join(l.dir, "task"))
	if code != exitDone || strings.ContainsAny(out, "`*") { // Markdown is only for GitHub
		t.Errorf("exit code %d\n%s%s", code, out, stderr)
	}
	for _, want := range []string{
		`^Done: not verified, no verify command$`, `^1 +mine +unverified +none ran +–`, `^Transcripts: `,
		`git diff HEAD\.\.\.pawl/run-`, `a\.txt \| 1 \+`,
	} {
		if !regexp.MustCompile("(?m)" + want).MatchString(out) {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
}

// The work is on its branch even if verification fails. A missing verify program costs no attempt, as on GitHub.
func TestPawlRunExitsZeroOnlyForVerifiedWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verify      string
		code, calls int
		want        string
	}{
		"all pass":                     {`printf "TAP version 14\n1..1\nok 1 - a\n"`, exitDone, 1, ""},
		"the work adds the first test": {`printf "TAP version 14\n1..$(grep -c two a.txt)\n"; grep -q two a.txt && echo "ok 1 - a"; true`, exitDone, 1, ""},
		"a test failed before, too": {`printf "TAP version 14\n1..1\nnot ok 1 - the old one\n"; exit 1`, exitFailed, 2,
			"not verified: 1 test still fails, as on main"},
		"no test ran": {`grep -q two a.txt || echo "ok 1 - a"; printf "TAP version 14\n1..0\n"`, exitFailed, 1,
			"not verified: 1 fewer test ran than before"},
		"verification fails": {`head -c 90 /dev/urandom | base64 | tr -dc a-zA-Z | fold -w 7 | tr '\n' ' '; grep -q three a.txt`, exitFailed, 3,
			"the task was not done: verify_failed"},
		"no such program": {"no-such-program a.txt", exitFailed, 0, "the task was not done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLocal(t, "cat > /dev/null; echo two >> a.txt; head -c 90 /dev/urandom | base64 > work.txt\n")
			code, out, stderr := l.run("--task", "Add a second line to a.txt.", "--verify", c.verify)
			if code != c.code || l.calls() != c.calls || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d after %d calls, want %d after %d and %q\n%s%s", code, l.calls(), c.code, c.calls, c.want, out, stderr)
			}
			if shown := strings.Contains(out, "git diff HEAD...pawl/run-"); shown != (c.calls > 0) {
				t.Errorf("the branch is printed: %t, want %t\n%s", shown, !shown, out)
			}
		})
	}
}

func TestPawlRunReportsTestResults(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt; head -c 90 /dev/urandom | base64 > work.txt\n")
	const verify = `echo "not ok 1 - old"
grep -q two a.txt && echo "ok 2 - mended" || echo "not ok 2 - mended"
grep -q two a.txt && echo "not ok 3 - new" || echo "ok 3 - new"
exit 1`
	code, out, stderr := l.run("--task", "Add a second line to a.txt.", "--json", "--verify", verify)
	var r local.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitFailed {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, stderr)
	}
	want := local.Tests{Fixed: []string{"mended"}, Broken: []string{"new"}, AsBefore: []string{"old"}}
	if d := cmp.Diff(want, r.Attempts[0].Tests); d != "" {
		t.Error(d)
	}
}

func TestPawlRunReusesTheLastRunsCaches(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
	// The first run's verification of the base appends its number to the cache. All later verifications print it.
	for i := range 2 {
		verify := fmt.Sprintf(`cat "$HOME/cache"; echo %d >> "$HOME/cache"`, i)
		code, out, stderr := l.run("--task", "Add a second line to a.txt.", "--verify", verify, "--json")
		var r local.Result
		err := json.Unmarshal([]byte(out), &r)
		if err != nil || code != exitDone || r.Attempts[len(r.Attempts)-1].Verify[0].Output != "0\n" {
			t.Errorf("exit code %d, %v; want 0 printed\n%s%s", code, err, out, stderr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(l.dir, "home", ".cache", "pawl", "*-*", "verify")); err != nil || len(left) > 0 {
		t.Errorf("folders left: %v, %v", left, err)
	}
}

// pawl run reports setup, because setup can take minutes without other output. A run with a cached layer does no setup.
// After a failed setup the next run tries again.
func TestPawlRunReportsSetup(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
	needed := filepath.Join(l.dir, "needed")
	const first, verifying = "setting up: echo first\nsetting up: test -e ", "\nverifying the base: true\n"
	for _, c := range []struct {
		name, file    string
		prepare       func()
		args          []string
		code          int
		want, wantNot string
	}{
		{name: "a wrong key", file: "verfy: [make]\n", code: exitFailed, want: ".github/pawl.yml:1: verfy is not a known key"},
		{name: "a setup that fails", file: fmt.Sprintf("environment: {setup: [echo  first, test -e %s], paths: [deps]}\nverify: [\"true\"]\n", needed),
			code: exitFailed, want: "setup failed"},
		{name: "once the missing file exists", prepare: func() { l.write("needed", "") }, want: first + needed + verifying},
		{name: "with a layer", want: verifying[1:], wantNot: "setting up"},
		{name: "with --json", args: []string{"--json"}, wantNot: "\n"},
	} {
		if c.file != "" {
			l.write("widgets/.github/pawl.yml", c.file)
			l.commit("Settings")
		}
		if c.prepare != nil {
			c.prepare()
		}
		code, out, stderr := l.run(append(c.args, "--task", "Add a second line to a.txt.")...)
		if code != c.code || !strings.Contains(stderr+out, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", c.name, code, c.code, c.want, out, stderr)
		}
		if c.wantNot != "" && strings.Contains(stderr, c.wantNot) {
			t.Errorf("%s: it prints %q\n%s", c.name, c.wantNot, stderr)
		}
	}
}

// started is a running pawl run in a folder.
type started struct {
	*exec.Cmd
	l   *folder
	out bytes.Buffer
}

func (l *folder) start(args ...string) *started {
	l.t.Helper()
	args = append([]string{"run", "--config", l.config, "--backend", "mine", "--repo", l.repo, "--task", "Change a.txt."}, args...)
	s := &started{Cmd: exec.Command(testrig.Program, args...), l: l}
	text, err := os.Create(filepath.Join(l.dir, "stderr"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer text.Close()
	s.Stdout, s.Stderr = &s.out, text
	s.Env = append(os.Environ(), "HOME="+filepath.Join(l.dir, "home"), "XDG_CACHE_HOME=")
	s.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.Start(); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// interrupt sends SIGINT, as Ctrl-C does.
func (s *started) interrupt() {
	s.l.t.Helper()
	if err := s.Process.Signal(os.Interrupt); err != nil {
		s.l.t.Fatal(err)
	}
}

// ends waits for the end and returns the exit code.
func (s *started) ends() int {
	_ = s.Wait() // the caller checks the exit code
	return s.ProcessState.ExitCode()
}

// stderr returns the standard error output so far.
func (s *started) stderr() string {
	text, _ := os.ReadFile(filepath.Join(s.l.dir, "stderr"))
	return string(text)
}

// until waits until a file of the folder contains a text, and returns the file's content.
func (l *folder) until(file, text string) string {
	l.t.Helper()
	for deadline := time.Now().Add(testrig.Patience); ; time.Sleep(20 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(l.dir, file))
		if strings.Contains(string(b), text) {
			return string(b)
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s does not contain %q: %q", file, text, b)
		}
	}
}

// left fails for each process of the folder's agent that still runs.
func (l *folder) left() {
	l.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, file := range all {
		line, _ := os.ReadFile(file)
		if strings.Contains(string(line), l.dir) {
			l.t.Errorf("process left: %s %q", file, line)
		}
	}
}

// Ctrl-C keeps the work so far on the branch, even if the agent ignores SIGTERM.
func TestCtrlCKeepsTheWorkSoFar(t *testing.T) {
	t.Parallel()
	const change = "cat > /dev/null; echo two >> a.txt\n"
	const begun = "trap '' TERM; echo begun; echo $$ > \"$0.pid\"; tail -f \"$0\" & wait; wait\n"
	const now = "agent.sh.pid"
	sandboxed := []string{"--sandbox", "auto"}
	for name, c := range map[string]struct {
		script   string
		args     []string
		at, when string // the file to watch, and the text that triggers the interrupt
		twice    bool
		kept     bool
		want     string
	}{
		"while working":              {change + begun, nil, now, "\n", false, true, "pawl: interrupted\n"},
		"while working, with --json": {change + begun, []string{"--json"}, now, "\n", false, true, "pawl: interrupted\n"},
		"before a change":            {begun, nil, now, "\n", false, false, "pawl: interrupted before any file was changed\n"},
		"twice":                      {begun, nil, now, "\n", true, false, ""},
		"in the sandbox":             {change + begun, sandboxed, "stderr", "  begun\n", false, true, "pawl: interrupted\n"},
		"in the sandbox twice":       {begun, sandboxed, "stderr", "  begun\n", true, false, ""},
		"while a command verifies": {
			change, []string{"--verify", `if grep -q two a.txt; then tail -f a.txt; fi`}, "stderr", "verifying the change", false, true, "pawl: interrupted\n",
		},
		"while it waits": {
			"cat > /dev/null; echo \"Error: 429 Too Many Requests: rate limit reached, try again in 300 seconds.\" >&2; exit 1\n", nil,
			"stderr", "Waiting: the provider refuses requests for now, ", false, false, "pawl: interrupted before any file was changed\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if slices.Equal(c.args, sandboxed) {
				needs.Program(t, "bwrap")
			}
			l := newLocal(t, c.script)
			s := l.start(append([]string{"--sandbox", "none"}, c.args...)...)
			l.until(c.at, c.when)
			s.interrupt()
			if c.twice {
				l.until("stderr", "Ctrl-C again to exit at once")
				s.interrupt()
			}
			if code := s.ends(); code != exitInterrupted || !strings.Contains(s.stderr(), c.want) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, exitInterrupted, c.want, &s.out, s.stderr())
			}
			l.left()
			branches := strings.Fields(l.git("for-each-ref", "--format=%(refname)", "refs/heads/pawl", "refs/pawl"))
			if kept := len(branches) == 1; kept != c.kept {
				t.Fatalf("the branches are %v; the work is kept: %t, want %t", branches, kept, c.kept)
			}
			if c.kept && l.git("show", branches[0]+":a.txt") != "one\ntwo\n" {
				t.Errorf("%s has a different a.txt", branches[0])
			}
			if !slices.Contains(c.args, "--json") {
				return
			}
			var r local.Result
			if err := json.Unmarshal(s.out.Bytes(), &r); err != nil || !r.Interrupted {
				t.Errorf("%v, interrupted: %t\n%s", err, r.Interrupted, &s.out)
			}
		})
	}
}

// The attempt of a killed agent ends, even if the agent's children keep its output open.
func TestPawlRunReportsAKilledAgent(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; tail -f \"$0\" & echo $$ > \"$0.pid\"; wait\n")
	s := l.start("--sandbox", "none", "--verify", "true")
	var pid int
	if _, err := fmt.Sscan(l.until("agent.sh.pid", "\n"), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := s.ends(); code != exitFailed || !strings.Contains(s.stderr(), "\nAttempt 1 ended: killed\n  ") {
		t.Errorf("exit code %d\n%s", code, s.stderr())
	}
	l.left()
}

func TestPawlRunShowsProgressWithoutLog(t *testing.T) {
	t.Parallel()
	const structured = `printf '%s\n' '{"type":"assistant","message":{"content":[{"type":"text","text":"I look first."},{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}'
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"Done."}'
`
	for name, c := range map[string]struct {
		script, stream string
		args           []string
		want           string
	}{
		"a plain program":        {"echo I look first.; echo half >&2\n", "", nil, "  I look first.\n  half\n"},
		"an agent CLI":           {structured, "claude", nil, "  I look first.\n  $ ls\n"},
		"an agent CLI, --quiet":  {structured, "claude", []string{"--quiet"}, ""},
		"a plain program, quiet": {"echo I look first.\n", "", []string{"-q"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n"+c.script)
			config := fmt.Sprintf("backends:\n  - {name: mine, kind: command, argv: [%q], stream: %q}\n", filepath.Join(l.dir, "agent.sh"), c.stream)
			l.write("pawl.yml", strings.ReplaceAll(config, `, stream: ""`, ""))
			l.write("widgets/a.txt", "not committed\n")
			l.write("widgets/new/b.txt", "new\n")
			code, out, stderr := l.run(append([]string{"--task", "Change a.txt.", "--verify", "true"}, c.args...)...)
			lines := strings.SplitAfter(stderr, "\n")
			slices.Sort(lines) // Pawl reads both output streams concurrently, so the order varies
			want := strings.SplitAfter("2 files have uncommitted changes; the agent does not see them\nverifying the base: true\nAttempt 1 on mine\n"+
				c.want+"verifying the change: true\nAttempt 1 ended: unverified\n", "\n")
			slices.Sort(want)
			if d := cmp.Diff(want, lines); d != "" || code != exitDone {
				t.Errorf("exit code %d\n%s\n%s", code, d, out)
			}
		})
	}
}
