// Command summary reads the output of go test -json and prints what a person
// wants of it: a line for each package, the output of what failed, the skipped
// tests with their reasons, and the counts as the last line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	os.Exit(run(os.Stdin, os.Stdout, os.Getenv("PAWL_NO_SKIPS") == "1"))
}

// event is one line of go test -json, as go doc test2json describes it.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
}

// report is what has been read so far.
type report struct {
	out                     io.Writer
	passed, failed, skipped int
	// text is the output of each test that has not ended.
	text  map[[2]string][]string
	skips []string
	// broken says that a package did not build or ended outside a test.
	broken bool
}

func run(in io.Reader, out io.Writer, noSkips bool) int {
	r := report{out: out, text: map[[2]string][]string{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Fprintf(out, "read the test output: %v\n", err)
			return 1
		}
	}
	return r.finish(noSkips)
}

func (r *report) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprint(r.out, string(line)) // what go prints outside the protocol
		return
	}
	key := [2]string{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "build-fail":
		r.broken = true
	case e.Action == "output":
		r.text[key] = append(r.text[key], e.Output)
	case e.Test == "":
		r.endPackage(e, key)
	default:
		r.endTest(e, key)
	}
}

func (r *report) endTest(e event, key [2]string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(r.text[key])))
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "%s in %s:\n%s", e.Test, e.Package, strings.Join(r.text[key], ""))
	default:
		return // run, pause, cont
	}
	delete(r.text, key)
}

// endPackage prints the package's own line, and everything it printed outside
// of tests where it failed.
func (r *report) endPackage(e event, key [2]string) {
	if e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
		return
	}
	for test, text := range r.text {
		if test[0] == e.Package && test[1] != "" && e.Action == "fail" {
			r.failed++
			fmt.Fprintf(r.out, "%s in %s did not end:\n%s", test[1], test[0], strings.Join(text, ""))
			delete(r.text, test)
		}
	}
	text := r.text[key]
	if e.Action == "fail" {
		r.broken = true
		fmt.Fprint(r.out, strings.Join(text, ""))
	} else if len(text) > 0 {
		fmt.Fprint(r.out, text[len(text)-1])
	}
	delete(r.text, key)
}

// reason is what the test said before it skipped, without the framing of go
// test.
func reason(text []string) string {
	var said []string
	for _, line := range text {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

func (r *report) finish(noSkips bool) int {
	if len(r.skips) > 0 {
		fmt.Fprintf(r.out, "\nskipped:\n  %s\n", strings.Join(r.skips, "\n  "))
	}
	fails := r.broken || r.failed > 0
	if noSkips && r.skipped > 0 {
		fmt.Fprintln(r.out, "skipping is not allowed here, because what the tests need can be installed")
		fails = true
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	if fails {
		return 1
	}
	return 0
}
