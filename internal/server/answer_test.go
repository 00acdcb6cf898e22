package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestThePullRequestSaysWhatIsTrueNow(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", "docs/b.md": "b\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
	r.Agent(testrig.Saying(t, "echo two >> a.txt; echo more >> docs/b.md", "TITLE: feat: count to two, fixes #99 [skip ci]\nI added two @everyone.\nLEFT OUT: three, since nobody said where"), "stream: codex")
	r.Start()
	n := r.Solve("Closes #98 and more", "Please count to two.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	pull := r.World.Pulls(testrig.Repo)[0]
	if pull.Title != "feat: count to two, fixes 99 (skip ci)" || pull.Pull.Draft || !slices.Equal(pull.Pull.Asked, []string{testrig.Writer}) {
		t.Errorf("the pull request is %q, draft %v, %q were asked for a review", pull.Title, pull.Pull.Draft, pull.Pull.Asked)
	}
	for _, want := range []string{fmt.Sprintf("Closes #%d\n", n), "I added two  everyone.", "- `.`: 1 file, +1 −0", "- `docs`: 1 file, +1 −0", "verification by `grep -q two a.txt`: passed", "the agent left out: three, since nobody said where"} {
		if !strings.Contains(pull.Body, want) {
			t.Errorf("the description lacks %q:\n%s", want, pull.Body)
		}
	}
	message, err := r.World.Git(t.Context(), testrig.Repo, "log", "-1", "--format=%B", "pawl/issue-1")
	r.Must(err)
	if !strings.HasPrefix(message, "feat: count to two, fixes 99 (skip ci)\n\nAttempt 1 by backend mine.\n\nRefs: #1\n") {
		t.Errorf("the commit says %q", message)
	}
	// What people write around it stays, and the rest follows the work.
	r.Must(r.World.EditBody(testrig.Repo, pull.Number, testrig.Writer, "Mine, before.\n\n"+pull.Body+"\n\nMine, behind."))
	r.Await("an attempt, since the description's content changed", func() bool { return len(r.State(n).Attempts) == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	body := r.World.Pulls(testrig.Repo)[0].Body
	if !strings.HasPrefix(body, "Mine, before.\n\n<!-- pawl:begin") || !strings.HasSuffix(body, "pawl:end -->\n\nMine, behind.") || !strings.Contains(body, "- attempt 2 by") ||
		!strings.Contains(body, "- `.`: 1 file, +2 −0") {
		t.Errorf("after the second attempt the description is\n%s", body)
	}
	// Without its marks nothing of Pawl's comes back.
	r.Must(r.World.EditBody(testrig.Repo, pull.Number, testrig.Writer, "All mine."))
	r.Await("the third attempt", func() bool { return len(r.State(n).Attempts) == 3 })
	r.Ending(n)
	if body := r.World.Pulls(testrig.Repo)[0].Body; body != "All mine." {
		t.Errorf("the description is\n%s", body)
	}
}

func TestThePullRequestsTitleFollowsTheWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	event := `{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"TITLE: feat: count to %s\\nDone."}}`
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); echo $n >> a.txt\ncat <<END\n"+strings.Join([]string{
		`{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}`, `{"type":"turn.started"}`, fmt.Sprintf(event, "$n"),
		`{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}`}, "\n")+"\nEND\n", "stream: codex")
	r.Start()
	n, pull := r.Solved()
	again := func(words, want string) {
		t.Helper()
		_, err := r.World.Comment(testrig.Repo, pull, testrig.Writer, words)
		r.Must(err)
		before := r.Calls()
		r.Await("another attempt", func() bool { return r.Calls() == before+1 })
		r.Ending(n)
		if got := r.World.Pulls(testrig.Repo)[0].Title; got != want {
			t.Errorf("after %q the title is %q, want %q", words, got, want)
		}
	}
	if got := r.World.Pulls(testrig.Repo)[0].Title; got != "feat: count to 1" {
		t.Errorf("the title is %q", got)
	}
	again("Please count on.", "feat: count to 2")
	r.Must(r.World.EditTitle(testrig.Repo, pull, testrig.Writer, "Mine"))
	again("Please count once more.", "Mine")
	again("And again, please.", "Mine")
}

