package testreport

import (
	"regexp"
	"strings"
)

var (
	cargoTest     = regexp.MustCompile(`^test (.+?) \.\.\. (?:.*\b)?(ok|FAILED|ignored)(?:, .*)?$`)
	cargoResult   = regexp.MustCompile(`^test result: .*`)
	cargoFailures = regexp.MustCompile(`^failures:$`)
	cargoListed   = regexp.MustCompile(`^    .*`)
	cargoOutput   = regexp.MustCompile(`^---- (.+?) (?:stdout|stderr) ----$`)
	cargoAfter    = regexp.MustCompile(`^error: .*(?:, to rerun pass|targets? failed:)`)
	cargoCompile  = regexp.MustCompile("^error: could not compile `([^`]+)`")
	cargoLine     = regexp.MustCompile(` \(line \d+\)$`)
)

// cargoReader reads cargo test (libtest) and the compiler's errors. A test goes by its path, in whichever
// crate: cargo names that on the other stream, in no fixed order. A crate that does not compile is one failure.
type cargoReader struct {
	ruled
	errors block // of the compiler, up to the line that names the crate
}

func newCargo() reader {
	c := &cargoReader{ruled: ruled{tally: tally{runner: "cargo"}}}
	listed, inErr := false, false // within the list of failures at the end; within an error of the compiler
	c.rules = []rule{
		{cargoResult, func(m []string) bool {
			c.close()
			listed = false
			return c.summary(m[0])
		}},
		{cargoOutput, func(m []string) bool { return c.begin(cargoName(m[1]), cargoText) }},
		{cargoFailures, func([]string) bool {
			c.close()
			listed = c.seen
			return c.seen
		}},
		{nil, c.inside},
		{cargoListed, func(m []string) bool { return listed && c.note(cargoName(m[0]), "") }},
		{cargoTest, func(m []string) bool {
			c.seen = true
			switch name := cargoName(m[1]); m[2] {
			case "FAILED":
				c.add(name, "")
			case "ok":
				c.pass(name)
			}
			return true
		}},
		{cargoCompile, func(m []string) bool {
			inErr = false
			before := len(c.list)
			c.note(m[1]+" [build failed]", c.errors.text())
			c.failed += len(c.list) - before // the crate and its tests are one
			return true
		}},
		{nil, func(m []string) bool {
			s := m[0]
			listed = listed && s == ""
			switch {
			case strings.HasPrefix(s, "error[E"):
				c.seen, inErr = true, true
			case s == "", strings.HasPrefix(s, "warning"), cargoAfter.MatchString(s):
				inErr = false
			case strings.HasPrefix(s, "error: "):
				inErr = c.seen || inErr
			}
			inErr = inErr && c.errors.add(s)
			return inErr
		}},
	}
	return c
}

// cargoName is a test's path without what cargo says about it.
func cargoName(s string) string {
	s = strings.TrimSuffix(strings.TrimSpace(s), " - should panic")
	return cargoLine.ReplaceAllString(s, "")
}

var cargoText = upTo(regexp.MustCompile(`^stack backtrace:`))

func (c *cargoReader) report() Report {
	c.close()
	if c.errors.lines > 0 && len(c.list) == 0 {
		c.failed++
		c.add("cargo [build failed]", c.errors.text())
	}
	return c.tally.report()
}
