package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
)

// The statement is that of docs/operations.md.
func TestWorkAfterARestartIsInTheTraceOfItsWebhook(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	r := newRig(t, nil)
	r.config = "tracing: {endpoint: " + c.url + "}\n"
	n := r.atWork()
	guid := ""
	for _, d := range r.world.Deliveries() {
		if d.Event == "issue_comment" && strings.Contains(string(d.Payload), "/pawl solve") {
			guid = d.GUID
		}
	}
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	before := len(c.of(guid))
	r.touch("go")
	r.start()
	r.wantSolved(n)
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	outcomes := []string{} // of the parts of the attempt
	for i, s := range c.of(guid) {
		if s.Name == "attempt" {
			outcomes = append(outcomes, value(s, solver.TraceAttempt)+" "+value(s, attempt.TraceOutcome))
		}
		if i >= before && s.Name == "webhook" {
			t.Error("the webhook is in its trace twice")
		}
	}
	if !slices.Equal(outcomes, []string{"1 handed_over", "1 edited"}) {
		t.Errorf("attempts in the trace: %q, want the one that was handed over, to its end at the next server", outcomes)
	}
}
