package policy

import (
	"cmp"
	"fmt"
)

// Convergence bounds rounds of review: remarks of reviewers that an attempt took and that changed the work.
type Convergence struct {
	// MaxRounds is how many there may be since a person's order; 40 merged pull requests of one project took 0 to 5.
	MaxRounds int `yaml:"max_rounds"`
	// BlockingRounds is how many of them, the last, are for what reviewers mark as blocking.
	BlockingRounds int `yaml:"blocking_rounds"`
	// MaxGrowth is how many times as long the work may become that was reviewed first. In pull requests that never
	// converged it was 3.5 to 5.9 times as long after three rounds (docs/verdicts.md).
	MaxGrowth int `yaml:"max_growth"`
}

// Review is what reviewers remarked. The zero value is nothing.
type Review struct {
	Findings, Blocking int
	Weight             int  // of all findings: 1 for what may stay, 3 for what blocks, else 2
	Ordered            bool // a person gave an order with it, in a comment or by a button
	Added              int  // lines of the whole work after the round
}

const (
	trendRounds = 3   // that ran before their trend is judged
	fewFindings = 3   // are normal in every round
	fewLines    = 200 // of growth are quickly read: reviewers are advised to read 200 to 400 at a time
)

// rounds are those since a person's order, oldest first, behind one without findings that holds what stood before.
func (f Facts) rounds() []Review {
	all, now := []Review{{}}, Review{}
	for _, a := range f.attempts() {
		before := all[len(all)-1].Added
		if a.NewInput {
			now = a.Review
		}
		if now.Ordered {
			all, now = []Review{{Added: before}}, Review{}
		}
		if !a.stands() {
			continue
		}
		if now.Findings > 0 { // a round has several attempts where the first ones do not finish it
			all, now = append(all, now), Review{}
		}
		all[len(all)-1].Added = cmp.Or(a.Added, before)
	}
	return all
}

// convergence is the part of rule 3 that ends rounds of review which lead nowhere, though each says something new.
func convergence(f Facts) (Decision, bool) {
	l, next, all := f.Limits.Convergence, f.Review, f.rounds()
	n, free := len(all)-1, l.MaxRounds-l.BlockingRounds
	if len(f.Fresh) == 0 || next.Findings == 0 || next.Ordered || n < min(trendRounds, free) {
		return silent()
	}
	if d, waits := gather(f); waits {
		return d, true
	}
	ran := Plural(n, "round") + " of review ran since a person's order"
	why := trend(all, next, l.MaxGrowth)
	if n >= l.MaxRounds {
		why = append(why, fmt.Sprintf("rounds: %s; the limit is %d", ran, l.MaxRounds))
	}
	switch {
	case len(why) > 0:
		return stop(RuleNotConverging, "Look at the pull request, and say in a comment, in new words, what is to be done; that begins the rounds anew.", why...)
	case n >= free && next.Blocking == 0:
		return stop(RuleNotBlocking, "Mark what must be done as blocking, or request changes; or say in a comment, in new words, what is to be done.",
			fmt.Sprintf("%s; %d of %d are for remarks that are marked as blocking, and none of %d is", ran, l.BlockingRounds, l.MaxRounds, next.Findings))
	}
	return silent()
}

// trend says what shows that rounds do not converge: the work grows, or findings become neither fewer nor lighter.
func trend(all []Review, next Review, maxGrowth int) (why []string) {
	if len(all) <= trendRounds {
		return nil
	}
	first, lines := max(1, cmp.Or(all[0].Added, all[1].Added)), all[len(all)-1].Added
	if lines-first >= fewLines && lines > maxGrowth*first {
		why = append(why, fmt.Sprintf("growth: the work adds %d lines, %.1f times the %d that were reviewed first; the limit is %d times",
			lines, float64(lines)/float64(first), first, maxGrowth))
	}
	findings, weight := 0, 0
	for _, r := range all[len(all)-trendRounds:] {
		findings, weight = findings+r.Findings, weight+r.Weight
	}
	if next.Findings >= fewFindings && next.Findings*trendRounds >= findings && next.Weight*trendRounds >= weight {
		why = append(why, fmt.Sprintf("findings: %d of weight %d (%.1f in 100 added lines), after %d of weight %d in %d rounds: they become neither fewer nor lighter",
			next.Findings, next.Weight, 100*float64(next.Findings)/float64(max(1, lines)), findings, weight, trendRounds))
	}
	return why
}
