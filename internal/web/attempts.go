package web

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
)

func how(a checkrun.Attempt) string {
	var parts []string
	if a.Effort != "" {
		parts = append(parts, text.Line(a.Effort, 20))
	}
	if rung := a.Decision.Rung; rung > 0 {
		parts = append(parts, fmt.Sprintf("rung %d", rung))
	}
	if a.Decision.Escalated {
		parts = append(parts, "more effort")
	}
	if a.Decision.Different {
		parts = append(parts, "different approach")
	}
	return strings.Join(parts, ", ")
}

var endingClasses = map[policy.Outcome]string{
	policy.Edited: "done", policy.NoChange: "waiting", policy.Interrupted: "waiting", policy.Cancelled: "waiting",
	policy.Outcome(policy.UsageLimit): "waiting", policy.Outcome(policy.RateLimited): "waiting", policy.Outcome(policy.Overloaded): "waiting",
}

// endingClass is the style of how an attempt ended; a word of ours, never one of the log.
func endingClass(a checkrun.Attempt) string {
	if a.Ending == "" && a.Outcome == "" {
		return "running"
	}
	return cmp.Or(endingClasses[a.Outcome], "failed")
}

// object is the name of a git object, SHA-1 or SHA-256.
var object = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

func commit(name string) string { return text.Head(text.Line(name, 64), 10) }

// CommitURL is where GitHub shows a commit; empty for what is none.
func (d threadData) CommitURL(name string) string {
	if !object.MatchString(name) {
		return ""
	}
	return text.URL(d.repoURL + "/commit/" + name)
}

// brief is a count in three digits: 950, 12k, 1.4M.
func brief(n int64) string {
	switch {
	case n < 1_000:
		return number(n)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", (n+500)/1_000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// use is what an attempt used: the parts that are known, and the exact numbers.
type use struct {
	Parts []string
	Exact string
}

func used(a checkrun.Attempt) (u use) {
	if t := a.Tokens; t.Input > 0 || t.Output > 0 {
		u.Parts = append(u.Parts, fmt.Sprintf("%s in (%s cached)", brief(t.Input), brief(t.CachedInput)), brief(t.Output)+" out")
		u.Exact = fmt.Sprintf("%s tokens in, of which %s cached, %s out", number(t.Input), number(t.CachedInput), number(t.Output))
	}
	if a.CostUSD != nil {
		u.Parts = append(u.Parts, text.Dollars(*a.CostUSD))
	}
	if a.Turns > 0 {
		u.Parts = append(u.Parts, plural(a.Turns, "turn"))
	}
	if a.ToolCalls > 0 {
		u.Parts = append(u.Parts, plural(a.ToolCalls, "tool call"))
	}
	return u
}

func spent(r policy.Rung) string {
	var cost []string
	if r.Tokens > 0 {
		cost = append(cost, brief(r.Tokens)+" tokens")
	}
	if r.CostUSD != nil {
		cost = append(cost, text.Dollars(*r.CostUSD))
	}
	if took := r.Took(); took >= time.Second {
		cost = append(cost, text.Span(took))
	}
	return strings.Join(cost, ", ")
}
