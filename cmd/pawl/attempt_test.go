package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// gated waits in the agent until the test touches $CTRL/go, once.
const gated = "touch \"$CTRL/ready\"; while [ ! -f \"$CTRL/go\" ]; do sleep 0.05; done\n"

func TestCommitsAreTheBotUsersAndOnTheThreadsBranchOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt\n", "")
	r.start()
	main := r.world.Branches(rigRepo)["main"]
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.ending(n)
	branch := fmt.Sprintf("pawl/issue-%d", n)
	got, err := r.world.Git(t.Context(), rigRepo, "log", "--format=%an|%ae|%cn|%ce|%P", "main.."+branch)
	r.must(err)
	who := regexp.MustCompile(`^pawl\[bot\]\|\d+\+pawl\[bot\]@users\.noreply\.github\.com\|pawl\[bot\]\|\d+\+pawl\[bot\]@users\.noreply\.github\.com\|` + main + "\n?$")
	if !who.MatchString(got) {
		t.Errorf("commits on the branch: %q, want one by pawl[bot] on top of %s", got, main)
	}
	for _, p := range r.world.Pushes(rigRepo) {
		if p.Branch != branch || p.Forced || p.By != "pawl[bot]" {
			t.Errorf("push %+v, want only plain pushes to %s", p, branch)
		}
	}
}

func TestAPullRequestFromTheDefaultBranchIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt\n", "")
	r.start()
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "release", Message: "Start", Files: map[string]string{"r.txt": "r"}})
	r.must(err)
	_, err = r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "main", Message: "Go on", Files: map[string]string{"m.txt": "m"}})
	r.must(err)
	n, err := r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Merge back", Body: "Back", Head: "main", Base: "release"})
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl solve")
	r.must(err)
	if s := r.ending(n); s.Rule != "default_branch" || r.calls() != 0 {
		t.Errorf("%d calls, then %s (%s %q); want none and default_branch", r.calls(), s.State, s.Rule, s.Reasons)
	}
}

