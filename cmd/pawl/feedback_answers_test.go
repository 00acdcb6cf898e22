package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// answers are the comments on a thread with which Pawl answered a question.
func (r *rig) answers(n int) []string {
	var out []string
	for _, c := range r.world.Comments(rigRepo, n) {
		if c.Author == "pawl[bot]" && strings.Contains(c.Body, "<!-- pawl:answer") {
			out = append(out, c.Body)
		}
	}
	return out
}

func TestQuestionsAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "A second line", "Please add a second line to a.txt.")
	r.must(err)
	refused, err := r.world.Comment(rigRepo, n, reader, "/pawl solve at once")
	r.must(err)
	r.settle()
	solve, err := r.world.Comment(rigRepo, n, writer, "/pawl solve")
	r.must(err)
	r.over(threadName(n))
	r.settle()
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
		before := len(r.answers(n))
		id, err := r.world.Comment(rigRepo, n, writer, tc.command)
		r.must(err)
		asked = append(asked, id)
		r.settle()
		if got := r.again(r.delivered("issue_comment")); got != http.StatusOK {
			t.Errorf("the repeated delivery was answered %d", got)
		}
		r.settle()
		all := r.answers(n)
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
	before := len(r.answers(n))
	for _, command := range []string{"/pawl why", "/pawl status", "/pawl dance"} {
		_, err := r.world.Comment(rigRepo, n, reader, command)
		r.must(err)
	}
	r.settle()
	if got := len(r.answers(n)) - before; got != 0 || r.eyes(n, refused) != 0 {
		t.Errorf("a reader's questions were answered %d times and a command got %d 👀, want none", got, r.eyes(n, refused))
	}
	if r.calls() != 1 {
		t.Errorf("%d calls of the agent, want 1: questions are no work", r.calls())
	}
}

func TestAnAnswerThatGitHubLostIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, _ := r.solved()
	r.world.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/{number}/comments", AbortAfter: true})
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl why")
	r.must(err)
	r.await("the answer", func() bool { return len(r.answers(n)) > 0 })
	r.settle()
	if got := r.answers(n); len(got) != 1 {
		t.Errorf("%d answers, want 1: %q", len(got), got)
	}
}

func TestWhyTellsOfPeopleBeforeWhatPawlDidItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, _ := r.solved()
	_, err := r.world.Comment(rigRepo, n, reader, "/pawl solve for MALLORY")
	r.must(err)
	r.settle()
	// Every attempt makes GitHub tell of a status comment and three check runs.
	for range 4 {
		r.must(r.says(n, writer, "/pawl retry")())
		r.settle()
	}
	r.must(r.says(n, writer, "/pawl why")())
	r.settle()
	got := r.answers(n)
	if len(got) != 2 || !strings.Contains(got[0], "`mallory` may not write") || !strings.Contains(got[1], "for MALLORY") {
		t.Errorf("the answer is %q, want it to tell of the reader's command", got)
	}
}

func TestQuestionsAreAnsweredWhileAnAttemptRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(gatedAgent, "")
	r.gate()
	r.start()
	n := r.solve("A second line", "Please.")
	r.await("the agent", func() bool { return r.calls() == 1 })
	id, err := r.world.Comment(rigRepo, n, writer, "/pawl status")
	r.must(err)
	r.await("the answer", func() bool { return len(r.answers(n)) == 1 && r.eyes(n, id) == 1 })
	if got := r.answers(n)[0]; !strings.Contains(got, "Attempt 1 is running") {
		t.Errorf("the answer is\n%s\nwant it to say that attempt 1 is running", got)
	}
	r.open()
	r.over(threadName(n))
	r.settle()
	if got := r.answers(n); len(got) != 1 || r.calls() != 1 {
		t.Errorf("%d answers and %d calls of the agent, want 1 and 1", len(got), r.calls())
	}
}
