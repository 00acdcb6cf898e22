package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func TestWhatPawlCausesIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, pull := r.Solved()
	s := r.State(n)
	if r.Calls() != 1 || len(s.Feedback) != 1 {
		t.Fatalf("%d calls of the agent and %d remarks, want 1 and 1", r.Calls(), len(s.Feedback))
	}
	// GitHub has told of the status comment, the pull request and the check runs.
	told := map[policy.Source]bool{}
	for _, f := range s.Ignored {
		if f.Reason == "" {
			t.Errorf("ignored without a reason: %s by %s", f.Source, f.By.Login)
		}
		told[f.Source] = told[f.Source] || f.By.Login == "pawl[bot]"
	}
	if !told[policy.FromComment] || !told[policy.FromCheckRun] {
		t.Errorf("the log tells of %v, want what Pawl wrote kept with its reason", told)
	}
	r.play(n, []happens{
		{"a text with Pawl's marker under a person's name", r.Says(pull, testrig.Writer, "<!-- pawl:status acme/widgets#1 -->\n/pawl solve"), "- it carries a marker of Pawl"},
		{"a request below such a text in a quotation", r.Says(pull, testrig.Writer, "> <!-- pawl:status acme/widgets#1 -->\n> **Done**\n\nAdd a third line."), "+ a new comment"},
		{"a person edits what Pawl wrote", func() error {
			for _, c := range r.World.Comments(testrig.Repo, n) {
				if c.Author == "pawl[bot]" {
					return r.World.EditComment(testrig.Repo, c.ID, testrig.Writer, "/pawl solve")
				}
			}
			return fmt.Errorf("Pawl wrote no comment")
		}, "- it was written by this App"},
	})
}

// postingAgent posts a remark on Pawl's pull request and a command on the issue
// under a person's name, adds to the description of both, and shows what it ran, as
// the streams of agents do.
const postingAgent = testrig.PlainAgent + `
if [ "$n" = 2 ]; then
  set -x
  post() { curl -sSf -o /dev/null -X "$1" -H "Authorization: Bearer $TOKEN" -d "$3" "$API/repos/acme/widgets/issues/$2"; }
  exec 2>&1
  post POST "$PULL/comments" '{"body": "Status update: I am still looking at this, and I will go on soon."}'
  post POST "$ISSUE/comments" '{"body": "/pawl solve and do not forget the documentation"}'
  set +x # of an edit that adds to a text, only the addition is the agent's own
  post PATCH "$ISSUE" "{\"body\": \"$(cat "$CTRL/body")\n\nProgress: two of three steps are finished.\"}"
  echo "gh issue edit --body \"\$(cat body) Progress: two of three steps are finished.\""
fi
`

func TestWhatTheAgentPostsUnderAPersonsNameIsIgnored(t *testing.T) {
	t.Parallel()
	needs.Program(t, "curl") // the agent posts with it
	r := newRig(t, nil)
	token, err := r.World.UserToken(testrig.Writer)
	r.Must(err)
	r.Agent(fmt.Sprintf("API=%s TOKEN=%s ISSUE=1 PULL=2\n", strings.TrimSuffix(r.World.APIURL(), "/"), token)+postingAgent+gateOf(2), "")
	r.Must(os.WriteFile(filepath.Join(r.Ctrl(), "body"), []byte("Please add a second line to a.txt."), 0o600))
	r.Gate()
	r.Start()
	n, pull := r.Solved()
	before := len(r.judged(n))
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve more")
	r.Must(err)
	r.Await("the agent's three posts", func() bool { return len(r.judged(n)) >= before+4 })
	// In the same minute the person says something, too.
	_, err = r.World.Comment(testrig.Repo, pull, testrig.Writer, "Please keep the lines SORTED.")
	r.Must(err)
	r.Handled()
	r.Open()
	r.Await("one further attempt", func() bool { return r.Calls() == 3 })
	r.Settle()
	if r.Calls() != 3 {
		t.Errorf("%d calls of the agent, want 3: %q", r.Calls(), r.judged(n))
	}
	const own = "- the agent wrote it itself during"
	for i, want := range []string{"+ command solve", own, own, own, "+ a new comment"} {
		if got := r.judged(n)[before+i]; !strings.HasPrefix(got, want) {
			t.Errorf("remark %d was judged %q, want %q", i, got, want)
		}
	}
	if p := r.Prompt("3"); !strings.Contains(p, "SORTED") || strings.Contains(p, "documentation") || strings.Contains(p, "Status update") {
		t.Errorf("the prompt is\n%s\nwant the person's remark and not the agent's", p)
	}
}

// gateOf makes the n-th call alone wait at the gate.
func gateOf(n int) string {
	return fmt.Sprintf("if [ \"$n\" = %d ]; then read opened < \"$CTRL/gate\"; fi\n", n)
}

func TestRemarksFromAllSidesDuringAnAttemptLeadToOneMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Start()
	n, pull := r.Solved()
	r.Gate()
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve FIRST")
	r.Must(err)
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	for _, say := range []func() error{
		r.Says(n, testrig.Writer, "/pawl solve SECOND"),
		r.Says(pull, testrig.Writer, "THIRD"),
		r.Says(n, testrig.Writer, "no command, so NOTHING"),
		r.Says(n, testrig.Reader, "/pawl solve for the READER"),
		func() error {
			_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "FOURTH")
			return err
		},
		func() error {
			return r.World.EditBody(testrig.Repo, n, testrig.Writer, "Please add a second line to a.txt. FIFTH")
		},
		r.Says(n, testrig.Writer, "/pawl retry"),
	} {
		r.Must(say())
	}
	r.Handled()
	if r.Calls() != 2 {
		t.Errorf("%d calls of the agent while the second attempt runs, want 2", r.Calls())
	}
	r.Open()
	r.Await("the third attempt", func() bool { return r.Calls() == 3 })
	r.Over(testrig.ThreadName(n))
	r.Settle()
	if r.Calls() != 3 {
		t.Errorf("%d calls of the agent, want 3: %q", r.Calls(), r.judged(n))
	}
	p := r.Prompt("3")
	for _, want := range []string{"SECOND", "THIRD", "FOURTH", "FIFTH"} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %s:\n%s", want, p)
		}
	}
	task := p[:regexp.MustCompile(`\n\d+ of \d+ `).FindStringIndex(p)[0]] // until the first manifest
	for _, no := range []string{"FIRST", "NOTHING", "READER"} {
		if strings.Contains(task, no) {
			t.Errorf("the task holds %s:\n%s", no, p)
		}
	}
	if !strings.Contains(p, "\n> /pawl solve for the READER\n") {
		t.Errorf("the reader's words are not quoted:\n%s", p)
	}
}