func TestAPullRequestStaysADraftWhereTheRepositorySaysSoOrNothingIsVerified(t *testing.T) {
	t.Parallel()
	for file, asked := range map[string][]string{
		"verify: ['true']\npull_request: {ready_when_verified: false}\n": {testrig.Writer},
		"pull_request: {request_review: true}\n":                         nil,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": file})
			r.Agent(testrig.PlainAgent, "")
			r.Start()
			n := r.Solve("A line", "Please add a line.")
			if s := r.Ending(n); s.State != "done" {
				t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
			}
			if p := r.World.Pulls(testrig.Repo)[0].Pull; !p.Draft || !slices.Equal(p.Asked, asked) {
				t.Errorf("draft %v, %q were asked for a review; want a draft and %q", p.Draft, p.Asked, asked)
			}
		})
	}
}

func TestAnAgentMayAskAndAnAnswerGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.Saying(t, "", "I read a.txt.\nQUESTION: shall it be two or three, @ada?"), "stream: codex")
	r.Start()
	n := r.Solve("A number", "Please add a number to a.txt.")
	s := r.Ending(n)
	if s.Rule != "question" || r.Calls() != 1 {
		t.Fatalf("%d calls, then %s (%s %q)", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	comment := r.StatusComment(n)
	for _, want := range []string{"Stopped: the agent asks: shall it be two or three, ", "Answer in a comment; the work then goes on.", "What the agent says:\n\n```text\nI read a.txt.\n```"} {
		if !strings.Contains(comment, want) {
			t.Errorf("the status comment lacks %q:\n%s", want, comment)
		}
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "Two, please.")
	r.Must(err)
	r.Await("the second attempt", func() bool { return len(r.State(n).Attempts) == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	if p := r.Prompt("2"); !strings.Contains(p, "Two, please.") || !strings.Contains(p, "The last attempt asked") || !strings.Contains(p, "shall it be two or three") {
		t.Errorf("the second prompt is\n%s", p)
	}
}

func TestWithoutAPullRequestTheAgentsWordsStandInTheComment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.Saying(t, "", "It is all there already: see a.txt."), "stream: codex")
	r.Start()
	n := r.Solve("A line", "Please look whether a line is there.")
	r.Ending(n)
	if c := r.StatusComment(n); !strings.Contains(c, "What the agent says:\n\n```text\nIt is all there already: see a.txt.\n```") || len(r.World.Pulls(testrig.Repo)) != 0 {
		t.Errorf("the status comment is\n%s", c)
	}
}

func TestAStrangersTitleStandsNowhereAsItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Must(r.World.AddUser("eve", 1004, nil))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, "eve", "Fix it, closes #5 @org/team [ci skip] https://evil.example/x", "Please add a line.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
	r.Must(err)
	r.Ending(n)
	message, err := r.World.Git(t.Context(), testrig.Repo, "log", "-1", "--format=%s", fmt.Sprintf("pawl/issue-%d", n))
	r.Must(err)
	want := "fix: Fix it, closes 5 org/team (ci skip)"
	if title := r.World.Pulls(testrig.Repo)[0].Title; title != want || strings.TrimSpace(message) != want {
		t.Errorf("the pull request is %q and the commit %q, want %q", title, message, want)
	}
}

func TestAChangeOfWhatAgentsAreToldStandsFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; mkdir -p sub; echo 'Always push.' > sub/AGENTS.md; echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	body := r.World.Pulls(testrig.Repo)[0].Body
	if first, _, _ := strings.Cut(strings.TrimPrefix(body, "<!-- pawl:begin -->\n"), "\n"); first != "**This changes what agents are told:** `sub/AGENTS.md`" {
		t.Errorf("the pull request begins %q", first)
	}
}
