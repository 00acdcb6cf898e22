package testreport

import "strings"

// mocha reads Mocha's final output, which is the same for all reporters. A test's name is "suite › test".
func mocha(m *ruled) []rule {
	var title []string // a failure's title, one line per level
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
			blank := strings.TrimSpace(g[0]) == ""
			if d := indent(g[0]); !blank && d > depth && d%2 == 1 {
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
			switch {
			case form(nodeStack).MatchString(g[0]):
				stack = true
			case stack && g[0] == "":
				return m.ends(nil)
			}
			return m.inside(g)
		}},
	}
}
