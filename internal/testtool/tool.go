package testtool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/internal/text"
)

// testTool is run_tests. Calls run one at a time.
type testTool struct {
	spec  Spec
	log   zerolog.Logger
	turn  chan struct{} // holds one token while no call runs
	calls int           // made so far, in this process and before it; guarded by turn
}

func newTestTool(spec Spec, log zerolog.Logger) *testTool {
	t := &testTool{spec: spec, log: log, turn: make(chan struct{}, 1)}
	var err error
	if t.calls, err = countCalls(spec.Journal); err != nil {
		log.Warn().Err(err).Msg("journal of run_tests")
	}
	t.turn <- struct{}{}
	return t
}

func (t *testTool) idle() { <-t.turn }

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
		// Tests leave build artefacts at most. Without the hint Codex refuses a tool that nobody can approve.
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
	began := time.Now()
	r := t.runAll(ctx)
	t.calls++
	left := t.spec.MaxCalls - t.calls
	r.CallsLeft = &left
	entry := testCall{At: began.UTC(), Passed: r.Passed, Failed: r.FailedTests, PassedTests: r.PassedTests, MS: time.Since(began).Milliseconds()}
	if err := appendCall(t.spec.Journal, entry); err != nil {
		t.log.Error().Err(err).Msg("journal of run_tests")
	}
	t.log.Info().Bool("passed", r.Passed).Int64("ms", entry.MS).Int("calls", t.calls).Msg("run_tests")
	return answer(r, false)
}

func (t *testTool) runAll(ctx context.Context) testResult {
	timeout := time.Duration(t.spec.Timeout) * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := testResult{Ran: true, Passed: true}
	for _, command := range t.spec.Commands {
		failure, output, report := runTestCommand(ctx, command, t.spec.Dir)
		r.PassedTests, r.SkippedTests = addCount(r.PassedTests, report.Passed), addCount(r.SkippedTests, report.Skipped)
		r.FailedTests = addCount(r.FailedTests, report.Failed)
		if failure == "" {
			continue
		}
		r.Passed, r.Command, r.output = false, short(command, 300), output
		r.Summary = fmt.Sprintf("FAILED: `%s` %s.", r.Command, failure)
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

// addCount adds a number of tests that the runner may not have told.
func addCount(sum *int, n int) *int {
	if n == testreport.NotCounted {
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
	if len(args) == 0 {
		return ""
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		names = append(names, fmt.Sprintf("%q", short(name, 60)))
	}
	return "There is no such argument: " + short(strings.Join(names, ", "), 300) + "."
}

// Bounds of one command.
const (
	keptOutput     = 64 << 10    // bytes, from the end, as the verifier keeps them
	outputAfterEnd = time.Second // how long its children may hold its output open when it is over
)

// runTestCommand runs a command for the shell. The failure, to stand behind the command, is empty for none; the
// output is the end of both streams, of which the tests are read from the beginning on. When it returns, its process
// group is killed.
func runTestCommand(ctx context.Context, command, dir string) (failure, output string, tests testreport.Report) {
	kept, reader := text.End{Max: keptOutput}, testreport.NewReader()
	both := io.MultiWriter(&kept, reader)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = dir, withoutCredentials(os.Environ())
	cmd.Stdout, cmd.Stderr = both, both // one writer: they are written in turn
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputAfterEnd
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return "could not be started: " + err.Error(), "", reader.Report()
	}
	err := cmd.Wait()
	// The shell may be gone and what it started not. ESRCH says that nothing is.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	state := cmd.ProcessState
	switch {
	case ctx.Err() != nil:
		failure = "was ended before it was done"
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && state.Success():
	case state.ExitCode() >= 0:
		failure = fmt.Sprintf("ended with exit code %d", state.ExitCode())
	default:
		failure = "ended: " + err.Error()
	}
	return failure, kept.String(), reader.Report()
}

// withoutCredentials leaves out the variables whose names say that they are secret.
func withoutCredentials(env []string) []string {
	secret := []string{"KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PAT", "CREDENTIAL", "CREDENTIALS", "AUTH", "AUTHORIZATION", "COOKIE"}
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(strings.Split(strings.ToUpper(name), "_"), func(word string) bool { return slices.Contains(secret, word) })
	})
}

type testCall struct {
	At          time.Time `json:"at"`
	Passed      bool      `json:"passed"`
	Failed      *int      `json:"failed,omitempty"`       // tests; absent where the runner does not tell
	PassedTests *int      `json:"passed_tests,omitempty"` // likewise
	MS          int64     `json:"ms"`
}

func appendCall(name string, c testCall) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// countCalls is how many calls the journal has, if it is there. An agent that makes it long harms its own tool.
func countCalls(name string) (int, error) {
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("read the journal: %w", err)
	}
	return bytes.Count(b, []byte("\n")), nil
}
