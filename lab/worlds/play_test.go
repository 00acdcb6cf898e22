package main

import (
	"testing"

	"github.com/pawlbot/pawl/policy/learning/learningtest"
)

func TestLearningSavesRegret(t *testing.T) {
	const seeds = 8 // the intervals are wide; go run ./worlds plays 200
	tables := playAll(seeds,
		[]learningtest.Scenario{{Name: "one context"}, {Name: "failing", Judge: learningtest.Failing}, {Name: "inverted", Judge: learningtest.Inverted}},
		[]learningtest.Place{{Arms: 2, Weekly: 20}, {Arms: 4, Weekly: 20}})
	for _, row := range tables {
		if saved := row.saved(ours); saved.mean < 0.4 {
			t.Errorf("%s, %d backends: Pawl saves %.0f %% of uniform choice's regret, want at least 40 %%", row.Name, row.Arms, 100*saved.mean)
		}
	}
}
