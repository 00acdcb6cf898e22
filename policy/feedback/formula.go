package feedback

import (
	"regexp"
	"slices"
	"strings"
)

var (
	formula = regexp.MustCompile(`(?s)^(\$\$.+?\$\$|\$[^\s$](?:(?:[^$\n]|\n[^\n$])*[^\s$])?\$)(?:\W|$)`)
	command = regexp.MustCompile(`\\[A-Za-z]+`)
)

// arithmetic are the commands of formulas that show what stands in them, in a size and a colour that people read.
var arithmetic = strings.Fields("frac sqrt sum prod int lim log ln exp sin cos tan min max le leq ge geq ne neq lt gt approx equiv sim times cdot div pm to in notin cup cap subset " +
	"forall exists infty partial nabla alpha beta gamma delta epsilon varepsilon theta lambda mu pi rho sigma tau phi varphi omega Gamma Delta Theta Lambda Pi Sigma Phi Omega " +
	"left right mathbb mathcal mathrm mathbf text lfloor rfloor lceil rceil langle rangle ldots cdots dots quad rightarrow leftarrow Rightarrow Leftrightarrow implies iff land lor neg " +
	"begin end matrix pmatrix bmatrix cases aligned binom bmod pmod")

// plainFormula reports whether a formula shows all its words: TeX can colour, shrink, overprint and leave out.
func plainFormula(tex string) bool {
	return !strings.ContainsAny(tex, "%#") && !slices.ContainsFunc(command.FindAllString(tex, -1), func(c string) bool { return !slices.Contains(arithmetic, c[1:]) })
}

// formulas hides those that could hide words. GitHub has rules of its own for where one begins; in doubt it does.
func (v *view) formulas() {
	code := []byte(v.body)
	for i, c := range v.class {
		if c == literal && code[i] == '$' {
			code[i] = ' '
		}
	}
	for _, text := range []string{v.body, string(code)} {
		for start := range len(text) {
			if text[start] != '$' {
				continue
			}
			if m := formula.FindStringSubmatch(text[start:]); m != nil {
				s := span{start, start + len(m[1])}
				within := !slices.ContainsFunc(v.class[s.start:s.end], func(c class) bool { return c != literal })
				if !within && !plainFormula(v.body[s.start:s.end]) {
					v.hide(s, "a formula")
				}
			}
		}
	}
}
