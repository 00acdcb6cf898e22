package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestCommitsAreTheBotUsersAndOnTheThreadsBranchOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.Start()
	main := r.World.Branches(testrig.Repo)["main"]
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Ending(n)
	branch := fmt.Sprintf("pawl/issue-%d", n)
	got, err := r.World.Git(t.Context(), testrig.Repo, "log", "--format=%an|%ae|%cn|%ce|%P", "main.."+branch)
	r.Must(err)
	who := regexp.MustCompile(`^pawl\[bot\]\|\d+\+pawl\[bot\]@users\.noreply\.github\.com\|pawl\[bot\]\|\d+\+pawl\[bot\]@users\.noreply\.github\.com\|` + main + "\n?$")
	if !who.MatchString(got) {
		t.Errorf("commits on the branch: %q, want one by pawl[bot] on top of %s", got, main)
	}
	for _, p := range r.World.Pushes(testrig.Repo) {
		if p.Branch != branch || p.Forced || p.By != "pawl[bot]" {
			t.Errorf("push %+v, want only plain pushes to %s", p, branch)
		}
	}
}

func TestAPullRequestFromTheDefaultBranchIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.Start()
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "release", Message: "Start", Files: map[string]string{"r.txt": "r"}})
	r.Must(err)
	_, err = r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "main", Message: "Go on", Files: map[string]string{"m.txt": "m"}})
	r.Must(err)
	n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Merge back", Body: "Back", Head: "main", Base: "release"})
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
	r.Must(err)
	if s := r.Ending(n); s.Rule != "default_branch" || r.Calls() != 0 {
		t.Errorf("%d calls, then %s (%s %q); want none and default_branch", r.Calls(), s.State, s.Rule, s.Reasons)
	}
}

func TestACommandOnAPullRequestWorksOnItsBranch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.Start()
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "feature", Message: "Start", Files: map[string]string{"f.txt": "f\n"}})
	r.Must(err)
	n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Feature", Body: "A feature.", Head: "feature"})
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve add a line to a.txt")
	r.Must(err)
	s := r.Ending(n)
	text, err := r.World.File(t.Context(), testrig.Repo, "feature", "a.txt")
	if s.State != "done" || err != nil || text != "one\ntwo\n" {
		t.Errorf("%s (%s %q); a.txt on the branch is %q, %v; want done and the new line", s.State, s.Rule, s.Reasons, text, err)
	}
	if len(r.World.Pulls(testrig.Repo)) != 1 {
		t.Errorf("%d pull requests, want the one that was there", len(r.World.Pulls(testrig.Repo)))
	}
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		if c := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, name); c.Conclusion != "success" {
			t.Errorf("check run %s on the new head: %q, want success", name, c.Conclusion)
		}
	}
}

func TestWhatSomebodyPushedDuringTheAttemptIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, theirs string
		want               map[string]string // on the thread's branch at the end
		kept               bool
	}{
		{"merged where both fit", "their.txt", "theirs\n", map[string]string{"their.txt": "theirs\n", "a.txt": "one\nline 1\nline 2\n"}, false},
		{"kept apart and done again where they conflict", "a.txt", "one\nline 1\ntheirs\n", map[string]string{"a.txt": "one\nline 1\ntheirs\nline 3\n"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.Agent("cat > /dev/null; n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); echo line $n >> a.txt\n[ $n = 1 ] && exit 0\n"+testrig.Gated, "")
			r.Start()
			n := r.Solve("Lines", "Please add a line to a.txt.")
			r.Ending(n)
			branch := fmt.Sprintf("pawl/issue-%d", n)
			_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve one more")
			r.Must(err)
			r.Await("the agent at work", func() bool { return r.Has("ready") })
			theirs, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: branch, Message: "Mine", Files: map[string]string{c.file: c.theirs}})
			r.Must(err)
			r.Touch("go")
			if s := r.Ending(n); s.State != "done" {
				t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			for path, want := range c.want {
				if got, err := r.World.File(t.Context(), testrig.Repo, branch, path); err != nil || got != want {
					t.Errorf("%s on %s is %q, %v; want %q", path, branch, got, err, want)
				}
			}
			if out, err := r.World.Git(t.Context(), testrig.Repo, "log", "--format=%H", branch); err != nil || !strings.Contains(out, theirs) {
				t.Errorf("their commit %s is not on %s any more: %v\n%s", theirs, branch, err, out)
			}
			kept := fmt.Sprintf("pawl/kept-%d-2", n)
			if _, there := r.World.Branches(testrig.Repo)[kept]; there != c.kept {
				t.Errorf("branches: %v; %s is there: %v, want %v", r.World.Branches(testrig.Repo), kept, there, c.kept)
			}
			for _, p := range r.World.Pushes(testrig.Repo) {
				if p.Forced {
					t.Errorf("a force push: %+v", p)
				}
			}
			reasons := strings.Join(r.State(n).Attempts[1].Receipt.Reasons, "; ")
			if !strings.Contains(reasons, "somebody pushed to "+branch) {
				t.Errorf("the receipt does not tell of the push: %s", reasons)
			}
		})
	}
}

func TestProtectedPathsAreLeftOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{
		"a.txt": "one\n", ".github/workflows/ci.yml": "on: push\n", "deploy/prod.sh": "#!/bin/sh\n",
		".github/pawl.yml": "protected_paths: [deploy]\n",
	})
	r.Agent("echo two >> a.txt; echo evil >> .github/workflows/ci.yml; echo evil > .github/workflows/new.yml\n"+
		"echo 'verify: []' >> .github/pawl.yml; rm deploy/prod.sh; mkdir -p deploy/sub; echo evil > deploy/sub/x\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	changed, err := r.World.Git(t.Context(), testrig.Repo, "diff", "--name-only", "main", fmt.Sprintf("pawl/issue-%d", n))
	r.Must(err)
	if s.State != "done" || changed != "a.txt\n" {
		t.Errorf("%s (%s); changed on the branch: %q, want only a.txt", s.State, s.Rule, changed)
	}
	left := r.State(n).Attempts[0].Receipt.LeftOut
	for _, path := range []string{".github/workflows/ci.yml", ".github/workflows/new.yml", ".github/pawl.yml", "deploy/prod.sh", "deploy/sub/x"} {
		if !slices.Contains(left, path+" (protected)") {
			t.Errorf("the receipt does not say that %s was left out: %q", path, left)
		}
	}
}

// TestEachProtectedPathIsLeftOutUnlessTheRepositoryAllowsIt has an agent write every file that is protected by default,
// in the root and in a folder.
func TestEachProtectedPathIsLeftOutUnlessTheRepositoryAllowsIt(t *testing.T) {
	t.Parallel()
	paths := strings.Fields(".github/workflows/x.yml .github/actions/a/action.yml CODEOWNERS .github/CODEOWNERS docs/CODEOWNERS .github/dependabot.yml .claude/settings.json sub/.claude/commands/x.md " +
		".codex/config.toml .gemini/settings.json .opencode/a.js opencode.json sub/opencode.jsonc .qwen/settings.json .mcp.json .husky/pre-commit .devcontainer/devcontainer.json .devcontainer.json .vscode/tasks.json " +
		".gitattributes sub/.gitattributes .gitmodules .lfsconfig .npmrc sub/.npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc pip.conf pip.ini uv.toml bunfig.toml .bundle/config .gemrc .mvn/maven.config nuget.config .condarc .cargo/config.toml")
	for name, allow := range map[string]string{"by default": "", "allowed": "allow_paths: ['**/*']\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths := paths
			if allow != "" {
				paths = paths[1:] // GitHub itself refuses workflows of an App that lacks the permission
			}
			var script strings.Builder
			for _, p := range paths {
				fmt.Fprintf(&script, "mkdir -p '%s'; echo '# evil' > '%s'\n", filepath.Dir(p), p)
			}
			r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "protected_paths: [deploy]\n" + allow})
			r.Agent("cat > /dev/null; echo two >> a.txt; echo 'verify: []' >> .github/pawl.yml; mkdir -p deploy; echo x > deploy/x; echo 'Be brief.' > CLAUDE.md\n"+script.String(), "")
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			s := r.Ending(n)
			if s.State != "done" {
				t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
			}
			out, err := r.World.Git(t.Context(), testrig.Repo, "diff", "--name-only", "main", fmt.Sprintf("pawl/issue-%d", n))
			r.Must(err)
			want, left := []string{"CLAUDE.md", "a.txt"}, r.State(n).Attempts[0].Receipt.LeftOut
			if allow != "" {
				want = append(want, paths...)
			}
			slices.Sort(want)
			if got := strings.Fields(out); !slices.Equal(got, want) {
				t.Errorf("changed on the branch: %q, want %q", got, want)
			}
			for _, p := range append(paths, ".github/pawl.yml", "deploy/x") {
				always := p == ".github/pawl.yml" || p == "deploy/x"
				if said := slices.Contains(left, p+" (protected)"); said != (allow == "" || always) {
					t.Errorf("that %s was left out is said: %v", p, said)
				}
			}
			if body := r.World.Pulls(testrig.Repo)[0].Body; !strings.HasPrefix(body, "<!-- pawl:begin -->\n**This changes what agents are told:** `CLAUDE.md`") {
				t.Errorf("the pull request begins %.200q", body)
			}
		})
	}
}

