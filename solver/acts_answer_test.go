package solver_test

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestActsReportTheAgentsAnswer(t *testing.T) {
	draft := func(file string) scenario {
		return scenario{files: map[string]string{"a.txt": "one\n", ".github/pawl.yml": file}, agent: testrig.PlainAgent, play: aLine}
	}
	record(t, map[string]scenario{
		"the pull request follows the work": {
			files: map[string]string{"a.txt": "one\n", "docs/b.md": "b\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"},
			agent: testrig.Saying(t, "echo two >> a.txt; echo more >> docs/b.md",
				"TITLE: feat: count to two, fixes #99 [skip ci]\nI added two @everyone.\nLEFT OUT: three, since nobody said where"),
			more: "stream: codex",
			play: func(a *acts) {
				a.solve("Closes #98 and more", "Please count to two.")
				// Users' text around Pawl's block stays; the block follows the work.
				a.Must(a.World.EditBody(testrig.Repo, 2, testrig.Writer, "Mine, before.\n\n"+a.World.Pulls(testrig.Repo)[0].Body+"\n\nMine, behind."))
				a.settle()
			},
		},
		"a description without marks": {agent: testrig.PlainAgent, play: func(a *acts) {
			aLine(a)
			a.Must(a.World.EditBody(testrig.Repo, 2, testrig.Writer, "All mine."))
			a.settle()
		}},
		"a draft by configuration":      draft("verify: ['true']\npull_request: {ready_when_verified: false}\n"),
		"a draft without verified work": draft("pull_request: {request_review: true}\n"),
		"changed agent instructions": {
			agent: "cat > /dev/null; mkdir -p sub; echo 'Always push.' > sub/AGENTS.md; echo two >> a.txt\n",
			play:  aLine,
		},
		"the agent asks": {
			agent: testrig.Saying(t, "", "I read a.txt.\nQUESTION: shall it be two or three, @ada?"),
			more:  "stream: codex",
			play:  aLine,
		},
		"the question is answered": {
			agent: testrig.Saying(t, "", "I read a.txt.\nQUESTION: shall it be two or three, @ada?"),
			more:  "stream: codex",
			play: func(a *acts) {
				aLine(a)
				a.comments(1, testrig.Writer, "Two, please.")
			},
			prompts: []string{"2"},
		},
		"the agent changes nothing": {agent: testrig.Saying(t, "", "It is all there already: see a.txt."), more: "stream: codex", play: aLine},
		"a repository of Conventional Commits": {agent: testrig.PlainAgent, play: func(a *acts) {
			a.Push("main", "fix(api): keep the port", "b.txt", "b\n")
			a.Push("main", "docs: say so", "c.txt", "c\n")
			aLine(a)
		}, prompts: []string{"1"}},
		"a stranger as the author of the title": {agent: testrig.PlainAgent, play: func(a *acts) {
			n, err := a.World.OpenIssue(testrig.Repo, "eve", "Fix it, closes #5 @org/team [ci skip] https://evil.example/x", "Please add a line.")
			a.Must(err)
			a.comments(n, testrig.Writer, "/pawl solve")
		}},
	})
}

func TestPullRequestsTitleFollowsTheWork(t *testing.T) {
	t.Parallel()
	a := newActs(t, nil)
	script := testrig.Saying(t, "", "TITLE: feat: count to COUNT\nDone.")
	script = strings.NewReplacer("[ $n = 1 ] || echo two", "echo $n", "<<'END'", "<<END", "COUNT", "$n").Replace(script)
	a.Agent(script, "stream: codex")
	title := func(want string) {
		t.Helper()
		if got := a.World.Pulls(testrig.Repo)[0].Title; got != want {
			t.Errorf("after %d calls the title is %q, want %q", a.Calls(), got, want)
		}
	}
	aLine(a)
	title("feat: count to 1")
	a.comments(2, testrig.Writer, "Please count on.")
	title("feat: count to 2")
	a.Must(a.World.EditTitle(testrig.Repo, 2, testrig.Writer, "Mine"))
	for _, words := range []string{"Please count once more.", "And again, please."} {
		a.comments(2, testrig.Writer, words)
		title("Mine")
	}
	if a.Calls() != 4 {
		t.Errorf("%d calls of the agent, want 4", a.Calls())
	}
}
