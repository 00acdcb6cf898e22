package calibrate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Text writes the report for people: a table, what it comes to, and the ROC
// curve of each view.
func (r Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t")) }
	row("view", "cut", "similar from", "true positives", "false positives", "AUC")
	for _, v := range r.Views {
		row(v.View, "current", number(v.Current.Threshold), rate(v.Current.TPR, v.Current.TPR95), rate(v.Current.FPR, v.Current.FPR95), rate(v.AUC, v.AUC95))
		row("", "recommended", v.Recommended.cells())
		row("", "on unseen tasks", "", number(v.HeldOut.TPR), number(v.HeldOut.FPR))
		row("", "trigrams", v.Trigrams.Recommended.cells(), rate(v.Trigrams.AUC, v.Trigrams.AUC95))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nIn brackets: 95 %% intervals over tasks, %d resamples, seed %d.\nRecommended: %s.\n"+
		"Trigrams: the exact share of common word trigrams, which the fingerprint estimates, at its own recommended cut.\n"+
		"On unseen tasks: the cut of each task is chosen on the others.\n", r.Resamples, r.Seed, r.Rule)
	for _, v := range r.Views {
		fmt.Fprintf(&b, "\n%s: %d pairs of %d tasks; %d same (%d tasks), %d different (%d tasks)\n%s\n",
			v.View, v.N, v.Groups, v.Same, v.SameGroups, v.Different, v.DifferentGroups, v.Verdict())
		for _, s := range v.Reservations {
			fmt.Fprintf(&b, "(%s)\n", s)
		}
		if len(v.ROC) > 0 {
			b.WriteString(v.plot())
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Verdict says in a sentence whether the recommended threshold is shown to be
// better than the current one.
func (v View) Verdict() string {
	now := number(v.Current.Threshold)
	switch {
	case !v.AUC.Known():
		return fmt.Sprintf("keep %s: nothing can be compared", now)
	case v.Recommended == nil:
		return fmt.Sprintf("keep %s: no threshold finds anything with at most %.0f %% false positives", now, 100*MaxFPR)
	case v.Recommended.TPR == v.Current.TPR && v.Recommended.FPR == v.Current.FPR:
		return fmt.Sprintf("keep %s: the recommended threshold calls the same pairs similar", now)
	}
	gain := fmt.Sprintf("on unseen tasks, true minus false positive rate changes by %+.2f", v.HeldOut.Gain)
	if v.HeldOut.Gain95[0].Known() {
		gain += fmt.Sprintf(" [%+.2f, %+.2f]", v.HeldOut.Gain95[0], v.HeldOut.Gain95[1])
	}
	if v.HeldOut.Better {
		return fmt.Sprintf("%s is shown to be better than %s: %s", number(v.Recommended.Threshold), now, gain)
	}
	return fmt.Sprintf("keep %s: %s is not shown to be better; %s", now, number(v.Recommended.Threshold), gain)
}

// cells are the threshold and the rates of a cut as cells of the table.
func (c *Cut) cells() string {
	if c == nil {
		return "none\t\t"
	}
	return rate(c.Threshold, c.Threshold95) + "\t" + rate(c.TPR, c.TPR95) + "\t" + rate(c.FPR, c.FPR95)
}

// rate is a number with its interval.
func rate(n Number, r Range) string {
	if !n.Known() || !r[0].Known() {
		return number(n)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", n, r[0], r[1])
}

func number(n Number) string {
	if !n.Known() {
		return "–"
	}
	return fmt.Sprintf("%.2f", n)
}
