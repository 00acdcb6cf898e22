package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestAStormOfQuestionsMakesFewWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	before := len(r.World.Requests())
	for range 50 {
		r.Must(r.Says(n, testrig.Writer, "/pawl why")())
	}
	r.Settle()
	writes := 0
	for _, q := range r.World.Requests()[before:] {
		if q.Method != "GET" && strings.Contains(q.Path, "/repos/") {
			writes++
		}
	}
	if got := r.Answers(n); len(got) != 1 || writes > 20 {
		t.Errorf("50 questions led to %d writes and the answers %q, want at most 20 writes and one comment", writes, got)
	}
	if s := r.State(n); len(s.Questions) != 0 {
		t.Errorf("%d questions are left open", len(s.Questions))
	}
	r.Must(r.Says(n, testrig.Writer, "/pawl retry")())
	r.Await("a command that comes after the storm", func() bool { return r.Calls() == 2 })
}

func TestAThreadHasTenAnswersInAnHour(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Idle(n)
	asks := func() (answers int) {
		r.Must(r.Says(n, testrig.Writer, "/pawl status")())
		r.Must(r.World.WaitDelivered(t.Context()))
		r.Idle(n)
		for _, a := range r.State(n).Acts {
			if a.Page != "" {
				answers++
			}
		}
		return answers
	}
	for i := range 12 {
		if got := asks(); got != min(i+1, 10) {
			t.Fatalf("%d questions were answered %d times, want at most ten", i+1, got)
		}
	}
	r.Clock.Reach(time.Now().Add(61 * time.Minute))
	if got := asks(); got != 11 {
		t.Errorf("after an hour there are %d answers, want another one", got)
	}
}

func TestAPersonsCommandDoesNotWaitForFailingChecks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, _, head := r.withCI()
	i := 0
	fail := func() {
		i++
		r.Must(r.fails(head, fmt.Sprintf("job %d", i))())
		r.Handled()
	}
	fail()
	r.Await("further failures to be awaited", r.Gathers)
	fail()
	r.Must(r.Says(n, testrig.Writer, "/pawl retry")())
	r.Await("the attempt that a person asked for", func() bool {
		if i < 20 {
			fail()
		}
		return r.Calls() == 2
	})
	asked := false
	for _, e := range r.Events(n) {
		asked = asked || e.Kind == thread.KindFeedback && strings.Contains(string(e.Data), `"command":"retry"`)
		if e.Kind == thread.KindDecision && asked && strings.Contains(string(e.Data), `"rule":"gather"`) {
			t.Errorf("further checks were awaited after /pawl retry: %s", e.Data)
		}
		if e.Kind == thread.KindAttemptStarted && asked {
			break
		}
	}
}
