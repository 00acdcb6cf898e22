package main

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// pairsOf returns measured pairs. Each pair has its own task.
func pairsOf(same, different []float64) []scored {
	var pairs []scored
	for _, s := range same {
		pairs = append(pairs, scored{group: string(rune('a' + len(pairs))), same: true, score: s})
	}
	for _, s := range different {
		pairs = append(pairs, scored{group: string(rune('a' + len(pairs))), score: s})
	}
	return pairs
}

func TestCurveAgreesWithItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.Map(rapid.IntRange(0, 8), func(n int) float64 { return float64(n) / 8 })
		same := rapid.SliceOfN(score, 1, 12).Draw(t, "same")
		different := rapid.SliceOfN(score, 1, 30).Draw(t, "different")
		threshold := score.Draw(t, "threshold")
		s := newScale(pairsOf(same, different))
		all := s.count()

		wins := 0.0
		for _, a := range same {
			for _, b := range different {
				switch {
				case a > b:
					wins++
				case a == b:
					wins += 0.5
				}
			}
		}
		if got, want := all.auc(), wins/float64(len(same)*len(different)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("AUC %v, want %v", got, want)
		}
		last := s.level(threshold)
		tpr, fpr := all.same.rate(last), all.different.rate(last)
		if tpr != above(same, threshold) || fpr != above(different, threshold) {
			t.Fatalf("rates %v and %v at %v", tpr, fpr, threshold)
		}

		best, at := 0.0, 0.0
		for n := 8; n >= 0; n-- {
			if cut := float64(n) / 8; above(different, cut) <= MaxFPR && above(same, cut) > best {
				best, at = above(same, cut), cut
			}
		}
		switch chosen := all.choose(); {
		case chosen < 0 && best > 0:
			t.Fatalf("nothing chosen, want %v", at)
		case chosen >= 0 && s.cuts[chosen] != at:
			t.Fatalf("chose %v, want %v", s.cuts[chosen], at)
		}
	})
}

// above returns the share of scores that a threshold calls similar.
func above(scores []float64, threshold float64) float64 {
	n := 0
	for _, s := range scores {
		if s >= threshold {
			n++
		}
	}
	return float64(n) / float64(len(scores))
}

func TestAreaEqualsTheCurvesCorners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.Map(rapid.IntRange(0, 20), func(n int) float64 { return float64(n) / 20 })
		s := newScale(pairsOf(rapid.SliceOfN(score, 1, 20).Draw(t, "same"), rapid.SliceOfN(score, 1, 20).Draw(t, "different")))
		all := s.count()
		var area float64
		var from Point
		for _, to := range s.roc(all) {
			area += float64((to.FPR - from.FPR) * (to.TPR + from.TPR) / 2)
			from = to
		}
		if math.Abs(area-all.auc()) > 1e-9 || from.TPR != 1 || from.FPR != 1 {
			t.Fatalf("area %v, AUC %v, ends at %v", area, all.auc(), from)
		}
	})
}
