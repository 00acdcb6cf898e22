package calibrate

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
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
	mark := func(fpr, tpr Number, r rune) {
		grid[plotHeight-1-int(tpr*(plotHeight-1)+0.5)][int(fpr*(plotWidth-1)+0.5)] = r
	}
	for x := range plotWidth {
		share := Number(x) / (plotWidth - 1)
		mark(share, share, '·')
	}
	draw(v.Trigrams.ROC, '░', mark)
	draw(v.ROC, '█', mark)
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

// draw draws a curve from the lower left on, straight from point to point.
func draw(curve []Point, r rune, mark func(fpr, tpr Number, r rune)) {
	var from Point
	for _, to := range curve {
		const steps = 4 * plotWidth
		for i := range steps + 1 {
			share := Number(i) / steps
			mark(from.FPR+share*(to.FPR-from.FPR), from.TPR+share*(to.TPR-from.TPR), r)
		}
		from = to
	}
}

// picture is the template of the SVG, readable on light and dark pages.
//
//go:embed roc.svg.tmpl
var picture string

// Sizes of the picture in SVG's user units: the side of a plot, the width of its box, its place in it.
const (
	side     = 280
	boxWidth = 360
	boxLeft  = 56
)

// SVG draws the ROC curves of all views beside each other, self-contained.
func (r Report) SVG() string {
	x := func(rate Number) string { return fmt.Sprintf("%.1f", rate*side) }
	y := func(rate Number) string { return fmt.Sprintf("%.1f", (1-rate)*side) }
	t := template.Must(template.New("roc").Funcs(template.FuncMap{
		"x": x, "y": y, "number": number,
		"width": func(views []View) int { return boxWidth * len(views) },
		"left":  func(i int) int { return i*boxWidth + boxLeft },
		"path": func(curve []Point) string {
			d := fmt.Sprintf("M0 %d", side) // the corner in which nothing is similar
			for _, p := range curve {
				d += "L" + x(p.FPR) + " " + y(p.TPR)
			}
			return d
		},
	}).Parse(picture))
	var b strings.Builder
	if err := t.Execute(&b, r); err != nil {
		panic(err) // the template and the report are both of this package
	}
	return b.String()
}
