// Worlds compares Pawl's choice of a backend with textbook rules in simulated worlds of 16 weeks. A rule's regret is
// the number of good attempts that it loses because it does not always choose the currently best backend. For each
// rule, Worlds prints the percentage of uniform choice's regret that it saves, with a 95 % bootstrap interval over the
// seeds. The last column is the lead of the best other rule over Pawl in points; below zero Pawl leads. Run `go run
// ./worlds` in lab/; 200 seeds take about ten minutes on two cores.
//
// With -headroom it instead simulates a month with more work than accounts with usage windows can do. It compares Pawl with
// Pawl without headroom, and with using the accounts in turn. Five seeds take about seven minutes.
//
// main.go has the worlds and the output, and play.go has the rules and the regret. headroom.go has the month with usage
// windows. Package learningtest has the simulated backends and signals.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/pawlbot/pawl/policy/learning/learningtest"
)

func main() {
	seeds := flag.Int("seeds", 200, "the number of seeds of each world")
	headroom := flag.Bool("headroom", false, "compare policies for usage windows instead")
	flag.Parse()
	if *seeds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *headroom {
		printHeadroom(os.Stdout, *seeds)
		return
	}
	printTables(os.Stdout, playAll(*seeds, scenarios(), sizes()))
}

func printTables(out io.Writer, tables []table) {
	names := make([]string, 0, len(choosers()))
	for _, c := range choosers() {
		names = append(names, c.name)
	}
	fmt.Fprintf(out, "| world | backends, attempts a week | %s | behind the best other |\n", strings.Join(names, " | "))
	fmt.Fprintf(out, "|---|---|%s---|\n", strings.Repeat("---|", len(names)))
	for _, t := range tables {
		fmt.Fprintf(out, "| %s | %d, %d |", t.Name, t.Arms, t.Weekly)
		for _, name := range names {
			fmt.Fprintf(out, " %s |", t.saved(name))
		}
		points, by := t.behind()
		fmt.Fprintf(out, " %s (%s) |\n", points, by)
	}
	for _, t := range tables {
		if t.Weekly != 20 {
			continue
		}
		ahead := over(func(m []float64) float64 { return m[1] - m[0] }, t.eight[ours], t.eight["best known"])
		fmt.Fprintf(out, "\n%s, %d backends: after %d weeks %.1f good attempts more than always the best known", t.Name, t.Arms, weeks/2, ahead.mean)
	}
	fmt.Fprintln(out)
}

func scenarios() []learningtest.Scenario {
	all := []learningtest.Scenario{
		{Name: "one context"},
		{Name: "order is right", Ordered: true},
		{Name: "twelve contexts", Many: true},
		{Name: "drift", Drifts: true},
		{Name: "delayed", Delayed: true},
		{Name: "missing", Missing: true},
	}
	for _, j := range []learningtest.Judge{
		learningtest.Failing, learningtest.Stuck, learningtest.Random, learningtest.Inverted, learningtest.Partial,
		learningtest.Mistaken, learningtest.Harsh, learningtest.PassFail, learningtest.Generous,
	} {
		all = append(all, learningtest.Scenario{Name: "judge: " + string(j), Judge: j})
	}
	return all
}

// sizes lists the simulated worlds' sizes.
func sizes() []learningtest.Place {
	return []learningtest.Place{
		{Arms: 2, Weekly: 5},
		{Arms: 6, Weekly: 5},
		{Arms: 4, Weekly: 20},
		{Arms: 2, Weekly: 50},
		{Arms: 6, Weekly: 50},
	}
}

// behind returns the best other rule's lead over Pawl in points.
func (t table) behind() (points interval, by string) {
	most := math.Inf(-1)
	for _, c := range choosers() {
		if s := t.saved(c.name).mean; c.name != ours && s > most {
			most, by = s, c.name
		}
	}
	return over(func(m []float64) float64 { return (m[0] - m[1]) / m[2] }, t.regret[ours], t.regret[by], t.uniform), by
}
