package attempt

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// close ends the access and moves the gateway's counts into the receipt.
func (m *modelAccess) close(r *policy.Receipt) {
	session := m.session.Load()
	if session == nil {
		return
	}
	u := session.Close()
	m.last = u.Last
	r.Gateway = true
	if u.Requests+u.Refused == 0 {
		seen(r, gateway.Last{Why: "no call"})
		return
	}
	used := spentOf(u)
	r.Tokens, r.CostUSD = used.Tokens, used.CostUSD
	r.Context = u.MaxContext
	if r.Turns == 0 {
		r.Turns = u.Turns
	}
	if u.NoAnswer.Times > 0 {
		r.Rungs = append(r.Rungs, askedAgain(u))
	}
	limit := cmp.Or(u.Limit, m.refused.Load())
	switch {
	case u.BudgetStopped != "":
		stoppedByBudget(r, u.BudgetStopped)
	case limit != nil:
		refused(r, bounded(limit))
	default:
		seen(r, u.Last)
	}
}

// stoppedByBudget records that the gateway refused a call for a used-up budget.
func stoppedByBudget(r *policy.Receipt, why string) {
	r.Limit = nil
	if r.Ending == policy.Completed { // the agent finished without the refused call
		r.Reasons = append(r.Reasons, why)
		return
	}
	r.Ending, r.Budget = policy.TurnLimit, why
	r.Detail = tail(oneLine(why), maxDetail)
	r.Reasons = []string{why} // the CLI's message about a used-up plan is wrong
}

// askedAgain returns the gateway's recovery from empty answers.
func askedAgain(u gateway.Usage) policy.Rung {
	n := u.NoAnswer
	rung := policy.Rung{
		Rung:         policy.RungAnswer,
		Times:        n.Times,
		Helped:       n.Recovered,
		Recovered:    n.Recovered == n.Times,
		Tokens:       n.Tokens,
		WastedTokens: n.Wasted,
		Trigger:      fmt.Sprintf("%d answers without a tool call or text", n.Times),
		Response:     "asked again in the opposite thinking mode, at the gateway",
	}
	if u.CostKnown {
		rung.CostUSD, rung.WastedUSD = &n.CostUSD, &n.WastedUSD
	}
	return rung
}

// ofProvider lists endings that only the gateway may report.
var ofProvider = []policy.Ending{policy.UsageLimit, policy.RateLimited, policy.Overloaded, policy.Auth, policy.Disconnected}

// seen corrects the ending with the last main answer. Limits that only the agent printed count as a crash and do not
// limit the account.
func seen(r *policy.Receipt, last gateway.Last) {
	ending := r.Ending
	r.Limit = nil
	switch {
	case outweighs(last, ending):
		r.Ending = last.Ending
	case slices.Contains(ofProvider, ending):
		r.Ending = policy.Crashed
	}
	if r.Ending != ending {
		r.Reasons = append(r.Reasons, fmt.Sprintf("the agent's output says %s; the gateway saw %s", render.Spaced(ending), last.Why))
	}
}

// ofPawl lists endings that Pawl caused; no answer overrides them.
var ofPawl = []policy.Ending{policy.TimedOut, policy.Killed, policy.Misconfigured}

// outweighs reports whether the last main answer overrides the agent's output.
func outweighs(last gateway.Last, ending policy.Ending) bool {
	if slices.Contains(ofPawl, ending) {
		return false
	}
	completed := ending == policy.Completed
	switch last.Ending {
	case policy.CutOff, policy.NoAnswer:
		return !completed || !last.Empty
	case policy.Disconnected:
		return !completed
	default:
		return false
	}
}

// refused records a limit without a later answer. The limit overrides the agent's ending unless the agent completed.
// Limits of the account count in either case.
func refused(r *policy.Receipt, seen *policy.Limit) {
	ending := r.Ending
	if ending == policy.Completed {
		if !ofAccount(seen.Kind) {
			r.Limit = nil
			return
		}
		r.Limit = seen
		r.Reasons = append(r.Reasons, "the gateway saw a limit that the agent did not report: "+seen.Message)
		return
	}
	if ending != seen.Kind {
		r.Reasons = append(r.Reasons, fmt.Sprintf("the gateway saw %s: %s", render.Spaced(seen.Kind), seen.Message))
	}
	r.Limit, r.Ending = seen, seen.Kind
	r.Detail = cmp.Or(r.Detail, tail(oneLine(seen.Message), maxDetail))
}
