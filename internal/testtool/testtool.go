package testtool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// Spec is the input file of pawl mcp.
type Spec struct {
	Dir string `json:"dir"`
	// Commands run in /bin/sh, in order, until one fails. There may be none.
	Commands []string `json:"commands"`
	// Reports are patterns of JUnit files.
	Reports []string `json:"reports"`
	// Before holds the known results on the base.
	Before []policy.Verified `json:"before,omitempty"`
	// Timeout limits a call with all its commands, in seconds.
	Timeout int `json:"timeout_seconds"`
	// MaxCalls limits the calls in an attempt, including calls before a restart of the tool.
	MaxCalls int `json:"max_calls"`
	// Journal is a file with one JSON line per call; see testCall.
	Journal string `json:"journal"`
}

func ReadSpec(name string) (Spec, error) {
	var s Spec
	b, err := os.ReadFile(name)
	if err != nil {
		return s, fmt.Errorf("read the spec: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("spec %s: %w", name, err)
	}
	switch {
	case !filepath.IsAbs(s.Dir):
		err = fmt.Errorf("dir %q: give the whole path of the work tree", s.Dir)
	case !filepath.IsAbs(s.Journal):
		err = fmt.Errorf("journal %q: give a whole path", s.Journal)
	case s.Timeout <= 0 || s.Timeout > 24*60*60:
		err = errors.New("timeout_seconds: use 1 to 86400")
	case s.MaxCalls <= 0:
		err = errors.New("max_calls: use a number above 0")
	}
	if err != nil {
		return s, fmt.Errorf("spec %s: %w", name, err)
	}
	return s, nil
}

// Once makes one call without the protocol. It returns the answer's text, and whether all commands passed.
func Once(ctx context.Context, spec Spec, log zerolog.Logger) (text string, passed bool) {
	r, _ := newTestTool(spec, log).result(ctx)
	text, _ = r.fitting()
	return text, r.Passed
}

// Serve answers calls until stdin or ctx ends, and then kills a running command. It writes only protocol messages to
// stdout.
func Serve(
	ctx context.Context,
	spec Spec,
	version string,
	stdin io.Reader,
	stdout io.Writer,
	log zerolog.Logger,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tool := newTestTool(spec, log)
	err := tool.server(ctx, version).Run(ctx, &mcp.IOTransport{
		Reader: io.NopCloser(endingReader{stdin, cancel}),
		Writer: keptOpen{stdout},
	})
	cancel()
	tool.idle()
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("serve run_tests: %w", err)
}

func (t *testTool) server(ctx context.Context, version string) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{
			Name:    "pawl",
			Title:   "Pawl",
			Version: version,
		},
		&mcp.ServerOptions{
			Capabilities: &mcp.ServerCapabilities{},
		},
	)
	handle := func(
		call context.Context,
		req *mcp.CallToolRequest,
	) (*mcp.CallToolResult, error) {
		call, stop := context.WithCancel(call)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		return t.call(call, req.Params.Arguments), nil
	}
	server.AddTool(t.description(), handle)
	return server
}

// endingReader calls ended when the client closes the input, so that a running command does not delay the server's end.
type endingReader struct {
	io.Reader
	ended func()
}

func (r endingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		r.ended()
	}
	return n, err
}

// keptOpen prevents the SDK from closing the writer.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// maxAnswer limits the text and the structured content, in bytes each. Both must be complete, because Codex gives its
// model only the structured content (convert_call_tool_result_to_function_call_output_payload in codex-rs).
const maxAnswer = 4 << 10

// Limits of an answer's content. The content shrinks further until it fits into maxAnswer.
const (
	shownFailures   = 20
	shownAssertions = 3
	shownAssertion  = 500 // bytes
	shownLines      = 20
	shownTail       = 1200 // bytes
)

