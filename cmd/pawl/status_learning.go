package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver"
)

// printRecoveries prints how often each rung fired and recovered in a week, and how similar retries were.
func printRecoveries(w io.Writer, l solver.LearningReport) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(l.Weeks) > 0 {
		fmt.Fprintf(t, "\nRecoveries, recovered of fired\nWEEK FROM\tATTEMPTS\tRUNG 1\tRUNG 2\tRUNG 3\tRUNG 4\n")
	}
	for _, week := range l.Weeks {
		fmt.Fprintf(t, "%s\t%d", week.From.UTC().Format(time.DateOnly), week.Attempts)
		for _, f := range week.Rungs {
			fmt.Fprintf(t, "\t%d of %d", f.Recovered, f.Times)
		}
		fmt.Fprintln(t)
	}
	if len(l.Similarities) > 0 {
		fmt.Fprintf(t, "\nSimilarity of retries with the attempt before\n")
		most := slices.Max(l.Similarities)
		for i, n := range l.Similarities {
			if n > 0 {
				from := float64(i) / float64(len(l.Similarities))
				fmt.Fprintf(t, "%.2f–%.2f\t%d\t%s\n", from, from+1/float64(len(l.Similarities)), n, strings.Repeat("█", max(1, 30*n/most)))
			}
		}
	}
	t.Flush()
}

// printLearning prints nothing while there is nothing to choose from.
func printLearning(w io.Writer, l solver.LearningReport) {
	if len(l.Arms) < 2 {
		return
	}
	fmt.Fprintf(w, "\nLearning: mode %s, in force %s, value %s\n", l.Mode, l.InForce, l.Value)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "ARM\tREWARDS\tMEAN\t90 %% INTERVAL\tSHARE\tATTEMPTS\tUSD A SOLVED\tMINUTES\t\n")
	for _, a := range l.Arms {
		cost, minutes := "–", "–"
		if a.PerSolved > 0 {
			cost = fmt.Sprintf("%.2f", a.PerSolved)
		}
		if a.Seconds > 0 {
			minutes = fmt.Sprintf("%.1f", a.Seconds/60/float64(a.Attempts))
		}
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f–%.2f\t%.0f %%\t%d\t%s\t%s\t%s\n", a.Name(), a.Rewards, a.Mean, a.Low, a.High, 100*a.Share, a.Attempts, cost, minutes, interval(a))
	}
	for _, a := range l.Arms {
		if a.Chosen != "" {
			fmt.Fprintf(t, "last choice: %s\n", a.Chosen)
		}
	}
	fmt.Fprintf(t, "\nSIGNAL\tATTEMPTS\tCOVERAGE\tVALID\tAGREES\tVIOLATIONS\t\n")
	for _, h := range l.Sources {
		note := ""
		if h.Degraded {
			note = "degraded, not learned from: " + h.Reason
		}
		agrees, a := "–", h.Agreement
		if a.Good+a.Bad > 0 {
			agrees = fmt.Sprintf("%d of %d", a.Hits+a.Rejects, a.Good+a.Bad)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%s\n", h.Source, h.Attempts, share(h.Coverage, h.Attempts), share(h.Valid, h.Values), agrees, len(h.Violations), note)
	}
	t.Flush()
	for _, j := range l.Quarantined {
		fmt.Fprintf(w, "not learned from %s: %s\n", j.ID, strings.Join(j.Quarantine, "; "))
	}
}

// share writes a part of a whole, and nothing where there is no whole.
func share(v float64, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// interval draws the 90 % interval on a line from 0 to 1, with the mean in it.
func interval(a learning.ArmView) string {
	const width = 20
	at := func(v float64) int { return min(width-1, max(0, int(v*width))) }
	var b strings.Builder
	for i := range width {
		switch {
		case i == at(a.Mean):
			b.WriteString("●")
		case i >= at(a.Low) && i <= at(a.High):
			b.WriteString("━")
		default:
			b.WriteString("·")
		}
	}
	return b.String()
}
