package testreport

import "strings"

// cargo reads cargo test (libtest) and compiler errors. Test names lack the crate, because cargo prints the crate on the
// other output stream. A crate that does not compile counts as one failure.
func cargo(c *ruled) []rule {
	listed, inErr := false, false // whether the line is in the final list of failures, or in a compiler error
	errors := block{}             // compiler errors; the line with the crate's name follows them
	c.finish = func() {
		if errors.lines == 0 || len(c.list) > 0 {
			return
		}
		c.failed++
		c.add("cargo [build failed]", errors.text())
	}
	return []rule{
		{`^test result: .*`, func(m []string) bool {
			c.close()
			listed = false
			return c.summary(m[0])
		}},
		{`^---- (.+?) (?:stdout|stderr) ----$`, func(m []string) bool { return c.begin(cargoName(m[1]), upTo(`^stack backtrace:`)) }},
		{`^failures:$`, func([]string) bool {
			c.close()
			listed = c.seen
			return c.seen
		}},
		{"", c.inside},
		{`^    .*`, func(m []string) bool { return listed && c.note(cargoName(m[0]), "") }},
		{`^test (.+?) \.\.\. (?:.*\b)?(ok|FAILED|ignored)(?:, .*)?$`, func(m []string) bool {
			c.seen = true
			switch name := cargoName(m[1]); m[2] {
			case "FAILED":
				c.add(name, "")
			case "ok":
				c.pass(name)
			}
			return true
		}},
		{"^error: could not compile `([^`]+)`", func(m []string) bool {
			inErr = false
			before := len(c.list)
			c.note(m[1]+" [build failed]", errors.text())
			c.failed += len(c.list) - before // the crate and its tests count as one failure
			return true
		}},
		// Any other line ends the list of failures.
		{`^.`, func([]string) bool {
			listed = false
			return false
		}},
		{`^error\[E`, func([]string) bool {
			c.seen, inErr = true, true
			return false
		}},
		{`^error: `, func([]string) bool {
			if c.seen {
				inErr = true
			}
			return false
		}},
		{`^$|^warning|^error: .*(?:, to rerun pass|targets? failed:)`, func([]string) bool {
			inErr = false
			return false
		}},
		{"", func(m []string) bool {
			if inErr {
				inErr = errors.add(m[0])
			}
			return inErr
		}},
	}
}

func cargoName(s string) string {
	s = strings.TrimSuffix(strings.TrimSpace(s), " - should panic")
	return form(` \(line \d+\)$`).ReplaceAllString(s, "")
}
