package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/policy"
)

// testTool is run_tests. Calls run one at a time.
type testTool struct {
	spec  testSpec
	now   func() time.Time
	log   zerolog.Logger
	turn  chan struct{} // holds one token while no call runs
	calls int           // made so far, in this process and before it; guarded by turn
}

func newTestTool(spec testSpec, now func() time.Time, log zerolog.Logger) *testTool {
	t := &testTool{spec: spec, now: now, log: log, turn: make(chan struct{}, 1)}
	var err error
	if t.calls, err = countCalls(spec.Journal); err != nil {
		log.Warn().Err(err).Msg("journal of run_tests")
	}
	t.turn <- struct{}{}
	return t
}

// idle waits until no call runs.
func (t *testTool) idle() { <-t.turn }

// description is what the agent's model is told.
func (t *testTool) description() *mcp.Tool {
	no := false
	text := "Runs this repository's own tests on the work tree as it is now: the same commands that decide afterwards whether the change is accepted (a test that failed before you began does not count then). " +
		"Answers pass or fail, how many tests passed and failed, the names of failing tests, the first assertions and the last lines of output. " +
		"Call it after a change and before you say that you are done. " +
		"Pass nothing: no arguments are needed. " +
		"It is no shell and no sandbox for arbitrary code: it runs no other command, no single test and no snippet. "
	if len(t.spec.Commands) > 0 {
		text += fmt.Sprintf("It runs: %s. ", short(strings.Join(t.spec.Commands, " && "), 300))
	}
	text += fmt.Sprintf("It may take minutes, and answers at most %d times.", t.spec.MaxCalls)
	return &mcp.Tool{
		Name: "run_tests", Title: "Run the repository's tests", Description: text,
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		// Tests leave build artefacts at most. Codex refuses a tool without the hint
		// where nobody is there to approve it.
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

// call answers one call. Whatever goes wrong is a result that the model can read.
func (t *testTool) call(ctx context.Context, arguments json.RawMessage) *mcp.CallToolResult {
	if wrong := unknownArguments(arguments); wrong != "" {
		return answer(testResult{Summary: wrong + " run_tests needs no arguments: call it again with {}. " +
			"It always runs the repository's own verify commands and cannot be told to run anything else. No test was run."}, true)
	}
	select {
	case <-t.turn:
		defer func() { t.turn <- struct{}{} }()
	case <-ctx.Done():
		return answer(testResult{Summary: "The call was cancelled before its turn; no test was run."}, true)
	}
	switch {
	case len(t.spec.Commands) == 0:
		return answer(testResult{Summary: "This repository names no verify commands, so there is nothing to run. " +
			"Check your change by other means; calling run_tests again will not help."}, false)
	case t.calls >= t.spec.MaxCalls:
		return answer(testResult{Summary: fmt.Sprintf("run_tests has been called %d times, which is the bound of this attempt; no test was run. "+
			"The final verification runs anyway when you are done.", t.calls)}, false)
	}
	began := t.now()
	r := t.runAll(ctx)
	t.calls++
	left := t.spec.MaxCalls - t.calls
	r.CallsLeft = &left
	entry := testCall{At: began.UTC(), Passed: r.Passed, Failed: r.FailedTests, PassedTests: r.PassedTests, MS: t.now().Sub(began).Milliseconds()}
	if err := appendCall(t.spec.Journal, entry); err != nil {
		t.log.Error().Err(err).Msg("journal of run_tests")
	}
	t.log.Info().Bool("passed", r.Passed).Int64("ms", entry.MS).Int("calls", t.calls).Msg("run_tests")
	return answer(r, false)
}

// runAll runs the commands until one fails.
func (t *testTool) runAll(ctx context.Context) testResult {
	timeout := time.Duration(t.spec.Timeout) * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := testResult{Ran: true, Passed: true}
	for _, command := range t.spec.Commands {
		end := runTestCommand(ctx, command, t.spec.Dir)
		report := policy.ReadTests(end.output)
		r.PassedTests, r.SkippedTests = addTold(r.PassedTests, report.Passed), addTold(r.SkippedTests, report.Skipped)
		r.FailedTests = addTold(r.FailedTests, report.Failed)
		if end.failure == "" {
			continue
		}
		r.Passed, r.Command, r.output = false, short(command, 300), end.output
		r.Summary = fmt.Sprintf("FAILED: `%s` %s.", r.Command, end.failure)
		if context.Cause(ctx) == context.DeadlineExceeded {
			r.Summary = fmt.Sprintf("FAILED: `%s` was ended after %s, the time that one call has. Does a test hang?", r.Command, timeout)
		}
		r.failures = report.Failures
		break
	}
	if r.Passed {
		r.Summary = "PASSED: all verify commands succeeded."
		r.FailedTests = nil
	}
	return r
}

// addTold adds a number of tests that the runner may not have told.
func addTold(sum *int, n int) *int {
	if n == policy.NotTold {
		return sum
	}
	if sum != nil {
		n += *sum
	}
	return &n
}

// unknownArguments names what a call passed although nothing is to be passed.
func unknownArguments(raw json.RawMessage) string {
	var args map[string]json.RawMessage
	if len(raw) == 0 {
		return ""
	}
	if json.Unmarshal(raw, &args) != nil {
		return "The arguments are no JSON object."
	}
	var names []string
	for name := range args {
		names = append(names, fmt.Sprintf("%q", short(name, 60)))
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1:
		return "There is no argument " + names[0] + "."
	}
	return "There are no arguments " + strings.Join(names[:min(len(names), 5)], ", ") + "."
}
