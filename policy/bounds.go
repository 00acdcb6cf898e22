package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Day is the window of the daily limits.
const Day = 24 * time.Hour

// restarts limits the attempts since a user last typed something new, across runs.
func restarts(f Facts) Decision {
	n := len(f.series()) - 1 + f.Handover.Times
	switch {
	case n >= f.Limits.Restarts.Max:
		return stop(
			RuleRestartLimit,
			"Look at the attempts; say in a comment, in new words, what to do.",
			fmt.Sprintf("the work was restarted %d times since a user typed something new, which is its limit", n),
		)
	case f.Limits.Restarts.MaxPerThreadPerDay <= 0:
		return stop(RuleDailyCap, "The operator must allow attempts.", "no attempt is allowed on a thread")
	}
	return Decision{}
}

// twoDays stops a thread that used all its attempts on two days in a row.
func twoDays(f Facts) Decision {
	most := f.Limits.Restarts.MaxPerThreadPerDay
	if f.typed() || len(f.since(2*Day+time.Hour)) < 2*most {
		return Decision{}
	}
	return stop(
		RuleDailyCap,
		"Say in a comment, in new words, what to do.",
		fmt.Sprintf("the thread's limit of %s in 24 hours was used up two days in a row", Plural(most, "attempt")),
	)
}

// day waits until the thread's daily limits (attempts, tokens, cost) allow more.
func day(f Facts) Decision {
	why, by := f.Thread().Full()
	if why == "" {
		return Decision{}
	}
	if by == RuleCap {
		by = RuleDailyCap
	}
	d := Decision{
		Action:  DoWait,
		Rule:    by,
		Reasons: Because(by, why),
		Until:   f.Now.Add(Day),
		Hint:    "It continues by itself then. /pawl raise allows the daily limits once more now; /pawl stop ends the wait.",
	}
	if !f.Handover.At.IsZero() {
		d.Until = f.Handover.At.Add(Day)
	}
	today := f.since(Day)
	for i, a := range today {
		f.Attempts, f.Raised = today[i+1:], 0
		if why, _ := f.Thread().Full(); why == "" {
			d.Until = a.StartedAt.Add(Day)
			break
		}
	}
	return d
}

// unattended limits work that no user asked for.
func unattended(f Facts) Decision {
	if len(f.Fresh) == 0 || f.typed() {
		return Decision{}
	}
	if f.watched() { // the watch limits its rounds
		return Decision{}
	}
	n := 0
	for _, a := range f.series() {
		if a.NewInput && !a.Typed {
			n++
		}
	}
	if n < f.Limits.Unattended.MaxAttempts {
		return Decision{}
	}
	return stop(
		RuleUnattended,
		"Say in a comment, in new words, what to do. Comments at even intervals, or with no new word but numbers, count as a program's.",
		fmt.Sprintf("%s in a row came from repeated comments or from what may be a program; the limit is %d", Plural(n, "attempt"), f.Limits.Unattended.MaxAttempts),
	)
}

// budget stops after an attempt that used up its own budget, unless a user asks for another one.
func budget(f Facts) Decision {
	a, _ := f.result()
	if a.Budget == "" {
		return Decision{}
	}
	return stop(
		RuleBudget,
		"Split the task, or let the operator raise policy.budget; /pawl retry goes on from here.",
		fmt.Sprintf("attempt %d was ended: %s", a.N, a.Budget),
	)
}

// since lists the attempts that started within the given time and after the last /pawl raise, oldest first.
func (f Facts) since(within time.Duration) []Attempt {
	earlier := func(a Attempt) bool { return !a.StartedAt.After(f.Now.Add(-within)) }
	return slices.DeleteFunc(slices.Clone(f.Attempts[f.Raised:]), earlier)
}

func (f Facts) Thread() Ledger {
	today := f.since(Day)
	sum := f.Handover.Used
	for _, a := range today {
		sum = sum.Plus(Spent{Tokens: a.Tokens, CostUSD: a.CostUSD})
	}
	l := Ledger{
		Level:       "this thread",
		MaxAttempts: f.Limits.Restarts.MaxPerThreadPerDay,
		MaxTokens:   f.Limits.Budget.TokensPerThreadPerDay,
		MaxUSD:      f.Limits.Budget.USDPerThreadPerDay,
	}
	l.Attempts = len(today)
	l.Tokens = sum.Tokens.used()
	if sum.CostUSD != nil {
		l.USD = *sum.CostUSD
	}
	return l
}

// failedChecks limits attempts for failing checks. Each push starts new checks, so they could fail forever.
func failedChecks(f Facts) Decision {
	if len(f.Fresh) == 0 || slices.ContainsFunc(f.Fresh, Request.notFromChecks) {
		return Decision{}
	}
	if f.watched() { // the watch limits its rounds
		return Decision{}
	}
	most := f.Limits.Ladder.VerifyRetries
	if f.Limits.Ladder.EscalateEffort {
		most++
	}
	n := f.checkRounds()
	if n < max(1, most) {
		return Decision{}
	}
	return stop(
		RuleChecksFailed,
		"Look at the failing checks; comment what to do.",
		fmt.Sprintf("the checks of others failed again after %s for them alone", Plural(n, "attempt")),
	)
}

