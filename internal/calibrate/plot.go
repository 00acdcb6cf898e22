package calibrate

import (
	"fmt"
	"strings"
)

// The plot's size in characters: three rows and twelve columns make a quarter.
const (
	plotWidth  = 49
	plotHeight = 13
)

// plot draws the ROC curves in characters: the fingerprint's, the trigrams', and
// the line of chance, with the current and the recommended cut.
func (v View) plot() string {
	grid := make([][]rune, plotHeight)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(" ", plotWidth))
	}
	mark := func(fpr, tpr Number, r rune) { grid[row(tpr)][int(fpr*(plotWidth-1)+0.5)] = r }
	for x := range plotWidth {
		share := Number(x) / (plotWidth - 1)
		mark(share, share, '·')
	}
	draw(grid, v.Trigrams.ROC, '░')
	draw(grid, v.ROC, '█')
	mark(v.Current.FPR, v.Current.TPR, 'C')
	if r := v.Recommended; r != nil {
		mark(r.FPR, r.TPR, 'R')
		if r.FPR == v.Current.FPR && r.TPR == v.Current.TPR {
			mark(r.FPR, r.TPR, '*')
		}
	}
	var b strings.Builder
	for y, line := range grid {
		label := "     "
		if y%3 == 0 {
			label = fmt.Sprintf("%.2f ", 1-float64(y)/(plotHeight-1))
		}
		fmt.Fprintf(&b, "%s┤%s\n", label, strings.TrimRight(string(line), " "))
	}
	fmt.Fprintf(&b, "     └%s\n", strings.Repeat("┴───────────", 4)+"┴")
	b.WriteString("      0.00        0.25        0.50        0.75        1.00\n")
	b.WriteString("      up: true positives, right: false positives; █ fingerprint, ░ trigrams, · chance, C current, R recommended, * both\n")
	return b.String()
}

// row is the line of the grid in which a rate is drawn.
func row(rate Number) int { return plotHeight - 1 - int(rate*(plotHeight-1)+0.5) }

// draw draws a curve from the lower left to the upper right, straight from one
// point to the next.
func draw(grid [][]rune, curve []Point, r rune) {
	var from Point
	for _, to := range curve {
		const steps = 4 * plotWidth
		for i := range steps + 1 {
			share := Number(i) / steps
			x := from.FPR + share*(to.FPR-from.FPR)
			y := from.TPR + share*(to.TPR-from.TPR)
			grid[row(y)][int(x*(plotWidth-1)+0.5)] = r
		}
		from = to
	}
}
