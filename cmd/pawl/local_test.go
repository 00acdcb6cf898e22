package main

import (
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

	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// local is a git repository in a folder and a configuration with one agent.
type local struct {
	t                 *testing.T
	dir, repo, config string
}

func newLocal(t *testing.T, script string) *local {
	t.Helper()
	dir := t.TempDir()
	l := &local{t: t, dir: dir, repo: filepath.Join(dir, "widgets"), config: filepath.Join(dir, "pawl.yml")}
	l.write("widgets/a.txt", "one\n")
	l.write("agent.sh", "#!/bin/sh\necho x >> "+filepath.Join(dir, "calls")+"\n"+script)
	if err := os.Chmod(filepath.Join(dir, "agent.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.write("pawl.yml", fmt.Sprintf("backends:\n  - {name: mine, kind: command, argv: [%q]}\nlog: {level: error}\n", filepath.Join(dir, "agent.sh")))
	for _, args := range []string{"init -q -b main", "add .", "-c user.name=ada -c user.email=ada@example.com commit -qm Start"} {
		l.git(strings.Fields(args)...)
	}
	return l
}

func (l *local) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// commit commits all that is in the repository.
func (l *local) commit(subject string) {
	l.t.Helper()
	l.git("add", "--force", ".")
	l.git("-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-qm", subject)
}

func (l *local) git(args ...string) string {
	l.t.Helper()
	out, err := exec.CommandContext(l.t.Context(), "git", append([]string{"-C", l.repo}, args...)...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// run runs pawl run in the repository with a home of its own.
func (l *local) run(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	home := filepath.Join(l.dir, "home")
	args = append([]string{"run", "--config", l.config, "--backend", "mine", "--repo", l.repo, "--sandbox", "none"}, args...)
	return pawl(l.t, l.dir, []string{"HOME=" + home, "XDG_CACHE_HOME="}, args...)
}

func (l *local) calls() int {
	b, _ := os.ReadFile(filepath.Join(l.dir, "calls"))
	return strings.Count(string(b), "\n")
}

func TestPawlRunWorksOnANewBranchAndLeavesTheFolderAlone(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt; echo 'a.txt has a second line'\n")
	l.write("widgets/untracked.txt", "mine\n")
	l.write("widgets/a.txt", "one, not committed\n")
	code, out, said := l.run("--task", "Add a second line to a.txt.", "--verify", "grep -q two a.txt", "--json")
	var r runResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	if r.State != "done" || len(r.Attempts) != 1 || !r.Attempts[0].Pushed || !r.Attempts[0].Verify[0].Passed || !strings.HasPrefix(r.Branch, "pawl/run-") {
		t.Errorf("receipts %+v, want done after one verified attempt on a new branch", r)
	}
	if got := l.git("log", "-1", "--format=%s", r.Branch); got != "feat: Add a second line to a.txt.\n" {
		t.Errorf("the commit is called %q", got)
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

func TestPawlRunPrintsReceiptsForPeople(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
	l.write("task", "Add a second line to a.txt.")
	code, out, said := l.run("--task-file", filepath.Join(l.dir, "task"))
	if code != exitDone || !strings.Contains(out, "git diff HEAD...pawl/run-") || !strings.Contains(out, "Transcripts: ") || !strings.Contains(out, "a.txt | 1 +") {
		t.Errorf("exit code %d\n%s%s", code, out, said)
	}
	if !regexp.MustCompile(`(?m)^Done: unverified, no verify commands$`).MatchString(out) || !regexp.MustCompile(`(?m)^1 +mine +completed, edited +none ran +–`).MatchString(out) || strings.ContainsAny(out, "`*") {
		t.Errorf("it speaks to GitHub, or does not say how it ended:\n%s", out)
	}
}

// Also where nothing failed but what failed before.
func TestPawlRunExitsZeroOnlyWhereTheWorkIsVerified(t *testing.T) {
	t.Parallel()
	for verify, want := range map[string]struct {
		code int
		says string
	}{
		`printf "TAP version 14\n1..1\nok 1 - a\n"`:                             {exitDone, ""},
		`printf "TAP version 14\n1..1\nnot ok 1 - the old one\n"; exit 1`:       {exitFailed, "not verified: 1 test fails as it did before"},
		`grep -q two a.txt || echo "ok 1 - a"; printf "TAP version 14\n1..0\n"`: {exitFailed, "not verified: unverified, no test ran"},
	} {
		l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
		code, out, said := l.run("--task", "Add a second line to a.txt.", "--verify", verify)
		if code != want.code || !strings.Contains(said, want.says) || !strings.Contains(out, "git diff HEAD...pawl/run-") {
			t.Errorf("%s: exit code %d\n%s%s", verify, code, out, said)
		}
	}
}

func TestPawlRunSaysWhatBecameOfTheTests(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt; head -c 90 /dev/urandom | base64 > work.txt\n")
	code, out, said := l.run("--task", "Add a second line to a.txt.", "--json", "--verify", `echo "not ok 1 - old"; grep -q two a.txt && echo "ok 2 - mended" || echo "not ok 2 - mended"; grep -q two a.txt && echo "not ok 3 - new" || echo "ok 3 - new"; exit 1`)
	var r runResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitFailed {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	if d := cmp.Diff(runTests{Fixed: []string{"mended"}, Broken: []string{"new"}, AsBefore: []string{"old"}}, r.Attempts[0].Tests); d != "" {
		t.Error(d)
	}
}

// Nobody can ask for it in a comment. A program that is missing costs no attempt, as at GitHub.
func TestPawlRunMayAddTheFirstTest(t *testing.T) {
	t.Parallel()
	for verify, want := range map[string]struct{ code, calls int }{
		`printf "TAP version 14\n1..$(grep -c two a.txt)\n"; grep -q two a.txt && echo "ok 1 - a"; true`: {exitDone, 1},
		"no-such-program a.txt": {exitFailed, 0},
	} {
		l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
		if code, out, said := l.run("--task", "Add the first test.", "--verify", verify); code != want.code || l.calls() != want.calls {
			t.Errorf("%s: exit code %d after %d calls\n%s%s", verify, code, l.calls(), out, said)
		}
	}
}

func TestPawlRunFindsTheCachesOfTheRunBefore(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
	// The first run's verification of the base leaves its number, which all that follow print.
	for i := range 2 {
		code, out, said := l.run("--task", "Add a second line to a.txt.", "--verify", fmt.Sprintf(`cat "$HOME/cache"; echo %d >> "$HOME/cache"`, i), "--json")
		var r runResult
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDone || r.Attempts[len(r.Attempts)-1].Verify[0].Output != "0\n" {
			t.Errorf("exit code %d, %v; want 0 printed\n%s%s", code, err, out, said)
		}
	}
	if left, err := filepath.Glob(filepath.Join(l.dir, "home", ".cache", "pawl", "*-*", "verify")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Setup may take minutes in which nothing else is seen. A run that finds its layer has none.
func TestPawlRunTellsWhatItSetsUp(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
	l.write("widgets/.github/pawl.yml", "environment: {setup: [echo  first, echo second], paths: [deps]}\nverify: [\"true\"]\n")
	l.git("add", ".")
	l.git("-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-qm", "A file")
	const told = "setting up: echo first\nsetting up: echo second\nverifying the base: true\n"
	if code, out, said := l.run("--task", "Add a second line to a.txt."); code != exitDone || !strings.Contains(said, told) {
		t.Errorf("exit code %d\n%s%s\nwant %s", code, out, said, told)
	}
	if code, out, said := l.run("--task", "Add a second line to a.txt."); code != exitDone || strings.Contains(said, "setting up") {
		t.Errorf("with a layer: exit code %d\n%s%s", code, out, said)
	}
	if code, out, said := l.run("--task", "Add a second line to a.txt.", "--json"); code != exitDone || said != "" {
		t.Errorf("with --json: exit code %d\n%s%s", code, out, said)
	}
}

func TestPawlRunFailsWhereTheVerificationDoes(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; head -c 90 /dev/urandom | base64 >> a.txt\n")
	code, out, said := l.run("--task", "Add the word.", "--verify", "head -c 90 /dev/urandom | base64 | tr -dc a-zA-Z | fold -w 7 | tr '\\n' ' '; echo; grep -q theword a.txt", "--json")
	var r runResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, out, said)
	}
	if code != exitFailed || r.State != "stopped" || r.Rule != "verify_failed" || l.calls() != 3 {
		t.Errorf("exit code %d, %s (%s) after %d calls; want 1, stopped by verify_failed after 3", code, r.State, r.Rule, l.calls())
	}
	if last := r.Attempts[len(r.Attempts)-1]; last.Outcome != policy.VerifyFailed || last.Verify[0].Exit != 1 {
		t.Errorf("the last receipt: %+v", last)
	}
}

func TestPawlRunEndsItsAgentWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "")
	l.write("agent.sh", "#!/bin/sh\necho $$ > "+filepath.Join(l.dir, "pid")+"\nexec sleep 600\n")
	cmd := exec.Command(testrig.Program, "run", "--config", l.config, "--backend", "mine", "--repo", l.repo, "--sandbox", "none", "--task", "Sleep.")
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(l.dir, "home"), "XDG_CACHE_HOME=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for deadline := time.Now().Add(testrig.Patience); pid == 0; time.Sleep(20 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(l.dir, "pid"))
		if _, err := fmt.Sscan(string(b), &pid); err != nil && time.Now().After(deadline) {
			t.Fatal("the agent was not started")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("the agent, process %d, is left", pid)
	}
}

func TestPawlStatusOfAnEmptyDatabaseAndBesideAServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	path := r.File()
	if code, _, said := pawl(t, r.Dir, nil, "status", "--config", path); code != exitFailed || !strings.Contains(said, "pawl serve") {
		t.Errorf("without a database: exit code %d, %q; want a hint", code, said)
	}
	r.Start()
	code, out, said := pawl(t, r.Dir, nil, "status", "--config", path)
	if code != exitDone || !strings.Contains(out, "No thread") || !strings.Contains(out, "backend mine") {
		t.Errorf("with an empty database: exit code %d\n%s%s", code, out, said)
	}
	code, out, _ = pawl(t, r.Dir, nil, "status", "--json", "--config", path)
	var s status.Report
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != exitDone || s.Threads == nil || s.Breakers == nil || s.Cooldowns == nil || len(s.Backends) != 1 {
		t.Errorf("exit code %d, %v; want empty lists\n%s", code, err, out)
	}
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Ending(n)
	if code, out, _ := pawl(t, r.Dir, nil, "status", "--config", path); code != exitDone || !strings.Contains(out, testrig.ThreadName(n)) || !strings.Contains(out, "Done: unverified") {
		t.Errorf("beside the server: exit code %d\n%s", code, out)
	}
	r.Stop(syscall.SIGTERM)
	if code, out, _ := pawl(t, r.Dir, nil, "status", "--config", path); code != exitDone || !strings.Contains(out, testrig.ThreadName(n)) {
		t.Errorf("after the server: exit code %d\n%s", code, out)
	}
	if a := r.State(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.Edited {
		t.Errorf("attempts %+v", a)
	}
}

func TestRunsHaveFoldersOfTheirOwnAndKeepThemWhileTheyWork(t *testing.T) {
	t.Parallel()
	cache, now := filepath.Join(t.TempDir(), "pawl"), time.Date(2026, 3, 4, 14, 3, 0, 0, time.UTC)
	var dirs []string
	for i := range runsKept + 3 {
		if i == runsKept {
			now = now.Add(time.Second)
		}
		dir, err := newRun(t.Context(), cache, now)
		if err != nil || slices.Contains(dirs, dir) {
			t.Fatalf("run %d: %s, %v", i, dir, err)
		}
		dirs = append(dirs, dir)
		if i == 0 {
			db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, runDatabase), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
		}
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(left) != runsKept+2 || left[0] != dirs[0] || !slices.Contains(left, dirs[len(dirs)-1]) {
		t.Errorf("%v, %v are left of %v", left, err, dirs)
	}
}

func TestPawlRunTriesASetupAgainThatFailedAndNamesWhatIsWrongWithAFile(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt\n")
	commit := func(settings string) {
		l.write("widgets/.github/pawl.yml", settings)
		l.git("add", ".")
		l.git("-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-qm", "Settings")
	}
	commit("verfy: [make]\n")
	if code, out, _ := l.run("--task", "x"); code == exitDone || !strings.Contains(out, ".github/pawl.yml:1: verfy is not a known key") {
		t.Errorf("a wrong key: exit code %d\n%s", code, out)
	}
	needed := filepath.Join(l.dir, "needed")
	commit(fmt.Sprintf("environment: {setup: ['test -e %s']}\n", needed))
	if code, out, _ := l.run("--task", "x"); code == exitDone || !strings.Contains(out, "setup failed") {
		t.Errorf("a setup that fails: exit code %d\n%s", code, out)
	}
	l.write("needed", "")
	if code, out, said := l.run("--task", "x"); code != exitDone {
		t.Errorf("once it has what it needs: exit code %d\n%s%s", code, out, said)
	}
}
