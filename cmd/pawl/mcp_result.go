package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlbot/pawl/policy"
)

// maxAnswer bounds the text and the structured content of an answer each, in
// bytes. Codex gives its model the structured content instead of the text where
// there is one (convert_call_tool_result_to_function_call_output_payload in
// codex-rs); recorded runs of the other CLIs
// show the text. So each must tell all.
const maxAnswer = 4 << 10

// How much an answer shows where it fits.
const (
	shownFailures   = 20
	shownAssertions = 3
	shownAssertion  = 500 // bytes
	shownLines      = 20
	shownTail       = 1200 // bytes
)

// testResult is the structured content of an answer.
type testResult struct {
	Ran          bool          `json:"ran"` // false: no test was run, the summary says why
	Passed       bool          `json:"passed"`
	Summary      string        `json:"summary"`
	Command      string        `json:"command,omitempty"` // the one that failed
	PassedTests  *int          `json:"passed_tests,omitempty"`
	FailedTests  *int          `json:"failed_tests,omitempty"`
	SkippedTests *int          `json:"skipped_tests,omitempty"`
	Failures     []testFailure `json:"failures,omitempty"`
	More         int           `json:"more_failures,omitempty"` // that are not listed
	LastLines    string        `json:"last_lines,omitempty"`
	CallsLeft    *int          `json:"calls_left,omitempty"` // after a call that ran

	failures []policy.Failure
	output   string
}

type testFailure struct {
	Name      string `json:"name"`
	Assertion string `json:"assertion,omitempty"`
}

// answer makes the result of a call, smaller until it fits.
func answer(r testResult, isError bool) *mcp.CallToolResult {
	for scale := 1; ; scale *= 2 {
		shrunk := r.shown(scale)
		text := shrunk.text()
		b, err := json.Marshal(shrunk)
		if err == nil && len(text) <= maxAnswer && len(b) <= maxAnswer || scale > shownTail {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: json.RawMessage(b), IsError: isError}
		}
	}
}

// shown fills in the failures and the last lines, less of them at a larger scale.
func (r testResult) shown(scale int) testResult {
	r.Failures = nil
	n := min(len(r.failures), max(1, shownFailures/scale))
	assertions := 0
	for _, f := range r.failures[:n] {
		shown := testFailure{Name: short(f.Name, max(60, 300/scale))}
		if f.Text != "" && assertions < shownAssertions {
			shown.Assertion = short(f.Text, shownAssertion/scale)
			assertions++
		}
		r.Failures = append(r.Failures, shown)
	}
	r.More = len(r.failures) - n
	if r.FailedTests != nil {
		r.More = max(r.More, *r.FailedTests-n)
	}
	if !r.Passed && r.output != "" {
		r.LastLines = lastLines(r.output, shownLines, shownTail/scale)
	}
	return r
}

// text is the answer for a model that reads prose.
func (r testResult) text() string {
	var b strings.Builder
	b.WriteString(r.Summary)
	if !r.Ran {
		return b.String()
	}
	var counts []string
	for _, c := range []struct {
		n    *int
		word string
	}{{r.FailedTests, "failed"}, {r.PassedTests, "passed"}, {r.SkippedTests, "skipped"}} {
		if c.n != nil {
			counts = append(counts, fmt.Sprintf("%d %s", *c.n, c.word))
		}
	}
	if counts != nil {
		fmt.Fprintf(&b, "\nTests: %s.", strings.Join(counts, ", "))
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
	if r.LastLines != "" {
		fmt.Fprintf(&b, "\n\nLast lines of the output:\n%s", r.LastLines)
	}
	if r.CallsLeft != nil {
		fmt.Fprintf(&b, "\n\nCalls of run_tests left: %d.", *r.CallsLeft)
	}
	return b.String()
}

// lastLines is the end of an output: at most so many lines and bytes.
func lastLines(s string, lines, size int) string {
	all := strings.Split(strings.TrimRight(strings.ToValidUTF8(s, "\uFFFD"), "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	s = strings.Join(all, "\n")
	if len(s) <= size {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-size:], "")
}

// short cuts text to about so many bytes.
func short(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "…"
}
