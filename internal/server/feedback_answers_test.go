package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestQuestionsAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	for _, tc := range []struct {
		command string
		fresh   int // number of new comments; with 0, the last comment is edited
		want    string
	}{
		{"/pawl why", 1, "**Acted on**: comment by `ada`"},
		{"/pawl status", 1, "not verified: no verify command"},
		{"/pawl dance", 1, "`/pawl dance` is not a command"},
		{"/pawl", 0, "`/pawl` needs a command"},
	} {
		before := len(r.Answers(n))
		id := r.Writes(n, testrig.Writer, tc.command)
		r.Settle()
		all := r.Answers(n)
		if got := len(all) - before; got != tc.fresh {
			t.Fatalf("%s was answered in %d new comments, want %d: %q", tc.command, got, tc.fresh, all)
		}
		answer := all[len(all)-1]
		r.wantIn("the answer to "+tc.command, answer, tc.want)
		r.wantNoneIn("the answer to "+tc.command, answer, "pawl[bot]") // Pawl does not list its own acts, which users see anyway
		if got := r.eyes(n, id); got != 1 {
			t.Errorf("%s has %d 👀 of Pawl, want 1", tc.command, got)
		}
	}
	if r.Calls() != 1 {
		t.Errorf("%d calls of the agent, want 1: questions are not work", r.Calls())
	}
}

func TestQuestionsAreAnsweredDuringAnAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Gate()
	r.Start()
	n := r.Solve("A second line", "Please.")
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	id := r.Writes(n, testrig.Writer, "/pawl status")
	r.Await("the answer", func() bool { return len(r.Answers(n)) == 1 && r.eyes(n, id) == 1 })
	r.wantIn("the answer", r.Answers(n)[0], "Attempt 1 is running")
	r.Open()
	r.Ending(n)
}

func TestTenAnswersAnHour(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A question", "Nothing to do.")
	r.Must(err)
	r.Settle()
	answered := func() (answers int) {
		r.Settle()
		for _, a := range r.State(n).Acts {
			if a.Page != "" {
				answers++
			}
		}
		return answers
	}
	before := len(r.World.Requests())
	for range 50 {
		r.Writes(n, testrig.Writer, "/pawl status")
	}
	if got := answered(); got != 10 {
		t.Errorf("50 questions were answered %d times, want ten", got)
	}
	writes := 0
	for _, q := range r.World.Requests()[before:] {
		if q.Method != "GET" && strings.Contains(q.Path, "/repos/") {
			writes++
		}
	}
	if got := len(r.Answers(n)); got != 1 || writes > 20 {
		t.Errorf("50 questions led to %d writes and %d comments, want at most 20 and one", writes, got)
	}
	if got := len(r.State(n).Questions); got != 0 {
		t.Errorf("%d questions are left open", got)
	}
	r.Clock.Reach(time.Now().Add(61 * time.Minute))
	r.Writes(n, testrig.Writer, "/pawl status")
	if got := answered(); got != 11 {
		t.Errorf("%d answers after an hour, want 11", got)
	}
}
