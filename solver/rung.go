package solver

import (
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// climbed adds the rung that an attempt itself was to its receipt: what it cost
// is what the attempt cost, and it recovered when the attempt came to what the
// one before did not.
func climbed(a Started, r *Ended) {
	rung := Rung{
		Rung: a.Decision.Rung, Times: 1, Trigger: strings.Join(a.Decision.Reasons[:min(1, len(a.Decision.Reasons))], ""),
		Tokens: r.Tokens.Input + r.Tokens.Output, CostUSD: r.CostUSD, MS: r.AgentMS,
	}
	switch a.Decision.Rung {
	case policy.RungAnswer:
		rung.Response = "one more attempt in the opposite thinking mode (" + a.Effort + ")"
		rung.Recovered = r.Ending == policy.Completed
	case policy.RungVerify:
		rung.Response = "one more attempt with the change so far and what failed"
		rung.Recovered = r.Outcome == policy.Edited
	case policy.RungEffort:
		rung.Response = "one attempt at the escalated effort"
		if a.Effort != "" {
			rung.Response += " (" + a.Effort + ")"
		}
		rung.Recovered = r.Outcome == policy.Edited
	default:
		return
	}
	r.Rungs = append(r.Rungs, rung)
}