func TestACommandOnAPullRequestWorksOnItsBranch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt\n", "")
	r.start()
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "feature", Message: "Start", Files: map[string]string{"f.txt": "f\n"}})
	r.must(err)
	n, err := r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Feature", Body: "A feature.", Head: "feature"})
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl solve add a line to a.txt")
	r.must(err)
	s := r.ending(n)
	text, err := r.world.File(t.Context(), rigRepo, "feature", "a.txt")
	if s.State != "done" || err != nil || text != "one\ntwo\n" {
		t.Errorf("%s (%s %q); a.txt on the branch is %q, %v; want done and the new line", s.State, s.Rule, s.Reasons, text, err)
	}
	if len(r.world.Pulls(rigRepo)) != 1 {
		t.Errorf("%d pull requests, want the one that was there", len(r.world.Pulls(rigRepo)))
	}
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		if c := r.check(r.world.Pulls(rigRepo)[0].Pull.HeadSHA, name); c.Conclusion != "success" {
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
			r.agent("cat > /dev/null; n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); echo line $n >> a.txt\n[ $n = 1 ] && exit 0\n"+gated, "")
			r.start()
			n := r.solve("Lines", "Please add a line to a.txt.")
			r.ending(n)
			branch := fmt.Sprintf("pawl/issue-%d", n)
			_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve one more")
			r.must(err)
			r.await("the agent at work", func() bool { return r.has("ready") })
			theirs, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: branch, Message: "Mine", Files: map[string]string{c.file: c.theirs}})
			r.must(err)
			r.touch("go")
			if s := r.ending(n); s.State != "done" {
				t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			for path, want := range c.want {
				if got, err := r.world.File(t.Context(), rigRepo, branch, path); err != nil || got != want {
					t.Errorf("%s on %s is %q, %v; want %q", path, branch, got, err, want)
				}
			}
			if out, err := r.world.Git(t.Context(), rigRepo, "log", "--format=%H", branch); err != nil || !strings.Contains(out, theirs) {
				t.Errorf("their commit %s is not on %s any more: %v\n%s", theirs, branch, err, out)
			}
			kept := fmt.Sprintf("pawl/kept-%d-2", n)
			if _, there := r.world.Branches(rigRepo)[kept]; there != c.kept {
				t.Errorf("branches: %v; %s is there: %v, want %v", r.world.Branches(rigRepo), kept, there, c.kept)
			}
			for _, p := range r.world.Pushes(rigRepo) {
				if p.Forced {
					t.Errorf("a force push: %+v", p)
				}
			}
			reasons := strings.Join(r.state(n).Attempts[1].Receipt.Reasons, "; ")
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
	r.agent("echo two >> a.txt; echo evil >> .github/workflows/ci.yml; echo evil > .github/workflows/new.yml\n"+
		"echo 'verify: []' >> .github/pawl.yml; rm deploy/prod.sh; mkdir -p deploy/sub; echo evil > deploy/sub/x\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	s := r.ending(n)
	changed, err := r.world.Git(t.Context(), rigRepo, "diff", "--name-only", "main", fmt.Sprintf("pawl/issue-%d", n))
	r.must(err)
	if s.State != "done" || changed != "a.txt\n" {
		t.Errorf("%s (%s); changed on the branch: %q, want only a.txt", s.State, s.Rule, changed)
	}
	left := r.state(n).Attempts[0].Receipt.LeftOut
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
			r.agent("cat > /dev/null; echo two >> a.txt; echo 'verify: []' >> .github/pawl.yml; mkdir -p deploy; echo x > deploy/x; echo 'Be brief.' > CLAUDE.md\n"+script.String(), "")
			r.start()
			n := r.solve("A second line", "Please add a second line to a.txt.")
			s := r.ending(n)
			if s.State != "done" {
				t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
			}
			out, err := r.world.Git(t.Context(), rigRepo, "diff", "--name-only", "main", fmt.Sprintf("pawl/issue-%d", n))
			r.must(err)
			want, left := []string{"CLAUDE.md", "a.txt"}, r.state(n).Attempts[0].Receipt.LeftOut
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
			if body := r.world.Pulls(rigRepo)[0].Body; !strings.HasPrefix(body, "<!-- pawl:begin -->\n**This changes what agents are told:** `CLAUDE.md`") {
				t.Errorf("the pull request begins %.200q", body)
			}
		})
	}
}

func TestWorkWithSecretsIsNotCommittedAndAPersonIsTold(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['true']\n"})
	key := "AKIA" + strings.Repeat("Q", 16)
	r.agent(saying(t, "echo two >> a.txt; mkdir -p 'd é'; printf 'x\\ny\\nid = AKIA%s\\n' QQQQQQQQQQQQQQQQ > 'd é/b.txt'\n"+
		"printf '\\000\\n-----BEGIN PRIVATE %s-----\\nMIIE\\n' KEY > c.bin; printf '%s' \"$AGENT_VALUE\" | base64 > d.txt; echo x > glpat-$(printf 'a%.0s' $(seq 20))",
		"TITLE: fix: "+key+" is the key\nIt is "+key+"."), "stream: codex, env: [AGENT_VALUE]")
	r.startProgram("AGENT_VALUE=a value that only agents get")
	n := r.solve("A second line", "Please add a second line to a.txt.")
	s := r.ending(n)
	if s.State != "stopped" || s.Rule != "secret" || len(r.world.Pushes(rigRepo)) != 0 {
		t.Fatalf("%s (%s %q) after pushes %v; want secret and none", s.State, s.Rule, s.Reasons, r.world.Pushes(rigRepo))
	}
	comment := r.world.Comments(rigRepo, n)[1].Body
	for _, want := range []string{
		"the work holds what looks like a secret", "line 3 of d é/b.txt looks like an AWS access key", "line 2 of c.bin looks like a private key",
		"line 1 of d.txt looks like a value that Pawl gave", "the name of a file looks like a GitLab token", "allow_secrets",
	} {
		if !strings.Contains(strings.ReplaceAll(comment, "`", ""), want) {
			t.Errorf("the status comment does not say %q:\n%s", want, comment)
		}
	}
	all := r.world.Comments(rigRepo, n)
	state, err := json.Marshal(r.state(n).Attempts[0].Receipt)
	r.must(err)
	for _, text := range []string{fmt.Sprint(all), string(state)} {
		if strings.Contains(text, key) || strings.Contains(text, "glpat-aaa") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	var allowed []string
	for _, l := range r.state(n).Attempts[0].Receipt.Leaks {
		allowed = append(allowed, "'"+l.Fingerprint+"'")
	}
	_, err = r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "main", Message: "Allow", Files: map[string]string{".github/pawl.yml": "verify: ['true']\nallow_secrets: [" + strings.Join(allowed, ", ") + "]\n"}})
	r.must(err)
	r.must(os.Remove(filepath.Join(r.ctrl(), "calls"))) // the agent does the same again
	r.writes(n, writer, "/pawl retry")
	r.await("the retry", func() bool { return len(r.state(n).Attempts) == 2 })
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done with what is allowed", s.State, s.Rule, s.Reasons)
	}
	subject, err := r.world.Git(t.Context(), rigRepo, "log", "-1", "--format=%B", fmt.Sprintf("pawl/issue-%d", n))
	r.must(err)
	if strings.Contains(subject, key) {
		t.Errorf("the commit says %q", subject)
	}
}

