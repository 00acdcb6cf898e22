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

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/policy"
)

// testTool is run_tests. Calls run one at a time.
type testTool struct {
	spec  Spec
	log   zerolog.Logger
	turn  chan struct{} // holds one token while no call runs
	calls int           // the attempt's calls, including calls in earlier processes; guarded by turn
}

func newTestTool(spec Spec, log zerolog.Logger) *testTool {
	t := &testTool{
		spec: spec,
		log:  log,
		turn: make(chan struct{}, 1),
	}
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
	text := "Runs this repository's own tests on the work tree as it is now: " +
		"the same commands that decide afterwards whether the change is accepted " +
		"(a failure that was there before you began does not count, and is listed separately). " +
		"Answers pass or fail, how many tests passed and failed, " +
		"the names of newly failing tests, their first assertions, " +
		"older failures to leave alone, and the last lines of output. " +
		"Call it after a change and before you say that you are done. " +
		"Pass nothing: no arguments are needed. " +
		"It is not a shell or a sandbox for arbitrary code: " +
		"it runs no other command, no single test and no snippet. "
	if len(t.spec.Commands) > 0 {
		commands := strings.Join(t.spec.Commands, " && ")
		text += fmt.Sprintf("It runs: %s. ", short(commands, 300))
	}
	text += fmt.Sprintf(
		"It may take minutes, and answers at most %d times.",
		t.spec.MaxCalls,
	)
	return &mcp.Tool{
		Name:        "run_tests",
		Title:       "Run the repository's tests",
		Description: text,
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		// Tests change only build artefacts. Without this hint Codex refuses the tool, because no user can approve it.
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint:    true,
			IdempotentHint:  true,
			DestructiveHint: &no,
			OpenWorldHint:   &no,
		},
	}
}

// call answers one call. It returns every failure as a result, which the model can read.
func (t *testTool) call(
	ctx context.Context,
	arguments json.RawMessage,
) *mcp.CallToolResult {
	wrong := unknownArguments(arguments)
	if wrong == "" {
		return answer(t.result(ctx))
	}
	const noArguments = " run_tests needs no arguments: call it again with {}. " +
		"It always runs the repository's own verify commands " +
		"and cannot run anything else. " +
		"No test was run."
	return answer(testResult{Summary: wrong + noArguments}, true)
}

func (t *testTool) result(ctx context.Context) (r testResult, isError bool) {
	select {
	case <-t.turn:
		defer func() { t.turn <- struct{}{} }()
	case <-ctx.Done():
		r.Summary = "The call was cancelled before its turn; no test was run."
		return r, true
	}
	switch {
	case len(t.spec.Commands) == 0:
		r.Summary = "This repository names no verify commands, " +
			"so there is nothing to run. " +
			"Check your change by other means; " +
			"calling run_tests again will not help."
		return r, false
	case t.calls >= t.spec.MaxCalls:
		r.Summary = fmt.Sprintf("run_tests has been called %d times, "+
			"which is the limit of this attempt; no test was run. "+
			"The final verification runs anyway when you are done.", t.calls)
		return r, false
	}
	began := time.Now()
	t.calls++
	all, err := t.verify(ctx)
	if err != nil {
		t.log.Info().Err(err).Msg("run_tests")
		r.Summary = "The call failed: " + err.Error()
		return r, true
	}
	r = t.compared(all)
	left := t.spec.MaxCalls - t.calls
	r.CallsLeft = &left
	entry := testCall{
		At:          began.UTC(),
		Passed:      r.Passed,
		Failed:      r.FailedTests,
		PassedTests: r.PassedTests,
		MS:          time.Since(began).Milliseconds(),
	}
	if err := appendCall(t.spec.Journal, entry); err != nil {
		t.log.Error().Err(err).Msg("journal of run_tests")
	}
	t.log.Info().
		Bool("passed", r.Passed).
		Int64("ms", entry.MS).
		Int("calls", t.calls).
		Msg("run_tests")
	return r, false
}

// verify runs the commands like the final verification, but in the agent's work tree.
func (t *testTool) verify(ctx context.Context) ([]policy.Verified, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout())
	defer cancel()
	run := func(command string) (policy.Verified, error) {
		return t.run(ctx, command)
	}
	trial := func() (testreport.Trial, error) {
		return testreport.Trial{Run: run, Close: func() {}}, nil
	}
	return testreport.Verify(t.spec.Commands, t.spec.Before, trial)
}

func (t *testTool) timeout() time.Duration {
	return time.Duration(t.spec.Timeout) * time.Second
}

