package main

import (
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
	outcomes := map[string]string{} // of attempts, by number
	for i, s := range c.of(guid) {
		if s.Name == "attempt" {
			outcomes[value(s, solver.TraceAttempt)] = value(s, attempt.TraceOutcome)
		}
		if i >= before && s.Name == "webhook" {
			t.Error("the webhook is in its trace twice")
		}
	}
	if len(outcomes) != 2 || outcomes["1"] != "interrupted" || outcomes["2"] != "edited" {
		t.Errorf("attempts in the trace: %v, want the interrupted one and, of the next server, the one that edited", outcomes)
	}
}
