package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
)

// Bounds of the lists in one attempt's row.
const (
	maxTests = 8
	maxRungs = 8
)

// used are the parts of what an attempt used, and the exact numbers; both are
// empty where nothing is known.
func used(a checkrun.Attempt) (parts []string, exact string) {
	if u := a.Tokens; u.Input > 0 || u.Output > 0 {
		parts = append(parts, fmt.Sprintf("%s in (%s cached)", brief(u.Input), brief(u.CachedInput)), brief(u.Output)+" out")
		exact = fmt.Sprintf("%s tokens in, of which %s cached, %s out", number(u.Input), number(u.CachedInput), number(u.Output))
	}
	if a.CostUSD != nil {
		parts = append(parts, dollars(*a.CostUSD))
	}
	if a.Turns > 0 {
		parts = append(parts, plural(a.Turns, "turn"))
	}
	if a.ToolCalls > 0 {
		parts = append(parts, plural(a.ToolCalls, "tool call"))
	}
	return parts, exact
}

// dollars is a price, to the cent where that says anything.
func dollars(v float64) string {
	if v != 0 && v < 0.01 {
		return fmt.Sprintf("$%.4f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// rungLine is one recovery of an attempt.
type rungLine struct{ Name, Text, Helped, Class string }

// climbed are the recoveries of an attempt with what they cost.
func climbed(all []checkrun.Rung) []rungLine {
	var lines []rungLine
	for i, r := range all {
		if i == maxRungs {
			return append(lines, rungLine{Name: "and " + plural(len(all)-maxRungs, "more recovery")})
		}
		l := rungLine{Name: fmt.Sprintf("rung %d", r.Rung), Text: line(r.Trigger, maxReason) + " → " + line(r.Response, maxReason)}
		if r.Times > 1 {
			l.Name += fmt.Sprintf(", %d ×", r.Times)
		}
		l.Helped, l.Class = "did not help", "failed"
		if r.Recovered {
			l.Helped, l.Class = "helped", "done"
		}
		var cost []string
		if r.Tokens > 0 {
			cost = append(cost, brief(r.Tokens)+" tokens")
		}
		if r.CostUSD != nil {
			cost = append(cost, dollars(*r.CostUSD))
		}
		if r.Took >= time.Second {
			cost = append(cost, checkrun.Span(r.Took))
		}
		if len(cost) > 0 {
			l.Helped += " (" + strings.Join(cost, ", ") + ")"
		}
		lines = append(lines, l)
	}
	return lines
}

// tests are the names of tests, the first of them, and how many more there are.
func tests(names []string) (shown []string, more string) {
	for _, n := range names[:min(len(names), maxTests)] {
		shown = append(shown, line(n, maxName))
	}
	if rest := len(names) - maxTests; rest > 0 {
		more = fmt.Sprintf("and %s more", number(int64(rest)))
	}
	return shown, more
}
