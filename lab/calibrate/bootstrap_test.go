package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tasksOf returns measured pairs of n tasks. Every pair occurs copies times.
func tasksOf(n, copies int) []scored {
	var pairs []scored
	for i := range n {
		group := fmt.Sprintf("task %02d", i)
		for range copies {
			pairs = append(pairs,
				scored{group: group, same: true, score: 0.5 + float64(i%7)/16},
				scored{group: group, score: 0.3 + float64(i%5)/16})
		}
	}
	return pairs
}

func TestCopiedPairsDoNotNarrowIntervals(t *testing.T) {
	o := Options{Threshold: 0.85, Seed: 3, Resamples: 200}
	one, many := measure(newScale(tasksOf(12, 1)), o), measure(newScale(tasksOf(12, 9)), o)
	if one.AUC != many.AUC || one.AUC95 != many.AUC95 || one.Recommended.TPR95 != many.Recommended.TPR95 {
		t.Errorf("intervals with single pairs %v %v %v, with nine copies %v %v %v", one.AUC, one.AUC95, one.Recommended.TPR95, many.AUC, many.AUC95, many.Recommended.TPR95)
	}
	if !(one.AUC95[0] < one.AUC && one.AUC < one.AUC95[1]) {
		t.Errorf("AUC %v is outside its interval %v", one.AUC, one.AUC95)
	}
}

func TestMoreTasksMakeIntervalsNarrower(t *testing.T) {
	o := Options{Threshold: 0.85, Seed: 3, Resamples: 400}
	few, many := measure(newScale(tasksOf(8, 1)), o).AUC95, measure(newScale(tasksOf(80, 1)), o).AUC95
	if many[1]-many[0] >= few[1]-few[0] {
		t.Errorf("interval of 8 tasks %v, of 80 tasks %v; want a narrower one of 80", few, many)
	}
}

func TestReportDependsOnPairsAndSeedOnly(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(madeUp(t)), "\n")
	shuffled := slices.Clone(lines)
	slices.Reverse(shuffled)
	measured := func(lines []string, seed uint64) Report {
		r, err := Measure(Read(strings.NewReader(strings.Join(lines, "\n"))), Options{Threshold: 0.85, Seed: seed, Resamples: 300})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := measured(lines, 1)
	if diff := cmp.Diff(printed(t, first), printed(t, measured(shuffled, 1))); diff != "" {
		t.Errorf("the order of the lines changed the report (-want +got):\n%s", diff)
	}
	if printed(t, first) == printed(t, measured(lines, 2)) {
		t.Error("a different seed gave the same draws")
	}
}

func TestIntervalContainsTheEstimate(t *testing.T) {
	var came []float64
	for i := 1000; i >= 0; i-- {
		came = append(came, float64(i)/1000, math.NaN())
	}
	if got := middle(came); math.Abs(float64(got[0]-0.025)) > 1e-9 || math.Abs(float64(got[1]-0.975)) > 1e-9 {
		t.Errorf("%v, want 0.025 to 0.975", got)
	}
	if got := middle(nil); got[0].Known() || got[1].Known() {
		t.Errorf("%v without any draw, want an unknown interval", got)
	}
}

func TestRatesOfZeroAndOneHaveAnInterval(t *testing.T) {
	// The rule of Clopper and Pearson for 0 of 29: 1 − 0.025^(1/29).
	if got := uncertain(Range{0, 0}, 0, 29); got[0] != 0 || math.Abs(float64(got[1])-0.1194) > 1e-4 {
		t.Errorf("none of 29: %v, want 0 to 0.1194", got)
	}
	if got := uncertain(Range{1, 1}, 1, 29); got[1] != 1 || math.Abs(float64(got[0])-0.8806) > 1e-4 {
		t.Errorf("all of 29: %v, want 0.8806 to 1", got)
	}
}
