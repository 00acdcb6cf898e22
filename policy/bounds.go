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
	n, most := len(f.since(Day)), f.Limits.Restarts.MaxPerThreadPerDay
	if most > 0 && !f.typed() && len(f.since(2*Day+time.Hour)) >= 2*most {
		return stop(RuleDailyCap, "Say in a comment, in new words, what is to be done.",
			fmt.Sprintf("the thread's limit of %s in 24 hours was used up two days in a row", Plural(most, "attempt")))
	}
	switch reason := fmt.Sprintf("%s on this thread in 24 hours; its limit is %d", Plural(n, "attempt"), most); {
	case n < most:
		return silent()
	case most <= 0:
		return stop(RuleDailyCap, "The operator must allow attempts.", reason)
	default:
		return f.pause(RuleDailyCap, reason, func(rest []Attempt) bool { return len(rest) >= most })
	}
}

// pause waits until a bound of the thread's day has room again: until so many attempts
// are a day old that it is not used up by the rest.
func (f Facts) pause(r Rule, why string, usedUp func(rest []Attempt) bool) (Decision, bool) {
	d := Decision{Action: DoWait, Rule: r, Reasons: Because(r, why), Until: f.Now.Add(Day),
		Hint: "It goes on by itself then. /pawl raise allows as much once more at once; /pawl stop ends the wait."}
	today := f.since(Day)
	for i, a := range today {
		if !usedUp(today[i+1:]) {
			d.Until = a.StartedAt.Add(Day)
			return d, true
		}
	}
	if !f.Handed.At.IsZero() {
		d.Until = f.Handed.At.Add(Day)
	}
	return d, true
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
	return stop(RuleUnattended, "Say in a comment, in new words, what is to be done. What comes at even intervals, or each time within seconds of an attempt's end, counts as a program's.",
		fmt.Sprintf("%s in a row began without a person's new words; the limit is %d", Plural(n, "attempt"), f.Limits.Unattended.MaxAttempts))
}

// budget is the part of rule 3 that bounds what is spent: the thread's budget of a day is for everybody, and
// an attempt that used up its own is not followed by another one unless a person asks.
func budget(f Facts) (Decision, bool) {
	if why := f.Thread().Spent(); why != "" {
		return f.pause(RuleBudget, why, func(rest []Attempt) bool {
			f.Attempts, f.Raised = rest, 0
			return f.Thread().Spent() != ""
		})
	}
	if a, ok := f.last(); ok && a.Budget != "" && len(f.Fresh) == 0 {
		return stop(RuleBudget, "Split the task, or let the operator raise policy.budget; /pawl retry goes on from here.",
			fmt.Sprintf("attempt %d was ended: %s", a.N, a.Budget))
	}
	return silent()
}

// since are the attempts that began within a time before now and since a person raised
// the bounds, oldest first.
func (f Facts) since(within time.Duration) []Attempt {
	earlier := func(a Attempt) bool { return !a.StartedAt.After(f.Now.Add(-within)) }
	return slices.DeleteFunc(slices.Clone(f.Attempts[f.Raised:]), earlier)
}

// Thread is the thread's own ledger. Its attempts have a limit of their own.
func (f Facts) Thread() Ledger {
	sum := f.Handed.Used
	for _, a := range f.since(Day) {
		sum = sum.Plus(Spent{Tokens: a.Tokens, CostUSD: a.CostUSD})
	}
	l := Ledger{Level: "this thread", MaxTokens: f.Limits.Budget.TokensPerThreadPerDay, MaxUSD: f.Limits.Budget.USDPerThreadPerDay}
	l.Tokens = sum.Tokens.Input + sum.Tokens.Output
	if sum.CostUSD != nil {
		l.USD = *sum.CostUSD
	}
	return l
}

// failedChecks is the part of rule 3 that bounds what failing checks of others can ask for. Each push has checks of its
// own, so an agent that cannot mend them would be asked again and again with no person in it.
func failedChecks(f Facts) (Decision, bool) {
	if len(f.Fresh) == 0 || slices.ContainsFunc(f.Fresh, func(t Trigger) bool { return t.Source != FromCheckRun }) {
		return silent()
	}
	n, tried := 0, false // what was interrupted or cut has not tried yet
	for _, a := range slices.Backward(f.attempts()) {
		if a.NewInput && !a.ByChecks {
			break
		}
		tried = tried || a.Outcome != Interrupted && !a.cut()
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
