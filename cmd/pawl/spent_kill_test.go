package main

import (
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// printStep prints what opencode does at the end of a step, which is the last one
// where the reason is stop.
func printStep(reason string) string {
	return `echo '{"type":"step_finish","sessionID":"ses_1","part":{"id":"prt_1","type":"step-finish","reason":"` + reason + `","tokens":` +
		`{"input":1200,"output":34,"reasoning":0,"cache":{"read":200,"write":0}},"cost":0.5}}'` + "\n"
}

const printText = `echo '{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"The line is there."}}'` + "\n"

// No gateway counts for an agent that signs in by itself; of its steps it tells.
func TestWhatAnAgentToldBeforeAKillCountsInTheDaysBudget(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("cat > /dev/null\n"+printStep("tool-calls")+testrig.Gated+"echo two >> a.txt\n"+printText+printStep("stop"), "stream: opencode")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the step to be noted", func() (noted bool) {
		r.Read(func(db *store.Store) {
			note, err := db.Noted(t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n})
			r.Must(err)
			noted = note != nil
		})
		return noted
	})
	r.Stop(syscall.SIGKILL)
	r.Touch("go")
	r.Start()
	r.Ending(n)
	a := r.State(n).Attempts
	if len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted {
		t.Fatalf("attempts %+v, want one that was interrupted and another one", a)
	}
	used := a[0].Receipt
	if want := (policy.Tokens{Input: 1400, CachedInput: 200, Output: 34}); used.Tokens != want || used.CostUSD == nil || *used.CostUSD != 0.5 {
		t.Errorf("the killed attempt used %+v and %v, want %+v and 0.5 $", used.Tokens, used.CostUSD, want)
	}
}