func (r Request) notFromChecks() bool { return r.Source != FromCheckRun }

// checkRounds counts the attempts since other feedback that were for failing checks alone. Repetitions count once.
func (f Facts) checkRounds() (n int) {
	tried := false
	for _, a := range slices.Backward(f.attempts()) {
		if a.NewInput && !a.ByChecks {
			break
		}
		if !a.blameless() {
			tried = true
		}
		if a.ByChecks && tried {
			n++
			tried = false
		}
	}
	return n
}

// Convergence limits review rounds: attempts that had review remarks and changed the work.
type Convergence struct {
	// MaxRounds limits the rounds after a user's command. 40 merged pull requests of one project took 0 to 5.
	MaxRounds int `yaml:"max_rounds"`
	// BlockingRounds reserves the last rounds for remarks that reviewers mark as blocking.
	BlockingRounds int `yaml:"blocking_rounds"`
	// MaxGrowth limits the growth of the work since its first review. Pull requests that never converged grew to
	// 3.5 to 5.9 times their first size after three rounds (docs/verdicts.md).
	MaxGrowth int `yaml:"max_growth"`
}

// Review counts review remarks.
type Review struct {
	Findings, Blocking int
	Weight             int  // sum over the findings: 1 for optional, 3 for blocking, else 2
	Ordered            bool // a user gave a command with the review, in a comment or by a button
	Added              int  // added lines of the whole change after the round
}

const (
	trendRounds = 3   // rounds before Pawl judges their trend
	fewFindings = 3   // fewer than this are normal in every round
	fewLines    = 200 // added lines; reviewers are advised to read 200 to 400 lines at a time
)

// rounds lists the work before the first review, then the rounds since a user's command, oldest first.
func (f Facts) rounds() []Review {
	all := []Review{{}}
	var now Review
	for _, a := range f.attempts() {
		before := all[len(all)-1].Added
		if a.NewInput {
			now = a.Review
		}
		if now.Ordered {
			all = []Review{{Added: before}}
			now = Review{}
		}
		if !a.isKept() {
			continue
		}
		if now.Findings > 0 { // a round can have several attempts
			all = append(all, now)
			now = Review{}
		}
		all[len(all)-1].Added = cmp.Or(a.Added, before)
	}
	return all
}

// convergence stops review rounds that keep bringing new remarks.
func convergence(f Facts) Decision {
	limits := f.Limits.Convergence
	next := f.Review
	all := f.rounds()
	n := len(all) - 1
	free := limits.MaxRounds - limits.BlockingRounds
	if len(f.Fresh) == 0 || n < min(trendRounds, free) {
		return Decision{}
	}
	if next.Findings == 0 || next.Ordered {
		return Decision{}
	}
	if d := f.gather(); d.Action != "" {
		return d
	}
	ran := Plural(n, "round") + " of review ran since a user's command"
	why := trend(all, next, limits.MaxGrowth)
	if n >= limits.MaxRounds {
		why = append(why, fmt.Sprintf("rounds: %s; the limit is %d", ran, limits.MaxRounds))
	}
	switch {
	case len(why) > 0:
		return stop(
			RuleNotConverging,
			"Look at the pull request, and say in a comment, in new words, what to do; that resets the count of rounds.",
			why...,
		)
	case n >= free && next.Blocking == 0:
		return stop(
			RuleNotBlocking,
			"Mark what must be done as blocking, or request changes; or say in a comment, in new words, what to do.",
			fmt.Sprintf("%s; %d of %d are for remarks that are marked as blocking, and none of %d is",
				ran, limits.BlockingRounds, limits.MaxRounds, next.Findings),
		)
	}
	return Decision{}
}

// trend lists the signs that rounds do not converge: the work grows, or findings get neither fewer nor lighter.
func trend(all []Review, next Review, maxGrowth int) (why []string) {
	if len(all) <= trendRounds {
		return nil
	}
	first := max(1, cmp.Or(all[0].Added, all[1].Added))
	lines := all[len(all)-1].Added
	if lines-first >= fewLines && lines > maxGrowth*first {
		why = append(why, fmt.Sprintf("growth: the work adds %d lines, %.1f times the %d that were reviewed first; the limit is %d times",
			lines, float64(lines)/float64(first), first, maxGrowth))
	}
	var sum Review
	for _, r := range all[len(all)-trendRounds:] {
		sum.Findings += r.Findings
		sum.Weight += r.Weight
	}
	if next.Findings >= fewFindings && next.asHeavy(sum) {
		why = append(why, fmt.Sprintf("findings: %d of weight %d (%.1f in 100 added lines), after %d of weight %d in %d rounds: they become neither fewer nor lighter",
			next.Findings, next.Weight, 100*float64(next.Findings)/float64(max(1, lines)), sum.Findings, sum.Weight, trendRounds))
	}
	return why
}

func (r Review) asHeavy(sum Review) bool {
	return r.Findings*trendRounds >= sum.Findings && r.Weight*trendRounds >= sum.Weight
}
