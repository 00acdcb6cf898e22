package policy

import (
	"fmt"
	"slices"
	"time"
)

// Day is the length of the window of the daily caps and budgets.
const Day = 24 * time.Hour

// bounds is rule 3: no run and no thread goes on for ever, whoever asks.
func bounds(f Facts) (Decision, bool) {
	if restarts := len(f.series()) - 1 + f.Handed.Times; restarts >= f.Limits.Restarts.Max {
		return stop(RuleRestartLimit, "Look at the attempts; say in a comment, in new words, what is to be done.",
			fmt.Sprintf("the work was restarted %d times since a person typed something new, which is its limit", restarts))
	}
	if d, over := above(f); over {
		return d, true
	}
	if d, over := budget(f); over {
		return d, true
	}
	if d, over := failedChecks(f); over {
		return d, true
	}
	today := f.since(Day)
	n, most := len(today), f.Limits.Restarts.MaxPerThreadPerDay
	if most > 0 && !f.typed() && len(f.since(2*Day+time.Hour)) >= 2*most {
		return stop(RuleDailyCap, "Say in a comment, in new words, what is to be done.",
			fmt.Sprintf("the thread's limit of %s in 24 hours was used up two days in a row", Plural(most, "attempt")))
	}
	if n < most {
		return silent()
	}
	reason := fmt.Sprintf("%s on this thread in 24 hours; its limit is %d", Plural(n, "attempt"), most)
	if most <= 0 {
		return stop(RuleDailyCap, "The operator must allow attempts.", reason)
	}
	// The limit may have been lowered: enough attempts must be a day old.
	next := today[n-most].StartedAt.Add(Day)
	d, ok := stop(RuleDailyCap, "Comment /pawl resume then, or ask the operator to allow more attempts.", reason)
	d.Reasons = append(d.Reasons, Reason{Rule: RuleDailyCap, Text: "the next attempt is possible from", Until: next})
	return d, ok
}

// unattended is the part of rule 3 that ends what goes on without a person.
func unattended(f Facts) (Decision, bool) {
	if len(f.Fresh) == 0 || f.typed() {
		return silent()
	}
	n := 0
	for _, a := range f.series() {
		if a.NewInput && !a.Typed {
			n++
		}
	}
	if n < f.Limits.Unattended.MaxAttempts {
		return silent()
	}
	return stop(RuleUnattended, "Say in a comment, in new words, what is to be done.",
		fmt.Sprintf("%s in a row began without a person's new words; the limit is %d", Plural(n, "attempt"), f.Limits.Unattended.MaxAttempts))
}

// budget is the part of rule 3 that bounds what is spent: an attempt that used
// up its own budget is not followed by another one unless a person asks, and
// the thread's budget of a day is for everybody.
func budget(f Facts) (Decision, bool) {
	tokens, usd := spent(f)
	const hint = "The operator can raise policy.budget; or wait until a day has passed since the first of these attempts."
	switch l := f.Limits; {
	case l.Budget.TokensPerThreadPerDay > 0 && tokens >= l.Budget.TokensPerThreadPerDay:
		return stop(RuleBudget, hint, fmt.Sprintf("%d tokens on this thread in 24 hours; its budget is %d", tokens, l.Budget.TokensPerThreadPerDay))
	case l.Budget.USDPerThreadPerDay > 0 && usd >= l.Budget.USDPerThreadPerDay:
		return stop(RuleBudget, hint, fmt.Sprintf("%.2f USD on this thread in 24 hours; its budget is %.2f", usd, l.Budget.USDPerThreadPerDay))
	}
	if a, ok := f.last(); ok && a.Budget != "" && len(f.Fresh) == 0 {
		return stop(RuleBudget, "Split the task, or let the operator raise policy.budget; /pawl retry goes on from here.",
			fmt.Sprintf("attempt %d was ended: %s", a.N, a.Budget))
	}
	return silent()
}

// since are the attempts that began within a time before now, oldest first.
func (f Facts) since(within time.Duration) []Attempt {
	earlier := func(a Attempt) bool { return !a.StartedAt.After(f.Now.Add(-within)) }
	return slices.DeleteFunc(slices.Clone(f.Attempts), earlier)
}

// spent is what the thread used in the last 24 hours.
func spent(f Facts) (tokens int64, usd float64) {
	all := f.Handed.Used
	for _, a := range f.since(Day) {
		all = all.Plus(Spent{Tokens: a.Tokens, CostUSD: a.CostUSD})
	}
	if all.CostUSD != nil {
		usd = *all.CostUSD
	}
	return all.Tokens.Input + all.Tokens.Output, usd
}

// Left is what the thread may still use of its budget of a day; 0 is no bound. Where
// nothing is left it is next to nothing, so that one call ends it.
func Left(f Facts) (tokens int64, usd float64) {
	const leastTokens, leastUSD = 1, 1e-6
	usedTokens, usedUSD := spent(f)
	if most := f.Limits.Budget.TokensPerThreadPerDay; most > 0 {
		tokens = max(most-usedTokens, leastTokens)
	}
	if most := f.Limits.Budget.USDPerThreadPerDay; most > 0 {
		usd = max(most-usedUSD, leastUSD)
	}
	return tokens, usd
}

// failedChecks is the part of rule 3 that bounds what failing checks of others can ask
// for. Each push has checks of its own, so without it an agent that cannot mend
// them would be asked again and again with no person in it.
func failedChecks(f Facts) (Decision, bool) {
	if len(f.Fresh) == 0 || slices.ContainsFunc(f.Fresh, func(t Trigger) bool { return t.Source != FromCheckRun }) {
		return silent()
	}
	n, tried := 0, false // what was interrupted or cut has not tried yet
	for i := len(f.Attempts) - 1; i >= 0; i-- {
		a := f.Attempts[i]
		if a.NewInput && !a.ByChecks {
			break
		}
		tried = tried || a.Outcome != Interrupted && !a.Cut()
		if a.ByChecks && tried {
			n, tried = n+1, false
		}
	}
	most := f.Limits.Ladder.VerifyRetries
	if f.Limits.Ladder.EscalateEffort {
		most++
	}
	if n < max(1, most) {
		return silent()
	}
	return stop(RuleChecksFailed, "Look at the failing checks; comment what to do.",
		fmt.Sprintf("the checks of others failed again after %s for them alone", Plural(n, "attempt")))
}
