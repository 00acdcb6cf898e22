package learning_test

import "testing"

// TestLearningPays plays fewer seeds than TestEvalLearning, so the means are wider.
func TestLearningPays(t *testing.T) {
	seeds := 8
	if testing.Short() { // volume: make test plays more
		seeds = 4
	}
	tables := playAll(seeds, []scenario{{name: "one context"}, {name: "failing", judge: failing}, {name: "inverted", judge: inverted}}, []place{{2, 20}, {4, 20}})
	for _, row := range tables {
		if saved := row.saved(ours); saved.mean < 0.4 {
			t.Errorf("%s, %d backends: %.0f %% of the regret of uniform choice is saved", row.name, row.arms, 100*saved.mean)
		}
	}
}
