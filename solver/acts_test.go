package solver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// scenario is a sequence of events on GitHub with a scripted agent. A golden file holds Pawl's acts.
type scenario struct {
	files       map[string]string
	config      string // added to the server's configuration
	agent, more string
	options     func(*fakegithub.Options)
	prompts     []string // numbers of the prompts to record as well
	play        func(a *acts)
}

// record plays scenarios and compares each with its golden file.
func record(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	t.Parallel()
	for name, sc := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t, sc.files, sc.options)
			a.Agent(sc.agent, sc.more)
			a.Config += sc.config
			a.Must(a.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
			a.Must(a.World.AddUser("eve", 1004, nil))
			a.World.AddOtherApp("github-actions", 15368)
			sc.play(a)
			a.isAsRecorded(name, sc.prompts...)
		})
	}
}

// verified has the files of a repository whose verify command requires a second line.
var verified = map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"}

// aLine requests a second line in an issue.
func aLine(a *acts) { a.solve("A second line", "Please add a second line to a.txt.") }

// pull opens a pull request by the writer from a branch with these files.
func (a *acts) pull(branch string, files map[string]string) int {
	a.T.Helper()
	_, err := a.World.PushCommit(a.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: branch, Message: "Begin", Files: files})
	a.Must(err)
	n, err := a.World.OpenPull(a.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Work", Body: "Begins.", Head: branch})
	a.Must(err)
	return n
}

func TestActsOfAnAttempt(t *testing.T) {
	const counting = "cat > /dev/null; n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); echo line $n >> a.txt\n"
	pushed := func(file, theirs string) func(a *acts) {
		return func(a *acts) {
			n := a.solve("Lines", "Please add a line to a.txt.")
			a.during(func() { a.Push(fmt.Sprintf("pawl/issue-%d", n), "Mine", file, theirs) })
			a.comments(n, testrig.Writer, "/pawl solve one more")
		}
	}
	record(t, map[string]scenario{
		"solve": {agent: testrig.PlainAgent, play: aLine},
		"a command on a pull request": {agent: testrig.PlainAgent, play: func(a *acts) {
			a.comments(a.pull("feature", map[string]string{"f.txt": "f\n"}), testrig.Writer, "/pawl solve add a line to a.txt")
		}},
		"a pull request from the default branch": {agent: testrig.PlainAgent, play: func(a *acts) {
			a.Push("release", "Start", "r.txt", "r")
			a.Push("main", "Go on", "m.txt", "m")
			merge := fakegithub.PullRequest{Title: "Merge back", Body: "Back", Head: "main", Base: "release"}
			n, err := a.World.OpenPull(a.T.Context(), testrig.Repo, testrig.Writer, merge)
			a.Must(err)
			a.comments(n, testrig.Writer, "/pawl solve")
		}},
		"a push during the attempt that fits":      {agent: counting, play: pushed("their.txt", "theirs\n")},
		"a push during the attempt that conflicts": {agent: counting, play: pushed("a.txt", "one\nline 1\ntheirs\n")},
		"only protected files": {
			agent: "cat > /dev/null; mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml\n",
			play:  aLine,
		},
		"some protected files": {
			files: map[string]string{
				"a.txt":                    "one\n",
				".github/workflows/ci.yml": "on: push\n",
				"deploy/prod.sh":           "#!/bin/sh\n",
				".github/pawl.yml":         "protected_paths: [deploy]\n",
			},
			agent: "echo two >> a.txt; echo evil >> .github/workflows/ci.yml; echo evil > .github/workflows/new.yml\n" +
				"echo 'verify: []' >> .github/pawl.yml; rm deploy/prod.sh; mkdir -p deploy/sub; echo evil > deploy/sub/x\n",
			play: aLine,
		},
		"commits by the agent": {
			agent: "cat > /dev/null; echo two >> a.txt; git config user.name Eve; git config user.email eve@example.com\n" +
				"git checkout -q -b mine && git commit -qam 'My own commit'\n",
			play: aLine,
		},
		"files of Git LFS": {
			files: map[string]string{
				"a.txt":          "one\n",
				".gitattributes": "*.png filter=lfs diff=lfs merge=lfs -text\n",
				"logo.png":       "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("2d", 32) + "\nsize 10\n",
			},
			agent: "cat > /dev/null; echo raw > logo.png; echo raw > new.png; echo two >> a.txt\n",
			play:  aLine,
		},
		"refused by git": {
			agent: "cat > /dev/null; mkdir sub; printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u\\n' > sub/.gitmodules; echo two >> a.txt\n",
			play:  aLine,
		},
		"permission lost during the attempt": {agent: testrig.PlainAgent, play: func(a *acts) {
			a.during(func() { a.Must(a.World.SetRole(testrig.Repo, testrig.Writer, "read")) })
			aLine(a)
			if pushes := a.World.Pushes(testrig.Repo); len(pushes) != 0 {
				a.T.Errorf("pushed for a user without write permission: %v", pushes)
			}
			a.Must(a.World.SetRole(testrig.Repo, testrig.Writer, "write"))
			a.comments(1, testrig.Writer, "/pawl solve once more")
		}},
		"permission lost during a wait": {
			config: "policy: {transient: {backoff_start: 1h, backoff_cap: 1h}}\n",
			agent: testrig.CodexAgent + `echo '{"type":"error","message":"We are currently experiencing high demand."}'
echo '{"type":"turn.failed","error":{"message":"We are currently experiencing high demand."}}'
exit 1
`,
			more: "stream: codex",
			play: func(a *acts) {
				aLine(a)
				a.Must(a.World.SetRole(testrig.Repo, testrig.Writer, "read"))
				a.pass(2 * time.Hour)
			},
		},
		"the only branch is deleted during the attempt": {agent: testrig.PlainAgent, play: func(a *acts) {
			a.during(func() { a.Git("update-ref", "-d", "refs/heads/main") })
			aLine(a)
		}},
	})
}

func TestEscalateAndUseChooseTheBackend(t *testing.T) {
	t.Parallel()
	a := newActs(t, nil)
	a.Agent("cat > /dev/null; echo \"$PAWL_EFFORT\" >> \"$CTRL/efforts\"\nif [ \"$PAWL_EFFORT\" = high ]; then echo two >> a.txt; fi\n",
		"effort: low, escalated_effort: high")
	other := strings.Replace(a.Config, "backends:\n", "", 1)
	a.Config += strings.Replace(other, "name: mine", "name: other", 1)
	aLine(a)
	a.comments(1, testrig.Writer, "/pawl use other")
	a.comments(1, testrig.Reader, "/pawl use mine")
	if a.Calls() != 1 {
		t.Errorf("%d calls of the agent, want 1: choosing a backend is not work", a.Calls())
	}
	a.comments(1, testrig.Writer, "/pawl escalate")
	attempts := a.state(1).Attempts
	if got := attempts[len(attempts)-1].Backend; got != "other" || a.Left("efforts") != "low\nhigh\n" {
		t.Errorf("efforts %q, the last on %s; want high on other", a.Left("efforts"), got)
	}
}
