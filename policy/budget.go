package policy

import "fmt"

// budget is the part of rule 3 that bounds what is spent: an attempt that used
// up its own budget is not followed by another one unless a person asks, and
// the thread's budget of a day is for everybody.
func budget(f Facts) (Decision, bool) {
	var tokens int64
	var usd float64
	for _, a := range f.Attempts {
		if a.StartedAt.After(f.Now.Add(-day)) {
			tokens += a.Tokens
			usd += a.CostUSD
		}
	}
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
