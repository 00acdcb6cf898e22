package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

func TestAStormOfQuestionsMakesFewWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, _ := r.solved()
	before := len(r.world.Requests())
	for range 50 {
		r.must(r.says(n, writer, "/pawl why")())
	}
	r.settle()
	writes := 0
	for _, q := range r.world.Requests()[before:] {
		if q.Method != "GET" && strings.Contains(q.Path, "/repos/") {
			writes++
		}
	}
	if got := r.answers(n); len(got) != 1 || writes > 20 {
		t.Errorf("50 questions led to %d writes and the answers %q, want at most 20 writes and one comment", writes, got)
	}
	if s := r.state(n); len(s.Questions) != 0 {
		t.Errorf("%d questions are left open", len(s.Questions))
	}
	r.must(r.says(n, writer, "/pawl retry")())
	r.await("a command that comes after the storm", func() bool { return r.calls() == 2 })
}

func TestAThreadHasTenAnswersInAnHour(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.idle(n)
	asks := func() (answers int) {
		r.must(r.says(n, writer, "/pawl status")())
		r.must(r.world.WaitDelivered(t.Context()))
		r.idle(n)
		for _, a := range r.state(n).Acts {
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
	r.clock.reach(time.Now().Add(61 * time.Minute))
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
		r.must(r.fails(head, fmt.Sprintf("job %d", i))())
		r.handled()
	}
	fail()
	r.await("further failures to be awaited", r.gathers)
	fail()
	r.must(r.says(n, writer, "/pawl retry")())
	r.await("the attempt that a person asked for", func() bool {
		if i < 20 {
			fail()
		}
		return r.calls() == 2
	})
	asked := false
	for _, e := range r.events(n) {
		asked = asked || e.Kind == thread.KindFeedback && strings.Contains(string(e.Data), `"command":"retry"`)
		if e.Kind == thread.KindDecision && asked && strings.Contains(string(e.Data), `"rule":"gather"`) {
			t.Errorf("further checks were awaited after /pawl retry: %s", e.Data)
		}
		if e.Kind == thread.KindAttemptStarted && asked {
			break
		}
	}
}
