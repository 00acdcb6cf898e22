package feedback

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

var reviewer, reader = Actor{ID: 5, Login: "reviewer[bot]", Type: "Bot"}, Actor{ID: 6, Login: "ada", Type: "User"}

func TestSeverityComesFromTheMark(t *testing.T) {
	for text, want := range map[string]int{
		// Conventional Comments.
		"nitpick: rename it":                    Minor,
		"**suggestion (testing):** a test":      Minor,
		"issue (blocking): it leaks":            Blocking,
		"issue (ux,non-blocking): red":          Minor,
		"suggestion (security, blocking): x":    Blocking,
		"issue: it leaks":                       Ordinary,
		"non-blocking: rename it":               Minor,
		"`blocking`: it leaks":                  Blocking,
		"Optional: rename it":                   Minor,
		"First it was slow.\n\nnit: no comma":   Minor,
		"nit: no comma\n\nblocking: it leaks":   Blocking,
		"- P2: a test\n- P1: it leaks\n- P3: x": Blocking,
		// Marks as review bots print them.
		"**<sub><sub>![P1 Badge](https://img.shields.io/badge/P1-orange?style=flat)</sub></sub>  Handle the missing package**\n\nText.":         Blocking,
		"**<sub><sub>![P2 Badge](https://img.shields.io/badge/P2-yellow?style=flat)</sub></sub>  Name it**":                                     Ordinary,
		"![critical](https://www.gstatic.com/codereviewagent/critical.svg)\n\nIt leaks.":                                                        Blocking,
		"![security-high](https://www.gstatic.com/codereviewagent/security-high-priority.svg)\n\nIt leaks.":                                     Blocking,
		"![medium](https://www.gstatic.com/codereviewagent/medium-priority.svg)\n\nSlow.":                                                       Ordinary,
		"_⚠️ Potential issue_ | _🔴 Critical_\n\n**It leaks.**":                                                                                  Blocking,
		"_🛠️ Refactor suggestion_ | _🔵 Trivial_\n\n**Name it.**":                                                                                Minor,
		"### It leaks\n\n**High Severity**\n\n<!-- DESCRIPTION START -->":                                                                       Blocking,
		"### It is slow\n\n**Low Severity**":                                                                                                    Minor,
		"<a href=\"#\"><img alt=\"P1\" src=\"https://greptile-static-assets.s3.amazonaws.com/badges/p1.svg?v=9\" align=\"top\"></a> **No cap**": Blocking,
		"🟡 **Nit:** no comma":        Minor,
		"🔴 **Important** — it leaks": Blocking,
		"[nitpick] no comma":         Minor,
		"[P1] It leaks":              Blocking,
		"Severity: high\nIt leaks":   Blocking,
		// No marks.
		"It leaks.":                                  Ordinary,
		"High CPU usage here":                        Ordinary,
		"High-level remarks: none":                   Ordinary,
		"Critical to see is that it leaks":           Ordinary,
		"Low hanging fruit":                          Ordinary,
		"This is not critical: it may wait":          Ordinary,
		"> P1: it leaks\n\nThat is done.":            Ordinary,
		"```suggestion\ncritical: true\n```":         Ordinary,
		"Summary\n\n**Critical: 0**":                 Ordinary,
		"| Critical | Major |\n|---|---|\n| 0 | 0 |": Ordinary,
		"<!-- critical: x -->\nIt leaks.":            Ordinary,
		"":                                           Ordinary,
		strings.Repeat("[", 60000):                   Ordinary,
	} {
		if got := Severity(Remark{Source: policy.FromReviewComment, Actor: reviewer, Text: text}); got != want {
			t.Errorf("%.80q is read as %d, want %d", text, got, want)
		}
	}
}

func TestReviewRemarksAreRecognised(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Remark
		want int
	}{
		{"a review", Remark{Source: policy.FromReview, Actor: reader, Text: "nit: no comma"}, Minor},
		{"a review that requests changes", Remark{Source: policy.FromReview, Actor: reader, State: "changes_requested", Text: "nit: no comma"}, Blocking},
		{"a bot's comment", Remark{Source: policy.FromComment, Actor: reviewer, Text: "P1: it leaks"}, Blocking},
		{"a user's comment", Remark{Source: policy.FromComment, Actor: reader, Text: "P1: it leaks"}, 0},
		{"a check run", Remark{Source: policy.FromCheckRun, Actor: reviewer, Text: "P1: it leaks"}, 0},
		{"a button", Remark{Source: policy.FromButton, Actor: reader, Name: "retry"}, 0},
	} {
		if got := Severity(c.r); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
