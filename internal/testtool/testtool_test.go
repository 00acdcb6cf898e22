package testtool

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/policy"
)

// specVariable names a spec's file. If it is set, the test binary serves that spec instead of running tests.
const specVariable = "PAWL_TESTTOOL_SPEC"

// patience limits every wait. It is long so that no test fails on a busy machine.
const patience = 10 * time.Minute

func TestMain(m *testing.M) {
	file, ok := os.LookupEnv(specVariable)
	if !ok {
		os.Exit(m.Run())
	}
	spec, err := ReadSpec(file)
	if err == nil {
		err = Serve(context.Background(), spec, "test", os.Stdin, os.Stdout, zerolog.New(os.Stderr))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// testServer is a server with its own work tree.
type testServer struct {
	t    *testing.T
	dir  string
	spec Spec
}

func newTestServer(t *testing.T, commands ...string) *testServer {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	return &testServer{t: t, dir: dir, spec: Spec{Dir: tree, Commands: commands, Timeout: 60, MaxCalls: 20, Journal: filepath.Join(dir, "journal.jsonl")}}
}

// command returns a command that starts the server with the current spec.
func (s *testServer) command() *exec.Cmd {
	s.t.Helper()
	b, err := json.Marshal(s.spec)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.dir, "spec.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), specVariable+"="+file, "AGENT_API_KEY=planted-key", "GH_TOKEN=planted-token", "PLAIN=visible")
	return cmd
}

// connect starts the server and opens a session with the SDK's client.
func (s *testServer) connect() *mcp.ClientSession {
	s.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(s.t.Context(), &mcp.CommandTransport{Command: s.command()}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

// runTests calls the tool and returns its text, its structured content and whether
// it is an error.
func (s *testServer) runTests(session *mcp.ClientSession, arguments any) (string, testResult, bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_tests", Arguments: arguments})
	if err != nil {
		s.t.Fatal(err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		s.t.Fatal(err)
	}
	var r testResult
	if err := json.Unmarshal(b, &r); err != nil {
		s.t.Fatal(err)
	}
	if len(text) > maxAnswer || len(b) > maxAnswer {
		s.t.Errorf("text of %d, structure of %d bytes", len(text), len(b))
	}
	return text, r, res.IsError
}

func (s *testServer) journal() []testCall {
	s.t.Helper()
	b, err := os.ReadFile(s.spec.Journal)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var all []testCall
	for line := range strings.Lines(string(b)) {
		var c testCall
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

const oneFailing = `printf -- '--- FAIL: TestSum (0.00s)\n    sum_test.go:9: got 3, want 4\nFAIL\nFAIL\texample.com/sum\t0.002s\n'; exit 1`

func TestRunTestsReportsFailures(t *testing.T) {
	s := newTestServer(t, "echo built", oneFailing, "touch never")
	text, r, isError := s.runTests(s.connect(), nil)
	if isError || r.Passed || !r.Ran || r.FailedTests != 1 || *r.CallsLeft != 19 || len(r.Failures) != 1 || r.Failures[0].Name != "example.com/sum TestSum" || r.Failures[0].Assertion != "sum_test.go:9: got 3, want 4" {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"FAILED: ", "exit code 1", "- example.com/sum TestSum", "got 3, want 4", "FAIL\texample.com/sum", "left: 19"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(s.spec.Dir, "never")); err == nil {
		t.Error("the tool ran another command after a failure")
	}
	if j := s.journal(); len(j) != 1 || j[0].Passed || j[0].Failed != 1 || j[0].At.IsZero() {
		t.Errorf("journal %+v", j)
	}
}

func TestRunTestsReportsSuccess(t *testing.T) {
	s := newTestServer(t, "printf 'ok  \\texample.com/sum\\t0.1s\\n'", `printf 'TAP version 14\n1..2\nok 1 - a\nok 2 - b\n'`)
	text, r, isError := s.runTests(s.connect(), map[string]any{})
	if isError || !r.Passed || r.PassedTests != 2 || !strings.HasPrefix(text, "PASSED") || strings.Contains(text, "TAP version") {
		t.Errorf("%s\n%+v", text, r)
	}
	if j := s.journal(); len(j) != 1 || !j[0].Passed || j[0].PassedTests != 2 {
		t.Errorf("journal %+v", j)
	}
}

// base runs the commands on the base, whose file "state" has this content, and puts the results into the spec.
func (s *testServer) base(tree string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.spec.Dir, "state"), []byte(tree), 0o600); err != nil {
		s.t.Fatal(err)
	}
	tool := newTestTool(s.spec, zerolog.Nop())
	for _, command := range s.spec.Commands {
		v, err := tool.run(s.t.Context(), command)
		if err != nil {
			s.t.Fatal(err)
		}
		s.spec.Before = append(s.spec.Before, v)
	}
}

// tapOfState reports the tests in the file "state". A line has a result (ok, bad or flaky), a test's name and its
// assertion's message. A flaky test fails every other time.
const tapOfState = `echo TAP version 14; n=0; bad=0; while read -r how name said; do n=$((n+1))
  [ $how = flaky ] && { if [ -e seen ]; then rm seen; how=ok; else touch seen; how=bad; fi; }
  if [ $how = ok ]; then echo "ok $n - $name"; else bad=1; echo "not ok $n - $name"; echo "  ---"; echo "  message: $said"; echo "  ..."; fi
done < state; echo 1..$n; exit $bad`

func TestRunTestsComparesWithTheBase(t *testing.T) {
	const old = "bad old expected 1\n"
	for _, tc := range []struct {
		name, base, now string
		passed          bool
		failing         string // newly failing tests
		want, never     []string
	}{
		{"a failure as on the base does not count", old + "ok new\n", old + "ok new\n", true, "",
			[]string{"PASSED: 1 test still fails, as before.", "Failed the same way before you began; leave it: old."}, []string{"Failing tests", "FAILED"}},
		{"a new failure comes first", old + "ok new\n", old + "bad new got 3\n", false, "new",
			[]string{"FAILED: `", "exit code 1", "Failing tests:\n- new\n\nnew:\nmessage: got 3\n\nFailed the same way", "leave it: old."}, nil},
		{"another assertion is a failure", old, "bad old expected 2\n", false, "old", []string{"Failing tests:\n- old\n", "expected 2"}, []string{"leave it"}},
		{"a fixed test is reported", old + "bad other x\n", "ok old\nbad other x\n", true, "",
			[]string{"Failed before you began, and passes now: old.", "leave it: other."}, []string{"Failing tests"}},
		{"a flaky test is reported", "ok shaky\n", "flaky shaky sometimes\n", true, "",
			[]string{"PASSED: all verify commands succeeded.", "Flaky (failed, then passed in a second run); leave it: shaky."}, []string{"Failing tests"}},
		{"no failure", "ok new\n", "ok new\n", true, "", []string{"PASSED: all verify commands succeeded.", "Tests: 0 failed, 1 passed."}, []string{"leave it", "passes now"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newTestServer(t, tapOfState)
			s.base(tc.base)
			if err := os.WriteFile(filepath.Join(s.spec.Dir, "state"), []byte(tc.now), 0o600); err != nil {
				t.Fatal(err)
			}
			text, r, isError := s.runTests(s.connect(), nil)
			var failing []string
			for _, f := range r.Failures {
				failing = append(failing, f.Name)
			}
			if isError || r.Passed != tc.passed || strings.Join(failing, " ") != tc.failing || r.FailedTests != len(failing) {
				t.Errorf("%s\n%+v", text, r)
			}
			whole := text + strings.Join(r.Notes, "\n")
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			for _, never := range tc.never {
				if strings.Contains(whole, never) {
					t.Errorf("%q is in\n%s", never, text)
				}
			}
			if j := s.journal(); len(j) != 1 || j[0].Passed != tc.passed {
				t.Errorf("journal %+v", j)
			}
		})
	}
}

func TestBrokenCommandIsNotTheAgentsTask(t *testing.T) {
	s := newTestServer(t, "no-such-program-of-pawl")
	s.base("")
	text, r, _ := s.runTests(s.connect(), nil)
	if r.Passed || !strings.Contains(text, "cannot work here: exit code 127") || !strings.Contains(text, "leave it") {
		t.Errorf("%s\n%+v", text, r)
	}
	slow := newTestServer(t, "sleep 1000")
	slow.spec.Timeout, slow.spec.Before = 1, []policy.Verified{{Command: "sleep 1000", TimedOut: true}}
	if text, r, _ := slow.runTests(slow.connect(), nil); r.Passed || !strings.Contains(text, "It failed the same way before you began: leave it") {
		t.Errorf("%s\n%+v", text, r)
	}
}

func TestJUnitReportsAreRead(t *testing.T) {
	s := newTestServer(t, `mkdir -p out; echo '<testsuite tests="1" failures="1"><testcase classname="acme.Widget" name="sorts"><failure message="expected 1 but was 2">x</failure></testcase></testsuite>' > out/report.xml; exit 1`)
	s.spec.Reports = []string{"out/*.xml"}
	if text, r, _ := s.runTests(s.connect(), nil); len(r.Failures) != 1 || !strings.Contains(text, "expected 1 but was 2") {
		t.Errorf("%s\n%+v", text, r)
	}
}

func TestOnceAnswersWithoutTheProtocol(t *testing.T) {
	s := newTestServer(t, oneFailing)
	s.spec.MaxCalls = 2
	text, passed := Once(t.Context(), s.spec, zerolog.Nop())
	answer, _, _ := s.runTests(s.connect(), nil)
	if want := strings.Replace(answer, "left: 0", "left: 1", 1); passed || text != want {
		t.Errorf("%v %s\nwant\n%s", passed, text, want)
	}
	if text, passed := Once(t.Context(), s.spec, zerolog.Nop()); passed || !strings.Contains(text, "called 2 times") {
		t.Errorf("the third call: %v %s", passed, text)
	}
	s.spec.Commands, s.spec.Journal = []string{"true"}, s.spec.Journal+".2"
	if text, passed := Once(t.Context(), s.spec, zerolog.Nop()); !passed {
		t.Error(text)
	}
}

func TestToolIsDescribedAndReadOnly(t *testing.T) {
	s := newTestServer(t, "go test ./...")
	list, err := s.connect().ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 {
		t.Fatalf("%v %+v", err, list)
	}
	tool := list.Tools[0]
	if tool.Name != "run_tests" || !tool.Annotations.ReadOnlyHint {
		t.Errorf("%+v", tool)
	}
	for _, want := range []string{"no arguments are needed", "not a shell or a sandbox for arbitrary code", "go test ./...", "at most 20 times", "there before you began does not count"} {
		if !strings.Contains(tool.Description, want) {
			t.Errorf("%q is not in %q", want, tool.Description)
		}
	}
	schema, err := json.Marshal(tool.InputSchema)
	if err != nil || string(schema) != `{"additionalProperties":false,"properties":{},"type":"object"}` {
		t.Errorf("%v %s", err, schema)
	}
}

func TestUnknownArgumentGetsHelp(t *testing.T) {
	s := newTestServer(t, "touch ran")
	text, r, isError := s.runTests(s.connect(), map[string]any{"target": "unit", "command": "rm -rf /"})
	if !isError || r.Ran || r.CallsLeft != nil || !strings.Contains(text, `"command", "target"`) || !strings.Contains(text, "needs no arguments") {
		t.Errorf("%v %s", isError, text)
	}
	if _, err := os.Stat(filepath.Join(s.spec.Dir, "ran")); err == nil || len(s.journal()) != 0 {
		t.Error("a command ran, or the call was counted")
	}
}

func TestWithoutVerifyCommandsRunTestsSaysSo(t *testing.T) {
	s := newTestServer(t)
	text, r, isError := s.runTests(s.connect(), nil)
	if isError || r.Ran || !strings.Contains(text, "no verify commands") {
		t.Errorf("%v %s", isError, text)
	}
}

func TestCallLimitSurvivesARestart(t *testing.T) {
	s := newTestServer(t, "echo >> runs")
	s.spec.MaxCalls = 3
	session := s.connect()
	s.runTests(session, nil)
	s.runTests(session, nil)
	session.Close()
	session = s.connect()
	if _, r, _ := s.runTests(session, nil); !r.Passed || *r.CallsLeft != 0 {
		t.Errorf("third call: %+v", r)
	}
	text, r, _ := s.runTests(session, nil)
	if r.Ran || !strings.Contains(text, "called 3 times") || !strings.Contains(text, "final verification runs anyway") {
		t.Errorf("fourth call: %s", text)
	}
	if b, _ := os.ReadFile(filepath.Join(s.spec.Dir, "runs")); len(b) != 3 || len(s.journal()) != 3 {
		t.Errorf("%d runs, journal %+v", len(b), s.journal())
	}
}

func TestHangingCommandEndsWithItsChildren(t *testing.T) {
	s := newTestServer(t, "sleep 1000 & echo $! > child; echo started; wait")
	s.spec.Timeout = 1
	text, r, isError := s.runTests(s.connect(), nil)
	if isError || r.Passed || !strings.Contains(text, "ended after 1s") || r.LastLines != "started" {
		t.Errorf("%s\n%+v", text, r)
	}
	s.gone("child")
}

func TestLeftoverProcessesAreKilled(t *testing.T) {
	s := newTestServer(t, "sleep 1000 & echo $! > child")
	if text, r, _ := s.runTests(s.connect(), nil); !r.Passed {
		t.Error(text)
	}
	s.gone("child")
}

// gone waits until the process whose id is in a file of the tree has ended.
func (s *testServer) gone(file string) {
	s.t.Helper()
	pid := s.pid(file)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("process %d still runs", pid)
		}
	}
}

// pid waits for a process id in a file of the tree.
func (s *testServer) pid(file string) int {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(s.spec.Dir, file))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && strings.HasSuffix(string(b), "\n") {
			return pid
		}
		if time.Now().After(end) {
			s.t.Fatalf("no process id in %s", file)
		}
	}
}

func TestCancelledCallEndsItsCommand(t *testing.T) {
	s := newTestServer(t, "echo $$ > child; sleep 1000")
	session := s.connect()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_tests"})
		done <- err
	}()
	s.pid("child")
	cancel()
	if err := <-done; err == nil {
		t.Error("the call succeeded")
	}
	s.gone("child")
}

