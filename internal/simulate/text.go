package simulate

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Text prints the report as a table for people.
func (r Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "%d attempts, %d seeds; [ ] are 95 %% intervals over the seeds (%d bootstrap resamples).\n", r.Attempts, r.Seeds, r.Resamples)
	fmt.Fprint(w, "Regret is counted in attempts that the best fixed backend would have done well.\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tarms\tregret\tuniform\tsaved\tsaved, moving best")
	for _, c := range r.Cells {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", c.Scenario, c.Arms, c.Regret.text(1, 1), c.Uniform.text(1, 1), c.Saved.percent(), c.Moving.percent())
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if !r.corrupted() {
		return nil
	}
	fmt.Fprint(w, "\nWhat corrupted signals cost, with and without validation: the part lost of what is saved over uniform\n"+
		"choice on honest signals, and by how much regret grows.\n\n")
	fmt.Fprintln(t, "scenario\tarms\tsaved without\tlost with\tlost without\tregret with\tregret without")
	for _, c := range r.Cells {
		if c.Unchecked != nil {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", c.Scenario, c.Arms, c.SavedUnchecked.percent(),
				c.Loss.percent(), c.LossUnchecked.percent(), c.MoreRegret.percent(), c.MoreRegretUnchecked.percent())
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

func (r Report) corrupted() bool {
	for _, c := range r.Cells {
		if c.Unchecked != nil {
			return true
		}
	}
	return false
}

// percent writes an interval of shares in percent; a dash for none.
func (i *Interval) percent() string {
	if i == nil {
		return "–"
	}
	return i.text(100, 0) + " %"
}

// text writes an interval with so many decimals, times a factor.
func (i *Interval) text(times float64, decimals int) string {
	return fmt.Sprintf("%.*f [%.*f, %.*f]", decimals, times*i.Mean, decimals, times*i.Low, decimals, times*i.High)
}
