package calibrate

import (
	"fmt"
	"strings"
)

// Sizes of the picture in SVG's user units: the side of a plot, and the box of
// a view around it.
const (
	side      = 280
	boxWidth  = 360
	boxHeight = 420
	boxLeft   = 56
	boxTop    = 48
)

// style holds the colours for a light and for a dark page; the blue and the
// orange stay apart for the colour-blind (Okabe and Ito).
const style = `<style>
svg{color-scheme:light dark;font:12px system-ui,sans-serif}
.page{fill:#fff}text{fill:#1f2328}.dim{fill:#59636e}.grid{stroke:#d1d9e0;fill:none}.chance{stroke:#818b98;stroke-dasharray:3 4}
.print{stroke:#0072b2;stroke-width:2;fill:none}.words{stroke:#b35900;stroke-width:1.5;stroke-dasharray:6 3;fill:none}
.bar{stroke:#1f2328}.current{fill:#1f2328}.recommended{fill:#fff;stroke:#1f2328;stroke-width:2}
@media(prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#f0f6fc}.dim{fill:#9198a1}.grid{stroke:#3d444d}.chance{stroke:#656c76}
.print{stroke:#56b4e9}.words{stroke:#e69f00}.bar{stroke:#f0f6fc}.current{fill:#f0f6fc}.recommended{fill:#0d1117;stroke:#f0f6fc}}
</style>
`

// SVG draws the ROC curves of all views beside each other, self-contained and
// readable on light and dark pages. It is nothing but numbers and fixed words.
func (r Report) SVG() string {
	var b strings.Builder
	width := boxWidth * len(r.Views)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		width, boxHeight, width, boxHeight)
	b.WriteString("<title>How well similarity tells repetitions from different attempts</title>\n" + style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, boxHeight)
	for i, v := range r.Views {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i*boxWidth+boxLeft, boxTop)
		v.box(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// box draws one view.
func (v View) box(b *strings.Builder) {
	fmt.Fprintf(b, `<text y="-26" font-size="15" font-weight="600">%s</text>`+"\n", v.View)
	fmt.Fprintf(b, `<text y="-9" class="dim">%d same (%d tasks), %d different (%d tasks)</text>`+"\n", v.Same, v.SameGroups, v.Different, v.DifferentGroups)
	for i := range 5 {
		at, share := float64(i)*side/4, float64(i)/4
		fmt.Fprintf(b, `<path class="grid" d="M%.0f 0V%d M0 %.0fH%d"/>`+"\n", at, side, at, side)
		fmt.Fprintf(b, `<text class="dim" x="%.0f" y="%d" text-anchor="middle">%.2g</text>`, at, side+16, share)
		fmt.Fprintf(b, `<text class="dim" x="-8" y="%.0f" text-anchor="end">%.2g</text>`+"\n", side-at+4, share)
	}
	fmt.Fprintf(b, `<text class="dim" x="%d" y="%d" text-anchor="middle">false positive rate</text>`+"\n", side/2, side+32)
	fmt.Fprintf(b, `<text class="dim" transform="translate(-36 %d) rotate(-90)" text-anchor="middle">true positive rate</text>`+"\n", side/2)
	fmt.Fprintf(b, `<path class="chance" d="M0 %dL%d 0"/>`+"\n", side, side)
	trace(b, "words", v.Trigrams.ROC)
	trace(b, "print", v.ROC)
	v.Recommended.draw(b, "recommended", 5.5)
	v.Current.draw(b, "current", 3.5)
	v.legend(b)
}

// legend names the curves and the cuts with their numbers, below the plot.
func (v View) legend(b *strings.Builder) {
	recommended := "nothing recommended"
	if v.Recommended != nil {
		recommended = "recommended: " + number(v.Recommended.Threshold)
	}
	const first, second = side + 54, side + 74
	fmt.Fprintf(b, `<path class="print" d="M0 %dh18"/><text x="24" y="%d">fingerprint, AUC %s</text>`+"\n", first-4, first, number(v.AUC))
	fmt.Fprintf(b, `<path class="words" d="M0 %dh18"/><text x="24" y="%d">trigrams, AUC %s</text>`+"\n", second-4, second, number(v.Trigrams.AUC))
	fmt.Fprintf(b, `<circle class="current" cx="165" cy="%d" r="3.5"/><text x="176" y="%d">current: %s</text>`+"\n", first-4, first, number(v.Current.Threshold))
	fmt.Fprintf(b, `<circle class="recommended" cx="165" cy="%d" r="5.5"/><text x="176" y="%d">%s</text>`+"\n", second-4, second, recommended)
}

// trace draws a curve from the corner in which nothing is similar.
func trace(b *strings.Builder, class string, curve []Point) {
	if len(curve) == 0 {
		return
	}
	fmt.Fprintf(b, `<path class="%s" d="M0 %d`, class, side)
	for _, p := range curve {
		fmt.Fprintf(b, "L%.1f %.1f", p.FPR*side, (1-p.TPR)*side)
	}
	b.WriteString("\"/>\n")
}

// draw draws a cut as a dot, with its intervals as bars.
func (c *Cut) draw(b *strings.Builder, class string, radius float64) {
	if c == nil || !c.TPR.Known() || !c.FPR.Known() {
		return
	}
	x, y := c.FPR*side, (1-c.TPR)*side
	if c.TPR95[0].Known() && c.FPR95[0].Known() {
		fmt.Fprintf(b, `<path class="bar" d="M%.1f %.1fH%.1f M%.1f %.1fV%.1f"/>`+"\n",
			c.FPR95[0]*side, y, c.FPR95[1]*side, x, (1-c.TPR95[0])*side, (1-c.TPR95[1])*side)
	}
	fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"/>`+"\n", class, x, y, radius)
}
