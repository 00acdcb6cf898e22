package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/policy"
)

func TestWhatPawlCausesIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, pull := r.solved()
	s := r.state(n)
	if r.calls() != 1 || len(s.Feedback) != 1 {
		t.Fatalf("%d calls of the agent and %d remarks, want 1 and 1", r.calls(), len(s.Feedback))
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
		{"a text with Pawl's marker under a person's name", r.says(pull, writer, "<!-- pawl:status acme/widgets#1 -->\n/pawl solve"), "- it carries a marker of Pawl"},
		{"a request below such a text in a quotation", r.says(pull, writer, "> <!-- pawl:status acme/widgets#1 -->\n> **Done**\n\nAdd a third line."), "+ a new comment"},
		{"a person edits what Pawl wrote", func() error {
			for _, c := range r.world.Comments(rigRepo, n) {
				if c.Author == "pawl[bot]" {
					return r.world.EditComment(rigRepo, c.ID, writer, "/pawl solve")
				}
			}
			return fmt.Errorf("Pawl wrote no comment")
		}, "- it was written by this App"},
	})
}

// postingAgent posts a remark on Pawl's pull request and a command on the issue
// under a person's name, adds to the description of both, and shows what it ran, as
// the streams of agents do.
const postingAgent = plainAgent + `
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
	token, err := r.world.UserToken(writer)
	r.must(err)
	r.agent(fmt.Sprintf("API=%s TOKEN=%s ISSUE=1 PULL=2\n", strings.TrimSuffix(r.world.APIURL(), "/"), token)+postingAgent+gateOf(2), "")
	r.must(os.WriteFile(filepath.Join(r.ctrl(), "body"), []byte("Please add a second line to a.txt."), 0o600))
	r.gate()
	r.start()
	n, pull := r.solved()
	before := len(r.judged(n))
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl solve more")
	r.must(err)
	r.await("the agent's three posts", func() bool { return len(r.judged(n)) >= before+4 })
	// In the same minute the person says something, too.
	_, err = r.world.Comment(rigRepo, pull, writer, "Please keep the lines SORTED.")
	r.must(err)
	r.handled()
	r.open()
	r.await("one further attempt", func() bool { return r.calls() == 3 })
	r.settle()
	if r.calls() != 3 {
		t.Errorf("%d calls of the agent, want 3: %q", r.calls(), r.judged(n))
	}
	const own = "- the agent wrote it itself during"
	for i, want := range []string{"+ command solve", own, own, own, "+ a new comment"} {
		if got := r.judged(n)[before+i]; !strings.HasPrefix(got, want) {
			t.Errorf("remark %d was judged %q, want %q", i, got, want)
		}
	}
	if p := r.prompt("3"); !strings.Contains(p, "SORTED") || strings.Contains(p, "documentation") || strings.Contains(p, "Status update") {
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
	r.agent(gatedAgent, "")
	r.start()
	n, pull := r.solved()
	r.gate()
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve FIRST")
	r.must(err)
	r.await("the second attempt", func() bool { return r.calls() == 2 })
	for _, say := range []func() error{
		r.says(n, writer, "/pawl solve SECOND"),
		r.says(pull, writer, "THIRD"),
		r.says(n, writer, "no command, so NOTHING"),
		r.says(n, reader, "/pawl solve for the READER"),
		func() error {
			_, err := r.world.Review(rigRepo, pull, writer, "CHANGES_REQUESTED", "FOURTH")
			return err
		},
		func() error { return r.world.EditBody(rigRepo, n, writer, "Please add a second line to a.txt. FIFTH") },
		r.says(n, writer, "/pawl retry"),
	} {
		r.must(say())
	}
	r.handled()
	if r.calls() != 2 {
		t.Errorf("%d calls of the agent while the second attempt runs, want 2", r.calls())
	}
	r.open()
	r.await("the third attempt", func() bool { return r.calls() == 3 })
	r.over(threadName(n))
	r.settle()
	if r.calls() != 3 {
		t.Errorf("%d calls of the agent, want 3: %q", r.calls(), r.judged(n))
	}
	p := r.prompt("3")
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