func (t *testTool) compared(all []policy.Verified) testResult {
	receipt := policy.Receipt{Verify: all}
	r := testResult{Ran: true, Passed: !receipt.Failing(), verified: all}
	for _, v := range all {
		r.PassedTests += v.PassedTests
	}
	if !r.Passed {
		v := receipt.Deciding()
		counted := v.FailedTests - len(v.Known) - len(v.Flaky)
		r.Command = short(v.Command, 300)
		r.FailedTests = max(len(v.Failing), counted)
		r.Summary = t.failed(r.Command, v)
		return r
	}
	r.Summary = "PASSED: all verify commands succeeded."
	if !receipt.Verification().Verifies() {
		r.Summary = "PASSED: " + receipt.VerifiedWords("") + "."
	}
	return r
}

func (t *testTool) failed(command string, v *policy.Verified) string {
	message := fmt.Sprintf("FAILED: `%s` %s.", command, v.Result())
	switch {
	case v.Broken != "":
		return message + " It failed the same way before you began: leave it, " +
			"and check your change by other means."
	case v.TimedOut:
		return fmt.Sprintf("FAILED: `%s` was ended after %s, "+
			"the time limit of a call. Does a test hang?",
			command, t.timeout())
	}
	return message
}

// unknownArguments names a call's unexpected arguments.
func unknownArguments(raw json.RawMessage) string {
	var args map[string]json.RawMessage
	if len(raw) == 0 {
		return ""
	}
	if json.Unmarshal(raw, &args) != nil {
		return "The arguments are not a JSON object."
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

// Limits of one command.
const (
	keptOutput     = 64 << 10    // the last bytes of the output that are kept, as in the final verification
	outputAfterEnd = time.Second // how long the command's children may keep the output open after its end
)

// run runs a shell command, parses its whole output for tests, and kills its process group at the end.
func (t *testTool) run(ctx context.Context, command string) (v policy.Verified, err error) {
	began := time.Now()
	reports := testreport.Watch(t.spec.Dir, config.Reported(t.spec.Reports))
	kept, tests := render.End{Max: keptOutput}, testreport.NewReader()
	both := io.MultiWriter(&kept, tests)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = t.spec.Dir, withoutCredentials(os.Environ())
	cmd.Stdout, cmd.Stderr = both, both // one writer, so that exec serialises the writes
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputAfterEnd
	cmd.Cancel = func() error {
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err := cmd.Start(); err != nil {
		return v, fmt.Errorf("start %q: %w", command, err)
	}
	err = cmd.Wait()
	// The shell's children may still run. The error ESRCH means that none does.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	late := errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	if ctx.Err() != nil && !late {
		return v, fmt.Errorf("%q was ended before it was done", command)
	}
	exit := sandbox.ExitOf(cmd.ProcessState)
	ended := err == nil || errors.Is(err, exec.ErrWaitDelay)
	v = policy.Verified{
		Command:  command,
		Exit:     exit.Code,
		Signal:   exit.Signal,
		TimedOut: late,
		Output:   kept.String(),
		MS:       time.Since(began).Milliseconds(),
		Passed:   ended && exit.Code == 0 && !late,
	}
	all := []testreport.Report{tests.Report()}
	all = append(all, reports()...)
	testreport.Count(&v, all...)
	return v, nil
}

// withoutCredentials drops the variables whose names suggest a secret.
func withoutCredentials(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		words := strings.Split(strings.ToUpper(name), "_")
		return slices.ContainsFunc(words, secretWord)
	})
}

// secretWord reports whether a word in a variable's name marks a secret.
func secretWord(word string) bool {
	switch word {
	case "KEY", "KEYS", "APIKEY",
		"TOKEN", "TOKENS", "PAT",
		"SECRET", "SECRETS",
		"PASSWORD", "PASSWD", "PASSPHRASE",
		"CREDENTIAL", "CREDENTIALS",
		"AUTH", "AUTHORIZATION", "COOKIE":
		return true
	}
	return false
}

// testCall is one line of the journal. Failed and PassedTests are the counts in the answer.
type testCall struct {
	At          time.Time `json:"at"`
	Passed      bool      `json:"passed"`
	Failed      int       `json:"failed,omitempty"`
	PassedTests int       `json:"passed_tests,omitempty"`
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

// countCalls counts the calls in the journal; 0 if there is no journal. Its size needs no limit: an agent that fills the
// journal only uses up its own calls.
func countCalls(name string) (int, error) {
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("read the journal: %w", err)
	}
	return bytes.Count(b, []byte("\n")), nil
}
