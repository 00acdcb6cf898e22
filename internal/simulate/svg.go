package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// Sizes of the picture in SVG's user units: the plot of a scenario, and the box
// around it.
const (
	plotWidth, plotHeight = 260, 200
	boxWidth, boxHeight   = 340, 300
	boxLeft, boxTop       = 56, 52
)

// style holds the colours for a light and for a dark page; blue, orange and the
// dashed grey stay apart for the colour-blind (Okabe and Ito).
const style = `<style>
svg{color-scheme:light dark;font:12px system-ui,sans-serif}
.page{fill:#fff}text{fill:#1f2328}.dim{fill:#59636e}.grid{stroke:#d1d9e0;fill:none}path{fill:none;stroke-width:2}path.grid{stroke-width:1}
.checked{stroke:#0072b2}.unchecked{stroke:#b35900;stroke-dasharray:6 3}.uniform{stroke:#818b98;stroke-dasharray:2 4}
@media(prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#f0f6fc}.dim{fill:#9198a1}.grid{stroke:#3d444d}
.checked{stroke:#56b4e9}.unchecked{stroke:#e69f00}.uniform{stroke:#656c76}}
</style>
`

// SVG draws the mean cumulative regret of each scenario with the largest number
// of arms, side by side, self-contained and readable on light and dark pages.
func (r Report) SVG() string {
	arms := 0
	for _, c := range r.Cells {
		arms = max(arms, c.Arms)
	}
	cells := slices.DeleteFunc(slices.Clone(r.Cells), func(c Cell) bool { return c.Arms != arms })
	most := 1.0
	for _, c := range cells {
		most = max(most, slices.Max(slices.Concat(c.Curves.Uniform, c.Curves.Regret, c.Curves.Unchecked)))
	}
	var b strings.Builder
	width, height := boxWidth*len(cells), boxHeight+28
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>Cumulative regret of choosing among %d backends, mean of %d seeds</title>\n%s", arms, r.Seeds, style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	for i, c := range cells {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i*boxWidth+boxLeft, boxTop)
		c.box(&b, most, r.Attempts)
		b.WriteString("</g>\n")
	}
	at := boxLeft
	for _, l := range []struct{ class, name string }{
		{"checked", "Thompson sampling, signals validated"}, {"unchecked", "the same without validation"}, {"uniform", "uniform choice"}} {
		fmt.Fprintf(&b, `<path class="%s" d="M%d %dh24"/><text x="%d" y="%d">%s</text>`+"\n", l.class, at, boxHeight+10, at+32, boxHeight+14, l.name)
		at += 270
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// box draws one scenario; most is the regret at the upper edge.
func (c Cell) box(b *strings.Builder, most float64, attempts int) {
	fmt.Fprintf(b, `<text y="-28" font-size="15" font-weight="600">%s</text>`+"\n", c.Scenario)
	fmt.Fprintf(b, `<text y="-11" class="dim">%d backends, saved %.0f %% of the regret</text>`+"\n", c.Arms, 100*c.Saved.Mean)
	for i := range 5 {
		x, y := i*plotWidth/4, plotHeight-i*plotHeight/4
		fmt.Fprintf(b, `<path class="grid" d="M%d 0V%dM0 %dH%d"/>`, x, plotHeight, y, plotWidth)
		fmt.Fprintf(b, `<text class="dim" x="%d" y="%d" text-anchor="middle">%d</text>`, x, plotHeight+16, i*attempts/4)
		fmt.Fprintf(b, `<text class="dim" x="-8" y="%d" text-anchor="end">%.0f</text>`+"\n", y+4, most*float64(i)/4)
	}
	fmt.Fprintf(b, `<text class="dim" x="%d" y="%d" text-anchor="middle">attempts</text>`+"\n", plotWidth/2, plotHeight+32)
	fmt.Fprintf(b, `<text class="dim" transform="translate(-40 %d) rotate(-90)" text-anchor="middle">regret</text>`+"\n", plotHeight/2)
	for _, l := range []struct {
		class string
		curve []float64
	}{{"uniform", c.Curves.Uniform}, {"unchecked", c.Curves.Unchecked}, {"checked", c.Curves.Regret}} {
		if len(l.curve) == 0 {
			continue
		}
		fmt.Fprintf(b, `<path class="%s" d="M0 %d`, l.class, plotHeight)
		for i, v := range l.curve {
			fmt.Fprintf(b, "L%.1f %.1f", float64((i+1)*c.Curves.Step)/float64(attempts)*plotWidth, plotHeight*(1-v/most))
		}
		b.WriteString("\"/>\n")
	}
}
