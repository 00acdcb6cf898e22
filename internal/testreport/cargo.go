package testreport

import (
	"regexp"
	"strings"
)

var (
	cargoTest    = regexp.MustCompile(`^test (.+?) \.\.\. (?:.*\b)?(ok|FAILED|ignored)(?:, .*)?$`)
	cargoResult  = regexp.MustCompile(`^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;`)
	cargoOutput  = regexp.MustCompile(`^---- (.+?) (?:stdout|stderr) ----$`)
	cargoAfter   = regexp.MustCompile(`^error: .*(?:, to rerun pass|targets? failed:|test run failed)`)
	cargoCompile = regexp.MustCompile("^error: could not compile `([^`]+)`")
	cargoLine    = regexp.MustCompile(` \(line \d+\)$`)
	nextestState = regexp.MustCompile(`^ +(?:TRY \d+ )?(PASS|FAIL|FLAKY|LEAK|TIMEOUT|ABORT|SIG[A-Z]+|XFAIL|SLOW) +\[ *[>0-9.]+s\] +(?:\( *\d+/\d+\) +)?(\S+ +\S.*?)$`)
	nextestTotal = regexp.MustCompile(`^ +Summary \[ *[0-9.]+s\] +[0-9/]+ tests? run: (.+)$`)
	nextestTitle = regexp.MustCompile(`^--- (?:TRY \d+ )?(?:STDOUT|STDERR|OUTPUT): +(\S+ +\S.*?) +---$`)
)

// cargoReader reads cargo test (libtest) and cargo nextest, and the errors of the
// compiler. A test goes by its path; that of another crate with the same path is
// taken for the same one, because cargo names the crate on the other stream, whose
// lines come in no fixed order. A crate that does not compile is one failure.
type cargoReader struct {
	tally

	next   bool // the open failure is nextest's
	listed bool // within the list of failures at the end

	errors block
	inErr  bool
}

func (c *cargoReader) line(s string) bool {
	if c.nextest(s) {
		return true
	}
	if c.within != nil && c.next {
		if strings.Trim(s, "-─ ") != "" {
			c.take(s)
		}
		return true
	}
	switch {
	case strings.HasPrefix(s, "test result: "):
		c.totals(s)
		return true
	case strings.HasPrefix(s, "---- "):
		if m := cargoOutput.FindStringSubmatch(s); m != nil {
			c.begin(cargoName(m[1]), cargoText)
			c.next = false
			return true
		}
	case s == "failures:":
		c.close()
		c.listed = c.seen
		return c.seen
	case c.within != nil:
		c.take(s)
		return true
	case c.listed && strings.HasPrefix(s, "    "):
		c.add(cargoName(s), "")
		return true
	case strings.HasPrefix(s, "test "):
		if m := cargoTest.FindStringSubmatch(s); m != nil {
			c.seen = true
			if m[2] == "FAILED" {
				c.add(cargoName(m[1]), "")
			}
			return true
		}
	}
	c.listed = c.listed && s == ""
	return c.compiler(s)
}

// cargoName is a test's path without what cargo says about it.
func cargoName(s string) string {
	s = strings.TrimSuffix(strings.TrimSpace(s), " - should panic")
	return cargoLine.ReplaceAllString(s, "")
}

func (c *cargoReader) totals(s string) {
	c.close()
	c.listed = false
	if m := cargoResult.FindStringSubmatch(s); m != nil {
		n := numbers(m)
		c.count(n[0], n[1], n[2])
	}
}

// cargoText leaves out the stack.
func cargoText(b *block) string {
	text, _, _ := strings.Cut(b.text(), "\nstack backtrace:")
	return text
}

// compiler takes the errors of rustc up to the line that names the crate.
func (c *cargoReader) compiler(s string) bool {
	if m := cargoCompile.FindStringSubmatch(s); m != nil {
		c.seen, c.inErr = true, false
		before := len(c.list)
		c.add(m[1]+" [build failed]", c.errors.text())
		c.failed += len(c.list) - before // the crate and its tests are one
		return true
	}
	switch {
	case strings.HasPrefix(s, "error[E"):
		c.seen, c.inErr = true, true
	case cargoAfter.MatchString(s):
		c.inErr = false
	case strings.HasPrefix(s, "error: "):
		c.inErr = c.seen || c.inErr
	case s == "", strings.HasPrefix(s, "warning"):
		c.inErr = false
	}
	if c.inErr {
		c.inErr = c.errors.add(s)
	}
	return c.inErr
}

func (c *cargoReader) nextest(s string) bool {
	if m := nextestTitle.FindStringSubmatch(s); m != nil {
		if name := nextestName(m[1]); c.within == nil || c.names[0] != name {
			c.begin(name, nextestText)
			c.next = true
		}
		return true
	}
	if !strings.HasPrefix(s, " ") {
		return false
	}
	if m := nextestTotal.FindStringSubmatch(s); m != nil {
		c.close()
		c.summary(m[1])
		return true
	}
	m := nextestState.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	c.close()
	c.seen = true
	switch m[1] {
	case "PASS", "SLOW", "FLAKY", "LEAK":
		return true
	}
	if c.hasCounts {
		c.add(nextestName(m[2]), "") // the list behind the summary
		return true
	}
	// Newer versions print the output under this line, older ones under a title.
	c.begin(nextestName(m[2]), nextestText)
	c.next = true
	return true
}

// nextestText is what a test printed, from its panic on where it has one: before
// stand libtest's own lines.
func nextestText(b *block) string {
	s := cargoText(b)
	if i := strings.Index(s, "thread '"); i >= 0 {
		return dedent(s[strings.LastIndex(s[:i], "\n")+1:])
	}
	return s
}

// nextestName is "crate test" with one space.
func nextestName(s string) string { return strings.Join(strings.Fields(s), " ") }

func (c *cargoReader) report() Report {
	c.close()
	if c.errors.lines > 0 && len(c.list) == 0 {
		c.failed++
		c.add("cargo [build failed]", c.errors.text())
	}
	return c.tally.report()
}
