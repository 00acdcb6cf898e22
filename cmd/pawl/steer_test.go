package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// The node that gets the webhook is not the node that runs the agent.
func TestSteerReachesTheAgentOnAnotherNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Steerable(1)
	working := c.join()
	n := c.issue("A line")
	c.Working(1)
	c.join()
	c.Writes(n, testrig.Writer, "/pawl steer use the other way")
	c.Await("the command in the log", func() bool { return len(c.State(n).Feedback) == 2 })
	c.Touch("call-1")
	c.doneAtOnce(n)
	if got := working.Started(); got != 1 || c.Calls() != 2 {
		t.Errorf("%d attempts on the first node and %d calls of the agent, want 1 and 2", got, c.Calls())
	}
	if args := c.Left("args-2"); !strings.Contains(args, "resume "+testrig.Session) || !strings.Contains(c.Left("prompt-2"), "use the other way") {
		t.Errorf("the second call is %q with the prompt %q", args, c.Left("prompt-2"))
	}
	if got := c.State(n).Attempts[0].Receipt.Steered; len(got) != 1 || got[0] != (policy.Steerer{By: testrig.Writer, Times: 1}) {
		t.Errorf("steered by %v, want once by the writer", got)
	}
	c.leave(working, syscall.SIGTERM)
}

// For each prompt the model runs the same long command. The steering text interrupts its first run.
func TestSteerContinuesTheSessionOfARealCLI(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs() {
		t.Run(cli.kind, func(t *testing.T) {
			s := newCLIRig(t, cli, "script")
			s.provider.Set("script", `[{"run":"echo x >> calls.txt; sleep 8"}]`)
			r := newProcessRig(t, nil)
			r.Config += s.section()
			r.StartProgram(s.path())
			n := r.Solve("A file", "Please add calls.txt.")
			r.Await("the first call", func() bool { // OpenCode prints a call only when it ends
				found, _ := filepath.Glob(filepath.Join(r.Dir, "data", "attempts", "*", "*", "*", "work", "checkout", "calls.txt"))
				return len(found) > 0
			})
			r.Writes(n, testrig.Writer, "/pawl steer use the other way")
			if state := r.Ending(n); state.State != "done" {
				t.Fatalf("%s (%s %q), want done", state.State, state.Rule, state.Reasons)
			}
			attempts := r.State(n).Attempts
			if len(attempts) != 1 || len(attempts[0].Receipt.Steered) != 1 {
				t.Fatalf("attempts %+v, want one that was steered", attempts)
			}
			var steered []string // the requests after the interruption
			for _, q := range s.requests() {
				if strings.Contains(string(q.Body), "use the other way") {
					steered = append(steered, string(q.Body))
				}
			}
			if len(steered) == 0 {
				t.Fatal("no request to the model has the text")
			}
			if first := steered[0]; !strings.Contains(first, "calls.txt; sleep 8") || !strings.Contains(first, "Please add calls.txt.") {
				t.Errorf("the first request with the text lacks the session: %.4000s", first)
			}
			tokens, requests := attempts[0].Receipt.Tokens.Input, int64(len(s.requests()))
			if tokens < 1200*(requests-1) { // the interruption may cut a request off before its answer
				t.Errorf("%d input tokens for %d requests, want the tokens of both runs of the CLI", tokens, requests)
			}
			text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "calls.txt")
			if err != nil || text != "x\nx\n" {
				t.Errorf("calls.txt is %q, %v; want a line from each run of the CLI", text, err)
			}
		})
	}
}