func TestAnAttemptThatChangesOnlyProtectedPathsMadeNoProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("cat > /dev/null; mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml\n", "")
	r.start()
	n := r.solve("A workflow", "Please add a workflow.")
	s := r.ending(n)
	if s.Rule != "left_out" || len(r.world.Pushes(rigRepo)) != 0 {
		t.Errorf("%s (%s %q) after pushes %v; want left_out and no push", s.State, s.Rule, s.Reasons, r.world.Pushes(rigRepo))
	}
	comment := r.world.Comments(rigRepo, n)[1].Body
	for _, want := range []string{"the agent changed only files that are left out", "attempt 1 changed nothing but `.github/workflows/ci.yml` (protected)"} {
		if !strings.Contains(comment, want) {
			t.Errorf("the status comment does not say %q:\n%s", want, comment)
		}
	}
}

func TestAnAgentThatCommitsItselfMadeProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("cat > /dev/null; echo two >> a.txt; git config user.name Eve; git config user.email eve@example.com\n"+
		"git checkout -q -b mine && git commit -qam 'My own commit' && git rev-parse HEAD > \"$CTRL/own\"\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	s := r.ending(n)
	if s.State != "done" || r.left("own") == "" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	log, err := r.world.Git(t.Context(), rigRepo, "log", "--format=%an %s", "--all")
	r.must(err)
	if strings.Contains(log, "Eve") || strings.Contains(log, "My own commit") {
		t.Errorf("the agent's commit was pushed:\n%s", log)
	}
	if text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != "one\ntwo\n" {
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
	r.agent(spy, "env: [MY_KEY]")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if found := r.left("found"); found != "" {
		t.Errorf("credentials in:\n%s", found)
	}
	for _, name := range []string{"env", "environ", "gitconfig", "remotes"} {
		for _, bad := range []string{"ghs_", "PRIVATE", "x-access-token", rigSecret, "not for the agent", r.world.WebURL()} {
			if text := r.left(name); strings.Contains(text, bad) {
				t.Errorf("%s holds %q:\n%s", name, bad, text)
			}
		}
	}
	var names []string
	for line := range strings.Lines(r.left("environ")) {
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
	if !strings.Contains(r.left("env"), "MY_KEY=for the agent") {
		t.Errorf("the variable that the backend names did not reach the agent:\n%s", r.left("env"))
	}
	home, pwd := strings.TrimSpace(r.left("home")), strings.TrimSpace(r.left("pwd"))
	if data := filepath.Join(r.dir, "data"); !strings.HasPrefix(home, data) || !strings.HasPrefix(pwd, data) || home == pwd {
		t.Errorf("HOME is %s and the checkout %s, want two folders of the attempt below %s", home, pwd, data)
	}
}

func TestInTheSandboxAnIssueIsSolvedAndAHostSecretCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	secret := filepath.Join(r.dir, "secret")
	r.must(os.WriteFile(secret, []byte("a host secret"), 0o600))
	r.agent("", "")
	// The sandbox shows no folder of the test: what the agent saw comes back in the change.
	r.must(os.WriteFile(filepath.Join(r.dir, "agent.sh"), []byte("#!/bin/sh\ncat > /dev/null\necho two >> a.txt\n"+
		"{ cat "+secret+"; cat "+filepath.Join(r.dir, "app.pem")+"; cat "+filepath.Join(r.dir, "pawl.yml")+"; cat /proc/1/environ; ls /proc | grep -c '^[0-9]'; id -u; } > seen.txt 2>&1\n"+
		"touch /usr/here 2>/dev/null && echo wrote >> seen.txt; echo kept > \"$HOME/x\" && echo home >> seen.txt\n"), 0o700))
	r.config += "sandbox: {mode: auto}\n"
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	seen, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "seen.txt")
	r.must(err)
	for _, bad := range []string{"a host secret", "PRIVATE KEY", rigSecret, "wrote"} {
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
	r.agent(gated+plainAgent, "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the agent", func() bool { _, err := os.Stat(filepath.Join(r.ctrl(), "ready")); return err == nil })
	r.must(r.world.SetRole(rigRepo, writer, "read"))
	r.must(os.WriteFile(filepath.Join(r.ctrl(), "go"), nil, 0o600))
	s := r.ending(n)
	r.settle()
	if pushes := r.world.Pushes(rigRepo); len(pushes) != 0 || r.calls() != 1 {
		t.Errorf("pushes %v after %d calls, want none", pushes, r.calls())
	}
	const why = "whoever asked for it may not write to the repository any more"
	if last := r.state(n).Attempts[0].Receipt; s.State != "stopped" || s.Rule != "revoked" || last.Outcome != "cancelled" || last.Detail != why {
		t.Errorf("%s (%s %q), the receipt %+v", s.State, s.Rule, s.Reasons, last)
	}
	t.Log(r.said(n))
	r.must(r.world.SetRole(rigRepo, writer, "write"))
	r.writes(n, writer, "/pawl solve once more")
	r.await("another attempt", func() bool { return len(r.state(n).Attempts) == 2 })
	if s := r.ending(n); s.State != "done" {
		t.Errorf("%s (%s %q), want done by who may write again", s.State, s.Rule, s.Reasons)
	}
}

// What waits for hours is begun for nobody who may not write any more.
func TestNoAttemptBeginsForWhoLostThePermissionWhileItWaited(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.config += "policy: {transient: {backoff_start: 1h, backoff_cap: 1h}}\n"
	r.agent("cat > /dev/null\n"+codexAgent+overloaded, "stream: codex")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the wait", func() bool { s := r.thread(threadName(n)); return s.State == "waiting" && s.Rule == "transient" })
	r.must(r.world.SetRole(rigRepo, writer, "read"))
	r.clock.reach(r.clock.now().Add(2 * time.Hour))
	r.await("the rule revoked", func() bool { return r.thread(threadName(n)).Rule == "revoked" })
	r.settle()
	if r.calls() != 1 {
		t.Errorf("%d calls of the agent, want none after the permission was lost", r.calls())
	}
	if said := r.said(n); !strings.Contains(said, "whoever asked for it may not write to the repository any more") {
		t.Errorf("people are told %s", said)
	}
}

func TestWhatGitsChecksRefuseEndsOneAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("cat > /dev/null; mkdir sub; printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u\\n' > sub/.gitmodules; echo two >> a.txt\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	s := r.ending(n)
	r.settle()
	if s.State != "stopped" || s.Rule != "no_progress" || r.calls() != 1 || len(r.world.Pushes(rigRepo)) != 0 {
		t.Errorf("%s (%s %q) after %d calls, want one attempt", s.State, s.Rule, s.Reasons, r.calls())
	}
	if said := r.said(n); !strings.Contains(said, "git's checks refuse it") || !strings.Contains(said, "gitmodulesUrl") {
		t.Errorf("a person is not told why:\n%s", said)
	}
}