func TestServerEndsWithItsClient(t *testing.T) {
	s := newTestServer(t, "echo $$ > child; sleep 1000")
	raw := s.raw()
	raw.hello()
	raw.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_tests","arguments":{}}}`)
	s.pid("child")
	raw.stdin.Close()
	io.Copy(io.Discard, raw.stdout)
	raw.cmd.Wait()
	s.gone("child")
}

func TestHugeOutputIsLimited(t *testing.T) {
	s := newTestServer(t, `yes '<a line of output & more "quotes">' | head -c 4000000; i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf -- '--- FAIL: Test%0200d (0.00s)\n    <%01000d>\n' $i $i; done; exit 7`)
	text, r, _ := s.runTests(s.connect(), nil)
	if r.Passed || len(r.Failures) == 0 || r.More == 0 || !strings.Contains(text, "exit code 7") {
		t.Errorf("%s\n%+v", text, r)
	}
}

func TestCommandsDoNotSeeCredentials(t *testing.T) {
	s := newTestServer(t, "env; exit 1")
	text, r, _ := s.runTests(s.connect(), nil)
	s.spec.Commands = []string{`test -z "$AGENT_API_KEY$GH_TOKEN" && test "$PLAIN" = visible`}
	_, r2, _ := s.runTests(s.connect(), nil)
	if strings.Contains(text, "planted") || r.Passed || !r2.Passed {
		t.Errorf("%s\n%+v", text, r2)
	}
}

