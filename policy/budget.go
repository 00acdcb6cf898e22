package policy

import "fmt"

// budget is the part of rule 3 that bounds what is spent: an attempt that used
// up its own budget is not followed by another one unless a person asks, and
// the thread's budget of a day is for everybody.
func budget(f Facts) (Decision, bool) {
	tokens, usd := spent(f)
	const hint = "The operator can raise policy.budget; or wait until a day has passed since the first of these attempts."
	switch l := f.Limits; {
	case l.TokensPerDay > 0 && tokens >= l.TokensPerDay:
		return stop("budget", hint, fmt.Sprintf("%d tokens on this thread in 24 hours; its budget is %d", tokens, l.TokensPerDay))
	case l.USDPerDay > 0 && usd >= l.USDPerDay:
		return stop("budget", hint, fmt.Sprintf("%.2f USD on this thread in 24 hours; its budget is %.2f", usd, l.USDPerDay))
	}
	if a, ok := f.last(); ok && a.Budget != "" && len(f.Fresh) == 0 {
		return stop("budget", "Split the task, or let the operator raise policy.budget; /pawl retry goes on from here.",
			fmt.Sprintf("attempt %d was ended: %s", a.N, a.Budget))
	}
	return silent()
}

// spent is what the thread used in the last 24 hours.
func spent(f Facts) (tokens int64, usd float64) {
	for _, a := range f.Attempts {
		if a.StartedAt.After(f.Now.Add(-day)) {
			tokens += a.Tokens
			usd += a.CostUSD
		}
	}
	return tokens, usd
}

// Left is what the thread may still use of its budget of a day; 0 is no bound. Where
// nothing is left it is next to nothing, so that one call ends it.
func Left(f Facts) (tokens int64, usd float64) {
	const leastTokens, leastUSD = 1, 1e-6
	usedTokens, usedUSD := spent(f)
	if most := f.Limits.TokensPerDay; most > 0 {
		tokens = max(most-usedTokens, leastTokens)
	}
	if most := f.Limits.USDPerDay; most > 0 {
		usd = max(most-usedUSD, leastUSD)
	}
	return tokens, usd
}
