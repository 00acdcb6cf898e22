package status

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
)

// Learning reports what a server with this configuration has learned from its backends' rewards.
func Learning(ctx context.Context, cfg config.Server, db *store.Store, now time.Time) (solver.LearningReport, error) {
	return reader(cfg, db, now).LearningReport(ctx)
}

func reader(cfg config.Server, db *store.Store, now time.Time) *solver.Solver {
	return &solver.Solver{Env: attempt.Env{
		Store:  db,
		Config: cfg,
		Now:    func() time.Time { return now },
		Log:    zerolog.Nop(),
	}}
}

func PrintLearning(w io.Writer, l solver.LearningReport) {
	if len(l.Weeks) == 0 {
		fmt.Fprintln(w, "No attempt of the last 8 weeks has ended.")
	}
	printLearning(w, l)
	printRecoveries(w, l)
}

// printRecoveries prints first tries, recoveries by rung and week, and similarity of retries.
func printRecoveries(w io.Writer, l solver.LearningReport) {
	if len(l.Weeks) > 0 {
		printFirstTries(w, l.FirstTries)
		printRungs(w, l.Rungs)
		printWeeks(w, l.Weeks)
	}
	printSimilarities(w, l.Similarities)
}

func printFirstTries(w io.Writer, all []learning.FirstTries) {
	if len(all) == 0 {
		fmt.Fprintln(w, "\nNo run of the last 8 weeks counts as a first try. Runs without verify commands never do.")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nFirst tries of the last 8 weeks that passed the verify commands without a recovery\nBACKEND\tRUNS\tPASSED\tSHARE\n")
	for _, f := range all {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", render.Line(f.Backend, 200), f.Runs, f.Passed, share(f.Share(), f.Runs))
	}
	t.Flush()
}

func printRungs(w io.Writer, all []learning.Fired) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nRecoveries of the last 8 weeks\nRUNG\tFIRED\tHELPED\tTOKENS\tCOST\tTIME\n")
	for _, f := range all {
		fmt.Fprintf(t, "%d, %s\t%d\t%d\t%s\t%s\t%s\n", f.Rung, checkrun.RungName(f.Rung),
			f.Times, f.Recovered, checkrun.RungTokens(f), checkrun.RungCost(f), render.Dash(f.Took()))
	}
	t.Flush()
}

func printWeeks(w io.Writer, all []learning.Week) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nRecoveries by weeks, recovered of fired\nWEEK FROM\tATTEMPTS\tRUNG 1\tRUNG 2\tRUNG 3\tRUNG 4\n")
	for _, week := range all {
		fmt.Fprintf(t, "%s\t%d", week.From.UTC().Format(time.DateOnly), week.Attempts)
		for _, f := range week.Rungs {
			fmt.Fprintf(t, "\t%d of %d", f.Recovered, f.Times)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

func printSimilarities(w io.Writer, all []int) {
	if len(all) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nSimilarity of retries with the attempt before\n")
	most, each := slices.Max(all), 1/float64(len(all))
	for i, n := range all {
		if n > 0 {
			from := float64(i) * each
			fmt.Fprintf(t, "%.2f–%.2f\t%d\t%s\n", from, from+each, n, strings.Repeat("█", max(1, 30*n/most)))
		}
	}
	t.Flush()
}

// printLearning prints nothing without a choice of backends.
func printLearning(w io.Writer, l solver.LearningReport) {
	if len(l.Arms) < 2 {
		return
	}
	fmt.Fprintf(w, "\nLearning: mode %s, in force %s\n", l.Mode, l.InForce)
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

// share formats a part of a whole in percent, or a dash if the whole is zero.
func share(v float64, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// interval draws the 90 % interval from 0 to 1 with its mean.
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