func TestCallsRunOneAtATime(t *testing.T) {
	s := newTestServer(t, "mkdir busy || exit 1; echo x >> runs; rmdir busy")
	raw := s.raw()
	raw.hello()
	for id := range 5 {
		raw.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_tests"}}`, id+10))
	}
	for range 5 {
		if answer := raw.receive(); !strings.Contains(answer, `"passed":true`) {
			t.Error(answer)
		}
	}
}

// rawClient speaks JSON lines without the SDK.
type rawClient struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

func (s *testServer) raw() *rawClient {
	s.t.Helper()
	cmd := s.command()
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { in.Close(); cmd.Wait() })
	return &rawClient{s.t, cmd, in, bufio.NewReader(out)}
}

func (r *rawClient) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.stdin, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// receive reads one line, which must be JSON: standard output carries nothing else.
func (r *rawClient) receive() string {
	r.t.Helper()
	line, err := r.stdout.ReadString('\n')
	if err != nil || !json.Valid([]byte(line)) {
		r.t.Fatalf("%v: %q", err, line)
	}
	return line
}

func (r *rawClient) hello() {
	r.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	if answer := r.receive(); !strings.Contains(answer, `"tools"`) || !strings.Contains(answer, `"2025-06-18"`) {
		r.t.Fatal(answer)
	}
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func TestRawLinesAreAnswered(t *testing.T) {
	s := newTestServer(t, "true")
	raw := s.raw()
	raw.hello()
	for _, tc := range [][2]string{
		{`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `"result":{}`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_tests","arguments":{"x":1}}}`, `"isError":true`},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run_tests","arguments":null}}`, `"passed":true`},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"run_tests","arguments":[1]}}`, `not a JSON object`},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"shell","arguments":{}}}`, `"error"`},
	} {
		raw.send(tc[0])
		if answer := raw.receive(); !strings.Contains(answer, tc[1]) {
			t.Errorf("%s: %s", tc[0], answer)
		}
	}
}

func TestWrongSpecIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spec.json")
	for _, tc := range [][2]string{
		{`{"dir":"tree","timeout_seconds":1,"max_calls":1,"journal":"/x"}`, "dir"},
		{`{"dir":"/","timeout_seconds":0,"max_calls":1,"journal":"/x"}`, "timeout_seconds"},
		{`{"dir":"/","timeout_seconds":1,"max_calls":0,"journal":"/x"}`, "max_calls"},
		{`{"dir":"/","timeout_seconds":1,"max_calls":1,"journal":"x"}`, "whole path"},
		{`{"dir":"/","timeout_seconds":1,"max_calls":1,"journal":"/x","shell":true}`, "shell"},
		{`nothing`, "spec"},
	} {
		if err := os.WriteFile(file, []byte(tc[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSpec(file); err == nil || !strings.Contains(err.Error(), tc[1]) {
			t.Errorf("%.80s: %v, want %q", tc[0], err, tc[1])
		}
	}
}
