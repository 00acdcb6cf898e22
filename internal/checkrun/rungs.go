package checkrun

import (
	"fmt"
	"strings"
	"time"
)

// shownRungs bounds the recoveries that are listed, the newest of them.
const shownRungs = 20

// rungs lists the recoveries of a run; empty when none fired.
func rungs(run []Attempt) string {
	var lines []string
	for _, a := range run {
		for _, r := range a.Rungs {
			helped := "did not help"
			if r.Recovered {
				helped = "helped"
			}
			lines = append(lines, fmt.Sprintf("- attempt %d, %s: %s → %s: %s%s", a.N, rungName(r), code(r.Trigger), code(r.Response), helped, cost(r)))
		}
	}
	return strings.Join(lines[max(0, len(lines)-shownRungs):], "\n")
}

// rungName names a recovery and how often it fired.
func rungName(r Rung) string {
	name := map[int]string{1: "no answer", 2: "retry with what failed", 3: "more effort", 4: "the agent ran the tests"}[r.Rung]
	if r.Times > 1 {
		return fmt.Sprintf("rung %d, %s, %d ×", r.Rung, name, r.Times)
	}
	return fmt.Sprintf("rung %d, %s", r.Rung, name)
}

// cost is what a recovery took of tokens, money and time, in parentheses.
func cost(r Rung) string {
	var parts []string
	if r.Tokens > 0 {
		parts = append(parts, number(r.Tokens)+" tokens")
	}
	if r.CostUSD != nil {
		parts = append(parts, price(*r.CostUSD))
	}
	if r.Took >= time.Second {
		parts = append(parts, Span(r.Took))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// used is what an attempt used, in one line; empty when nothing is known.
func used(a Attempt) string {
	var parts []string
	if t := a.Tokens; t.Input > 0 || t.Output > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in (%s cached), %s out", number(t.Input), number(t.CachedInput), number(t.Output)))
	}
	if a.CostUSD != nil {
		parts = append(parts, price(*a.CostUSD))
	}
	if a.Turns > 0 {
		parts = append(parts, plural(a.Turns, "turn"))
	}
	if a.ToolCalls > 0 {
		parts = append(parts, plural(a.ToolCalls, "call")+" of tools")
	}
	return strings.Join(parts, " · ")
}