func TestAnAttemptThatChangesOnlyProtectedPathsMadeNoProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml\n", "")
	r.Start()
	n := r.Solve("A workflow", "Please add a workflow.")
	s := r.Ending(n)
	if s.Rule != "left_out" || len(r.World.Pushes(testrig.Repo)) != 0 {
		t.Errorf("%s (%s %q) after pushes %v; want left_out and no push", s.State, s.Rule, s.Reasons, r.World.Pushes(testrig.Repo))
	}
	comment := r.World.Comments(testrig.Repo, n)[1].Body
	for _, want := range []string{"the agent changed only files that are left out", "attempt 1 changed nothing but `.github/workflows/ci.yml` (protected)"} {
		if !strings.Contains(comment, want) {
			t.Errorf("the status comment does not say %q:\n%s", want, comment)
		}
	}
}

func TestAnAgentThatCommitsItselfMadeProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt; git config user.name Eve; git config user.email eve@example.com\n"+
		"git checkout -q -b mine && git commit -qam 'My own commit' && git rev-parse HEAD > \"$CTRL/own\"\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	if s.State != "done" || r.Left("own") == "" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	log, err := r.World.Git(t.Context(), testrig.Repo, "log", "--format=%an %s", "--all")
	r.Must(err)
	if strings.Contains(log, "Eve") || strings.Contains(log, "My own commit") {
		t.Errorf("the agent's commit was pushed:\n%s", log)
	}
	if text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\ntwo\n" {
		t.Errorf("a.txt on the branch is %q, %v", text, err)
	}
}

// spy dumps all that an agent can look at in its own surroundings.
const spy = `cat > /dev/null
env > "$CTRL/env"
tr '\0' '\n' < /proc/self/environ > "$CTRL/environ"
cat .git/config > "$CTRL/gitconfig"
git remote -v > "$CTRL/remotes"
{ grep -rlE 'ghs_|BEGIN [A-Z ]*PRIVATE KEY|x-access-token' . "$HOME" .git 2>/dev/null; for p in /proc/[0-9]*; do tr '\0' '\n' < $p/cmdline 2>/dev/null | grep -E 'ghs_|x-access-token'; done; } > "$CTRL/found"
echo "$HOME" > "$CTRL/home"; pwd > "$CTRL/pwd"
echo two >> a.txt
`

func TestNoCredentialIsWithinTheAgentsReach(t *testing.T) {
	t.Setenv("MY_KEY", "for the agent")
	t.Setenv("OTHER_KEY", "not for the agent")
	r := newRig(t, nil)
	r.Agent(spy, "env: [MY_KEY]")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if found := r.Left("found"); found != "" {
		t.Errorf("credentials in:\n%s", found)
	}
	for _, name := range []string{"env", "environ", "gitconfig", "remotes"} {
		for _, bad := range []string{"ghs_", "PRIVATE", "x-access-token", testrig.Secret, "not for the agent", r.World.WebURL()} {
			if text := r.Left(name); strings.Contains(text, bad) {
				t.Errorf("%s holds %q:\n%s", name, bad, text)
			}
		}
	}
	var names []string
	for line := range strings.Lines(r.Left("environ")) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"HOME", "LANG", "MY_KEY", "PATH", "PAWL_ATTEMPT", "PAWL_EFFORT", "PAWL_PROCESS", "PAWL_RUNG", "PAWL_THREAD", "PWD", "TERM", "TZ"}
	for _, name := range names {
		if !slices.Contains(want, name) && name != "_" && name != "OLDPWD" && name != "SHLVL" {
			t.Errorf("variable %s reached the agent, want only %v", name, want)
		}
	}
	if !strings.Contains(r.Left("env"), "MY_KEY=for the agent") {
		t.Errorf("the variable that the backend names did not reach the agent:\n%s", r.Left("env"))
	}
	home, pwd := strings.TrimSpace(r.Left("home")), strings.TrimSpace(r.Left("pwd"))
	if data := filepath.Join(r.Dir, "data"); !strings.HasPrefix(home, data) || !strings.HasPrefix(pwd, data) || home == pwd {
		t.Errorf("HOME is %s and the checkout %s, want two folders of the attempt below %s", home, pwd, data)
	}
}

