package testreport

import (
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// mocha reads what Mocha prints at the end, whichever reporter was used before. A test is "suite › test".
func mocha(m *ruled) []rule {
	var title []string // of a failure, one line each, deeper and deeper
	depth, stack := 0, false
	return []rule{
		{`^  \d+ (passing|pending|failing)(?: \(\d+\w+\))?$`, func(g []string) bool {
			if g[1] != "passing" && !m.hasCounts {
				return false
			}
			m.close()
			m.last = 0
			return m.summary(g[0])
		}},
		{`^  (\d+)\) (.+)$`, func(g []string) bool {
			if m.last >= m.failed || !m.next(g[1]) {
				return false
			}
			m.close()
			title, depth = []string{g[2]}, len("  1) ")
			return true
		}},
		{"", func(g []string) bool {
			if title == nil {
				return false
			}
			if d := indent(g[0]); d > depth && d < len(g[0]) && d%2 == 1 {
				title, depth = append(title, strings.TrimSpace(g[0])), d
				return true
			}
			m.begin(strings.TrimSuffix(strings.Join(title, " › "), ":"), upTo(nodeStack))
			title, stack = nil, false
			return m.inside(g)
		}},
		{`^ Exception during run: (.+)$`, func(g []string) bool {
			m.begin("mocha [suite failed to run]", upTo(nodeStack))
			stack = false
			return m.within.add(g[1])
		}},
		{"", func(g []string) bool {
			if m.within == nil {
				return false
			}
			if stack = stack || form(nodeStack).MatchString(g[0]); stack && g[0] == "" {
				return m.ends(nil)
			}
			return m.inside(g)
		}},
	}
}

// playwright reads Playwright's reporters for people. A test is "[project] › file › suite › test"; one that
// passed when it was tried again has not failed.
func playwright(p *ruled) []rule {
	section, load := "", "" // of the list at the end; the last error before any test
	return []rule{
		{`^ +(\d+\) )?(\[[^\]]+\] › )?(\S.*?\.\w+):\d+:\d+ › (.+?)(?: ─*)?$`, func(m []string) bool {
			name := m[2] + m[3] + " › " + m[4]
			switch {
			case m[1] != "":
				return p.begin(name, upTo(`^\s*(?:>? *\d+ \||at .*:\d+$|Error Context: |Retry #\d+ )`))
			case section == "failed" || section == "interrupted":
				return p.note(name, "")
			case section == "flaky":
				p.list = slices.DeleteFunc(p.list, func(f policy.Failing) bool { return f.Name == stableName(name) })
				return true
			}
			return false
		}},
		{`^  \d+ (failed|interrupted|flaky|skipped|did not run|passed)(?: \([0-9.]+\w+\))?$`, func(m []string) bool {
			p.close()
			section = m[1]
			return p.summary(m[0])
		}},
		{deeper, p.inside},
		{"", p.ends},
		{`^   at (\S+\.\w+):\d+$`, func(m []string) bool { return load != "" && p.note(m[1]+" [suite failed to run]", load) }},
		{`^\w*Error: (.+)$`, func(m []string) bool {
			load = m[0]
			return m[1] == "No tests found." && p.count(0, 0, 0)
		}},
	}
}

// bun reads bun test. A test is "file › suite > test".
func bun(b *ruled) []rule {
	file, last, text := "", "", block{} // the text comes before its test's end
	gathers, loads := false, false
	return []rule{
		{`^(?:::group::)?(\S+\.[cm]?[jt]sx?):$`, func(m []string) bool {
			file = m[1]
			return true
		}},
		{`^(?:\((fail|pass|skip|todo)\)|([✗✓»✎])) (.+?)(?: \[[0-9.]+m?s\])?$`, func(m []string) bool {
			if last = ""; m[1] == "fail" || m[2] == "✗" {
				last = strings.TrimPrefix(file+" › ", " › ") + m[3]
				b.note(last, text.text())
			}
			text, gathers = block{}, false
			return true
		}},
		{`^  \^ (.+)$`, func(m []string) bool { return last != "" && b.note(last, m[1]) }},
		{`^ (?:(\d+ (?:pass|fail|skip|todo))s?|\d+ errors?)$`, func(m []string) bool {
			gathers = false
			return b.summary(m[1])
		}},
		{`^# Unhandled error between tests$|^No tests found!$`, func(m []string) bool {
			loads = m[0][0] == '#'
			return b.count(0, 0, 0)
		}},
		{`^(?:error|\w*Error): .+$`, func(m []string) bool {
			if loads {
				b.note(file+" [suite failed to run]", m[0])
			}
			text, gathers, loads = block{}, !loads, false
			return gathers && text.add(m[0])
		}},
		{"", func(m []string) bool {
			gathers = gathers && !form(nodeStack).MatchString(m[0])
			return gathers && text.add(m[0])
		}},
	}
}
