package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestQuestionsAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A second line", "Please add a second line to a.txt.")
	r.Must(err)
	refused, err := r.World.Comment(testrig.Repo, n, testrig.Reader, "/pawl solve at once")
	r.Must(err)
	r.Settle()
	solve, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
	r.Must(err)
	r.Over(testrig.ThreadName(n))
	r.Settle()
	var asked []int64
	for _, tc := range []struct {
		command string
		fresh   int // comments; else the last one is edited
		want    []string
	}{
		{"/pawl why", 1, []string{"mallory", "has read permission; write is needed", "/pawl solve at once", "Acted on", "command solve"}},
		{"/pawl status", 1, []string{"Done: unverified"}},
		{"/pawl dance", 1, []string{"/pawl dance", "is not a command", "/pawl solve"}},
		{"/pawl", 0, []string{"needs a command"}},
	} {
		before := len(r.Answers(n))
		id, err := r.World.Comment(testrig.Repo, n, testrig.Writer, tc.command)
		r.Must(err)
		asked = append(asked, id)
		r.Settle()
		if got := r.again(r.delivered("issue_comment")); got != http.StatusOK {
			t.Errorf("the repeated delivery was answered %d", got)
		}
		r.Settle()
		all := r.Answers(n)
		if len(all)-before != tc.fresh {
			t.Errorf("%s was answered in %d new comments, want %d: %q", tc.command, len(all)-before, tc.fresh, all)
			continue
		}
		for _, want := range tc.want {
			if got := all[len(all)-1]; !strings.Contains(got, want) {
				t.Errorf("%s was answered\n%s\nwant %q in it", tc.command, got, want)
			}
		}
	}
	for _, id := range append(asked, solve) {
		if got := r.eyes(n, id); got != 1 {
			t.Errorf("comment %d has %d 👀 of Pawl, want 1", id, got)
		}
	}
	before := len(r.Answers(n))
	for _, command := range []string{"/pawl why", "/pawl status", "/pawl dance"} {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Reader, command)
		r.Must(err)
	}
	r.Settle()
	if got := len(r.Answers(n)) - before; got != 0 || r.eyes(n, refused) != 0 {
		t.Errorf("a reader's questions were answered %d times and a command got %d 👀, want none", got, r.eyes(n, refused))
	}
	if r.Calls() != 1 {
		t.Errorf("%d calls of the agent, want 1: questions are no work", r.Calls())
	}
}

func TestAnAnswerThatGitHubLostIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/{number}/comments", AbortAfter: true})
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl why")
	r.Must(err)
	r.Await("the answer", func() bool { return len(r.Answers(n)) > 0 })
	r.Settle()
	if got := r.Answers(n); len(got) != 1 {
		t.Errorf("%d answers, want 1: %q", len(got), got)
	}
}

func TestWhyTellsOfPeopleBeforeWhatPawlDidItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	_, err := r.World.Comment(testrig.Repo, n, testrig.Reader, "/pawl solve for MALLORY")
	r.Must(err)
	r.Settle()
	// Every attempt makes GitHub tell of a status comment and three check runs.
	for range 4 {
		r.Must(r.Says(n, testrig.Writer, "/pawl retry")())
		r.Settle()
	}
	r.Must(r.Says(n, testrig.Writer, "/pawl why")())
	r.Settle()
	got := r.Answers(n)
	if len(got) != 2 || !strings.Contains(got[0], "`mallory` may not write") || !strings.Contains(got[1], "for MALLORY") {
		t.Errorf("the answer is %q, want it to tell of the reader's command", got)
	}
}

func TestQuestionsAreAnsweredWhileAnAttemptRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Gate()
	r.Start()
	n := r.Solve("A second line", "Please.")
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	id, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl status")
	r.Must(err)
	r.Await("the answer", func() bool { return len(r.Answers(n)) == 1 && r.eyes(n, id) == 1 })
	if got := r.Answers(n)[0]; !strings.Contains(got, "Attempt 1 is running") {
		t.Errorf("the answer is\n%s\nwant it to say that attempt 1 is running", got)
	}
	r.Open()
	r.Over(testrig.ThreadName(n))
	r.Settle()
	if got := r.Answers(n); len(got) != 1 || r.Calls() != 1 {
		t.Errorf("%d answers and %d calls of the agent, want 1 and 1", len(got), r.Calls())
	}
}
