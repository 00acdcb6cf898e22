package testreport

import "strings"

const (
	deeper    = `^(?:\s*|    .*)$`  // a line in a Jest failure's text
	nodeStack = `^\s*at .*:\d+\)?$` // a line of a Node stack trace
)

// jest reads Jest. Names and texts come from the blocks that begin with "●"; without them, names come from the tree of
// --verbose. A test's name is "file › suite › test".
func jest(j *ruled) []rule {
	file, console := "", false // console is true inside the tests' console output
	return []rule{
		{`^ ?(FAIL|PASS) {1,2}(?:(\S+) )?(\S+\.\w+)(?: \([0-9.]+ m?s\))?$`, func(m []string) bool {
			j.close()
			j.seen, file, console = true, m[3], false
			return true
		}},
		{`^  ● (.*)$`, func(m []string) bool {
			j.close()
			title := m[1]
			console = title == "Console"
			if console {
				return true
			}
			switch {
			case title == "Test suite failed to run":
				title = strings.TrimSpace(file + " [suite failed to run]")
			case file != "":
				title = file + " › " + title
			}
			return j.begin(title, upTo(nodeStack))
		}},
		{deeper, func(m []string) bool { return j.inside(m) || console }},
		{"", j.ends},
		{`^Tests: +(\d+ \w+.*), \d+ total$`, func(m []string) bool {
			file = ""
			return j.summary(m[1])
		}},
		{`^ +✕ (.*)$`, func(m []string) bool { return j.mark(m[1], "") }},
	}
}

// vitest reads Vitest. Names and texts come from the blocks that begin with FAIL; without them, from the tree's lines with
// ×. A test's name is "file > suite > test".
func vitest(v *ruled) []rule {
	marked := "" // the previous line with ×, whose reason may follow
	return []rule{
		{`^ FAIL  (.+)$`, func(m []string) bool {
			title := m[1]
			if suite := form(`^(.+?) \[ .+ \]$`).FindStringSubmatch(title); suite != nil {
				title = suite[1] + " [suite failed to run]"
			} else if !strings.Contains(title, " > ") {
				return false // Jest's line
			}
			if v.within == nil || v.within.lines > 0 {
				return v.begin(title, (*block).text)
			}
			if len(v.names) < maxFailing {
				v.names = append(v.names, title)
			}
			return true
		}},
		{`^ +Tests  (\d+ \w+.*?)(?: \(\d+\))?$`, v.numbers},
		{`^⎯⎯⎯`, func([]string) bool {
			v.close()
			v.seen, marked = true, ""
			return true
		}},
		{"", v.inside},
		{`^ +× (.+)$`, func(m []string) bool {
			marked = m[1]
			return v.mark(marked, "")
		}},
		{`^ *→ (.*)$`, func(m []string) bool { return marked != "" && v.mark(marked, m[1]) }},
		{"", func([]string) bool {
			marked = ""
			return false
		}},
	}
}
