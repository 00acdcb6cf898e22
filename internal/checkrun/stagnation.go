package checkrun

import (
	"fmt"
	"strings"
)

// chartRows is how many comparisons the stagnation chart shows.
const chartRows = 8

// stagnation renders the verdict on attempts that come to the same point again.
func stagnation(f Facts) Check {
	c := check(f, NameStagnation)
	if _, ok := f.last(); !ok {
		return c.pending(f, "Stagnation")
	}
	s := f.Stagnation
	kind := similarKind(s.Kind)
	if kind == "" {
		kind = "result"
	}
	c.Status = Completed
	p := newPage(f.Now)
	switch {
	case s.Escalated:
		c.Conclusion = ActionRequired
		c.Title = title("Stagnation", fmt.Sprintf("%s in a row with the same %s as the one before", plural(s.Similar, "attempt"), kind))
		p.sentence("The attempts come to the same " + kind + " again: going on the same way would not help.")
	case s.Similar > 0:
		c.Conclusion = Neutral
		c.Title = title("Similar", fmt.Sprintf("%s with the same %s as the one before (%.2f)", plural(s.Similar, "attempt"), kind, clamp(s.Similarity)))
		p.sentence("The last attempt came to a similar " + kind + " as the one before; if that goes on, Pawl escalates.")
	default:
		c.Conclusion, c.Title = Success, "No stagnation"
		p.sentence("The last attempt repeats no other.")
	}
	p.list(p.reasons(s.Reasons, 5)...)
	p.sentence(similarityChart(f))
	p.list(stagnationOutlook(f, kind)...)
	p.sentence(table(f, tableRows))
	p.fold("What is compared", compared)
	c.Summary = p.fit()
	if s.Escalated {
		c.Actions = buttons(f)
	}
	return c
}

const compared = `Each attempt is compared with the one before it, by 64-bit fingerprints: 1.00 is the same text.

- failure: what the agent or the verifier said of the failure; the next attempt is told what was tried and asked for a different approach
- revision: the change itself; another backend takes the next attempt where there is one`

// similarityChart draws how alike neighbouring attempts were, newest last.
func similarityChart(f Facts) string {
	run := f.run()
	var rows []string
	for i := max(1, len(run)-chartRows); i < len(run); i++ {
		a := run[i]
		if !a.ended() {
			continue
		}
		row := fmt.Sprintf("attempt %d and %d  %s %.2f  %s", run[i-1].N, a.N, bar(a.Similarity), clamp(a.Similarity), similarKind(a.SimilarKind))
		rows = append(rows, strings.TrimRight(row, " "))
	}
	if len(rows) == 0 {
		return ""
	}
	return fence(strings.Join(rows, "\n"), 2_000)
}

func stagnationOutlook(f Facts, kind string) []string {
	if !f.Stagnation.Escalated {
		return nil
	}
	if f.State == Stopped || f.State == Failed {
		return outlook(f)
	}
	next := "**Next:** the next attempt is told what was tried and asked for a different approach."
	if kind == "revision" {
		next = "**Next:** another backend takes the next attempt where there is one; it is asked for a different approach."
	}
	return []string{next, "**You can:** comment what to do differently, `/pawl use BACKEND`, or `/pawl stop`."}
}