func TestInTheSandboxAnIssueIsSolvedAndAHostSecretCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	secret := filepath.Join(r.Dir, "secret")
	r.Must(os.WriteFile(secret, []byte("a host secret"), 0o600))
	r.Agent("", "")
	// The sandbox shows no folder of the test: what the agent saw comes back in the change.
	r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte("#!/bin/sh\ncat > /dev/null\necho two >> a.txt\n"+
		"{ cat "+secret+"; cat "+filepath.Join(r.Dir, "app.pem")+"; cat "+filepath.Join(r.Dir, "pawl.yml")+"; cat /proc/1/environ; ls /proc | grep -c '^[0-9]'; id -u; } > seen.txt 2>&1\n"+
		"touch /usr/here 2>/dev/null && echo wrote >> seen.txt; echo kept > \"$HOME/x\" && echo home >> seen.txt\n"), 0o700))
	r.Config += "sandbox: {mode: auto}\n"
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	seen, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "seen.txt")
	r.Must(err)
	for _, bad := range []string{"a host secret", "PRIVATE KEY", testrig.Secret, "wrote"} {
		if strings.Contains(seen, bad) {
			t.Errorf("the agent got %q:\n%s", bad, seen)
		}
	}
	if !strings.Contains(seen, "No such file") || !strings.HasSuffix(seen, "home\n") {
		t.Errorf("the agent saw\n%s\nwant no such files, and a home to write to", seen)
	}
}

func TestWhoLostThePermissionGetsNothingPushed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.Gated+testrig.PlainAgent, "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent", func() bool { _, err := os.Stat(filepath.Join(r.Ctrl(), "ready")); return err == nil })
	r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "read"))
	r.Must(os.WriteFile(filepath.Join(r.Ctrl(), "go"), nil, 0o600))
	s := r.Ending(n)
	r.Settle()
	if pushes := r.World.Pushes(testrig.Repo); len(pushes) != 0 || r.Calls() != 1 {
		t.Errorf("pushes %v after %d calls, want none", pushes, r.Calls())
	}
	const why = "whoever asked for it may not write to the repository any more"
	if last := r.State(n).Attempts[0].Receipt; s.State != "stopped" || s.Rule != "revoked" || last.Outcome != "cancelled" || last.Detail != why {
		t.Errorf("%s (%s %q), the receipt %+v", s.State, s.Rule, s.Reasons, last)
	}
	t.Log(r.Said(n))
	r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "write"))
	r.Writes(n, testrig.Writer, "/pawl solve once more")
	r.Await("another attempt", func() bool { return len(r.State(n).Attempts) == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done by who may write again", s.State, s.Rule, s.Reasons)
	}
}

// What waits for hours is begun for nobody who may not write any more.
func TestNoAttemptBeginsForWhoLostThePermissionWhileItWaited(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config += "policy: {transient: {backoff_start: 1h, backoff_cap: 1h}}\n"
	r.Agent("cat > /dev/null\n"+testrig.CodexAgent+overloaded, "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the wait", func() bool {
		s := r.Thread(testrig.ThreadName(n))
		return s.State == "waiting" && s.Rule == "transient"
	})
	r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "read"))
	r.Clock.Reach(r.Clock.Now().Add(2 * time.Hour))
	r.Await("the rule revoked", func() bool { return r.Thread(testrig.ThreadName(n)).Rule == "revoked" })
	r.Settle()
	if r.Calls() != 1 {
		t.Errorf("%d calls of the agent, want none after the permission was lost", r.Calls())
	}
	if said := r.Said(n); !strings.Contains(said, "whoever asked for it may not write to the repository any more") {
		t.Errorf("people are told %s", said)
	}
}

func TestWhatGitsChecksRefuseEndsOneAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; mkdir sub; printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u\\n' > sub/.gitmodules; echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	r.Settle()
	if s.State != "stopped" || s.Rule != "no_progress" || r.Calls() != 1 || len(r.World.Pushes(testrig.Repo)) != 0 {
		t.Errorf("%s (%s %q) after %d calls, want one attempt", s.State, s.Rule, s.Reasons, r.Calls())
	}
	if said := r.Said(n); !strings.Contains(said, "git's checks refuse it") || !strings.Contains(said, "gitmodulesUrl") {
		t.Errorf("a person is not told why:\n%s", said)
	}
}
