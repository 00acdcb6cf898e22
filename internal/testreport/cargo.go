package testreport

import (
	"regexp"
	"strings"
)

var (
	cargoTest    = regexp.MustCompile(`^test (.+?) \.\.\. (?:.*\b)?(ok|FAILED|ignored)(?:, .*)?$`)
	cargoResult  = regexp.MustCompile(`^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;`)
	cargoOutput  = regexp.MustCompile(`^---- (.+?) (?:stdout|stderr) ----$`)
	cargoAfter   = regexp.MustCompile(`^error: .*(?:, to rerun pass|targets? failed:)`)
	cargoCompile = regexp.MustCompile("^error: could not compile `([^`]+)`")
	cargoLine    = regexp.MustCompile(` \(line \d+\)$`)
)

// cargoReader reads cargo test (libtest) and the compiler's errors. A test goes by its path, in whichever
// crate: cargo names that on the other stream, in no fixed order. A crate that does not compile is one failure.
type cargoReader struct {
	tally

	listed bool // within the list of failures at the end

	errors block
	inErr  bool
}

func (c *cargoReader) line(s string) bool {
	switch {
	case strings.HasPrefix(s, "test result: "):
		c.totals(s)
		return true
	case strings.HasPrefix(s, "---- "):
		if m := cargoOutput.FindStringSubmatch(s); m != nil {
			c.begin(cargoName(m[1]), cargoText)
			return true
		}
	case s == "failures:":
		c.close()
		c.listed = c.seen
		return c.seen
	case c.inside([]string{s}):
		return true
	case c.listed && strings.HasPrefix(s, "    "):
		c.add(cargoName(s), "")
		return true
	case strings.HasPrefix(s, "test "):
		if m := cargoTest.FindStringSubmatch(s); m != nil {
			c.seen = true
			switch m[2] {
			case "FAILED":
				c.add(cargoName(m[1]), "")
			case "ok":
				c.pass(cargoName(m[1]))
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

var cargoText = upTo(regexp.MustCompile(`^stack backtrace:`))

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

func (c *cargoReader) report() Report {
	c.close()
	if c.errors.lines > 0 && len(c.list) == 0 {
		c.failed++
		c.add("cargo [build failed]", c.errors.text())
	}
	return c.tally.report()
}
