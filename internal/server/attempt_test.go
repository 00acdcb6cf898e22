package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestProtectedPathsAreLeftOut(t *testing.T) {
	t.Parallel()
	paths := strings.Fields(".github/workflows/x.yml .github/actions/a/action.yml CODEOWNERS .github/CODEOWNERS docs/CODEOWNERS .github/dependabot.yml .claude/settings.json sub/.claude/commands/x.md " +
		".codex/config.toml .gemini/settings.json .opencode/a.js opencode.json sub/opencode.jsonc .qwen/settings.json .mcp.json .husky/pre-commit .devcontainer/devcontainer.json .devcontainer.json .vscode/tasks.json " +
		".gitattributes sub/.gitattributes .gitmodules .lfsconfig .npmrc sub/.npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc pip.conf pip.ini uv.toml bunfig.toml .bundle/config .gemrc .mvn/maven.config nuget.config .condarc .cargo/config.toml")
	for name, allow := range map[string]string{"by default": "", "allowed": "allow_paths: ['**/*']\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths := paths
			if allow != "" {
				paths = paths[1:] // GitHub itself refuses workflows without the permission
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
				if named := slices.Contains(left, p+" (protected)"); named != (allow == "" || always) {
					t.Errorf("the omission of %s is reported: %v", p, named)
				}
			}
			if body := r.World.Pulls(testrig.Repo)[0].Body; !strings.HasPrefix(body, "<!-- pawl:begin -->\n**This changes the agents' instructions:** `CLAUDE.md`") {
				t.Errorf("the pull request begins %.200q", body)
			}
		})
	}
}

const spy = `cat > /dev/null
env > "$CTRL/env"
tr '\0' '\n' < /proc/self/environ > "$CTRL/environ"
cat .git/config > "$CTRL/gitconfig"
git remote -v > "$CTRL/remotes"
{ grep -rlE 'ghs_|BEGIN [A-Z ]*PRIVATE KEY|x-access-token' . "$HOME" .git 2>/dev/null; for p in /proc/[0-9]*; do tr '\0' '\n' < $p/cmdline 2>/dev/null | grep -E 'ghs_|x-access-token'; done; } > "$CTRL/found"
echo "$HOME" > "$CTRL/home"; pwd > "$CTRL/pwd"
echo two >> a.txt
`

func TestAgentReachesNoCredential(t *testing.T) {
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
				t.Errorf("%s contains %q:\n%s", name, bad, text)
			}
		}
	}
	var names []string
	for line := range strings.Lines(r.Left("environ")) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"HOME", "LANG", "LOGNAME", "MY_KEY", "PATH", "PAWL_ATTEMPT", "PAWL_EFFORT", "PAWL_PROCESS", "PAWL_RUNG", "PAWL_THREAD", "PWD", "TERM", "TZ", "USER",
		"CHECKPOINT_DISABLE", "DO_NOT_TRACK", "DOTNET_CLI_TELEMETRY_OPTOUT", "GH_NO_UPDATE_NOTIFIER", "NEXT_TELEMETRY_DISABLED",
		"NO_UPDATE_NOTIFIER", "NPM_CONFIG_UPDATE_NOTIFIER", "PIP_DISABLE_PIP_VERSION_CHECK"}
	for _, name := range names {
		if !slices.Contains(want, name) && name != "_" && name != "OLDPWD" && name != "SHLVL" {
			t.Errorf("variable %s reached the agent, want only %v", name, want)
		}
	}
	if !strings.Contains(r.Left("env"), "MY_KEY=for the agent") {
		t.Errorf("the backend's variable did not reach the agent:\n%s", r.Left("env"))
	}
	home, pwd := strings.TrimSpace(r.Left("home")), strings.TrimSpace(r.Left("pwd"))
	if data := filepath.Join(r.Dir, "data"); !strings.HasPrefix(home, data) || !strings.HasPrefix(pwd, data) || home == pwd {
		t.Errorf("HOME is %s and the checkout %s, want two folders of the attempt below %s", home, pwd, data)
	}
}

func TestSandboxedAgentSolvesAndReadsNoHostSecret(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	secret := filepath.Join(r.Dir, "secret")
	r.Must(os.WriteFile(secret, []byte("a host secret"), 0o600))
	r.Agent("", "")
	// The sandbox shows no folder of the test, so the agent reports through its change.
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
		t.Errorf("the agent saw\n%s\nwant no such files, and a writable home folder", seen)
	}
}
