//go:build eval

package learning_test

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
)

// TestEvalLearning prints the tables of docs/learning.md and holds them against
// the aims.
func TestEvalLearning(t *testing.T) {
	cells := playAll(200, []int{2, 3, 4, 5})
	t.Log("\n" + tables(cells))
	checkAims(t, cells)
}

// tables are those of docs/learning.md.
func tables(cells []cell) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tarms\tregret\tuniform\tsaved\tsaved, moving best")
	for _, c := range cells {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", c.scenario, c.arms, c.regret.text(1, 1), c.uniform.text(1, 1), c.saved.percent(), c.moving.percent())
	}
	fmt.Fprintln(t, "\nscenario\tarms\tsaved without\tlost with\tlost without\tmore regret with\tmore regret without")
	for _, c := range cells {
		if c.scenario.isCorrupted() {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", c.scenario, c.arms, c.savedUnchecked.percent(),
				c.lost.percent(), c.lostUnchecked.percent(), c.more.percent(), c.moreUnchecked.percent())
		}
	}
	t.Flush() // into memory
	return b.String()
}

func (i interval) percent() string { return i.text(100, 0) + " %" }

// text writes an interval with so many decimals, times a factor.
func (i interval) text(times float64, decimals int) string {
	return fmt.Sprintf("%.*f [%.*f, %.*f]", decimals, times*i.mean, decimals, times*i.low, decimals, times*i.high)
}