type testResult struct {
	// Ran is false if no command ran; Summary says why.
	Ran     bool   `json:"ran"`
	Passed  bool   `json:"passed"`
	Summary string `json:"summary"`
	// Command is the failed command.
	Command     string `json:"command,omitempty"`
	PassedTests int    `json:"passed_tests,omitempty"`
	// FailedTests excludes tests in Notes.
	FailedTests int           `json:"failed_tests,omitempty"`
	Failures    []testFailure `json:"failures,omitempty"`
	// More is the number of failures that Failures does not list.
	More int `json:"more_failures,omitempty"`
	// Notes lists failures that the caller need not fix, and newly passing tests.
	Notes     []string `json:"notes,omitempty"`
	LastLines string   `json:"last_lines,omitempty"`
	// CallsLeft is set if the call ran the commands.
	CallsLeft *int `json:"calls_left,omitempty"`

	verified []policy.Verified // all commands that ran
}

type testFailure struct {
	Name      string `json:"name"`
	Assertion string `json:"assertion,omitempty"`
}

func answer(r testResult, isError bool) *mcp.CallToolResult {
	text, structure := r.fitting()
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: json.RawMessage(structure),
		IsError:           isError,
	}
}

// fitting returns text and JSON, shortened until both fit.
func (r testResult) fitting() (text string, structure []byte) {
	for scale := 1; ; scale *= 2 {
		shown := r.shown(scale)
		text = shown.text()
		b, err := json.Marshal(shown)
		fits := err == nil && len(text) <= maxAnswer && len(b) <= maxAnswer
		if fits || scale > shownTail {
			return text, b
		}
	}
}

// shown fills in the failures, the notes and the last lines. A larger scale shows less.
func (r testResult) shown(scale int) testResult {
	most := max(1, shownFailures/scale)
	nameSize := max(60, 300/scale)
	all := policy.Receipt{Verify: r.verified}
	note := func(prefix string, names []string) {
		if len(names) == 0 {
			return
		}
		list := listed(names, most, nameSize)
		r.Notes = append(r.Notes, prefix+": "+list+".")
	}
	note("Failed the same way before you began; leave it", all.Known())
	note("Flaky (failed, then passed in a second run); leave it", all.Flaky())
	note("Failed before you began, and passes now", all.Fixed())
	v := all.Deciding()
	if r.Passed || v == nil {
		return r
	}
	n, assertions := min(len(v.Failing), most), 0
	for _, f := range v.Failing[:n] {
		shown := testFailure{Name: short(f.Name, nameSize)}
		if f.Text != "" && assertions < shownAssertions {
			shown.Assertion = short(f.Text, shownAssertion/scale)
			assertions++
		}
		r.Failures = append(r.Failures, shown)
	}
	r.More = max(len(v.Failing), r.FailedTests) - n
	r.LastLines = lastLines(v.Output, shownLines, shownTail/scale)
	return r
}

// listed returns up to most test names, each shortened to size bytes, and the number of the others.
func listed(names []string, most, size int) string {
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, short(name, size))
	}
	if more := len(names) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func (r testResult) text() string {
	var b strings.Builder
	b.WriteString(r.Summary)
	if r.PassedTests+r.FailedTests > 0 {
		fmt.Fprintf(&b, "\nTests: %d failed, %d passed.", r.FailedTests, r.PassedTests)
	}
	if len(r.Failures) > 0 {
		b.WriteString("\n\nFailing tests:")
		for _, f := range r.Failures {
			b.WriteString("\n- " + f.Name)
		}
		if r.More > 0 {
			fmt.Fprintf(&b, "\n- and %d more", r.More)
		}
		for _, f := range r.Failures {
			if f.Assertion != "" {
				fmt.Fprintf(&b, "\n\n%s:\n%s", f.Name, f.Assertion)
			}
		}
	}
	for _, note := range r.Notes {
		b.WriteString("\n\n" + note)
	}
	if r.LastLines != "" {
		fmt.Fprintf(&b, "\n\nLast lines of the output:\n%s", r.LastLines)
	}
	if r.CallsLeft != nil {
		fmt.Fprintf(&b, "\n\nCalls of run_tests left: %d.", *r.CallsLeft)
	}
	return b.String()
}

func lastLines(s string, lines, size int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	s = strings.Join(all, "\n")
	if end := render.Tail(s, size); end != s {
		return "…" + end
	}
	return s
}

func short(s string, size int) string {
	if start := render.Head(s, size); start != s {
		return start + "…"
	}
	return s
}
