package solver

import (
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
)

// minHidden is the length in bytes from which a variable's value is taken for a
// secret. Shorter ones ("true", "eu-west") stand in any text.
const minHidden = 8

// hide takes the values of the variables that a backend was given, and tokens of
// GitHub, out of everything of a receipt that people read: an agent may print
// what it holds. The transcript stays as it came.
func (s *Solver) hide(names []string, r Ended) Ended {
	var pairs []string
	for _, n := range names {
		if v, ok := s.Lookup(n); ok && len(v) >= minHidden {
			pairs = append(pairs, v, "[hidden: "+n+"]")
		}
	}
	values := strings.NewReplacer(pairs...)
	clean := func(text string) string { return forge.Redact(values.Replace(text)) }
	r.Final, r.Detail = clean(r.Final), clean(r.Detail)
	if r.Limit != nil {
		l := *r.Limit
		l.Message = clean(l.Message)
		r.Limit = &l
	}
	reasons := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		reasons[i] = clean(reason)
	}
	all := func(list []string) []string {
		out := make([]string, len(list))
		for i, text := range list {
			out[i] = clean(text)
		}
		return out
	}
	verify := make([]Verified, len(r.Verify))
	for i, v := range r.Verify {
		v.Output, v.Known = clean(v.Output), all(v.Known)
		failing := make([]Failing, len(v.Failing))
		for j, f := range v.Failing {
			failing[j] = Failing{Name: clean(f.Name), Text: clean(f.Text)}
		}
		v.Failing = failing
		verify[i] = v
	}
	if r.Judge != nil {
		j := *r.Judge
		j.Detail, j.Error = clean(j.Detail), clean(j.Error)
		r.Judge = &j
	}
	r.Reasons, r.Verify, r.Tests, r.LeftOut = reasons, verify, all(r.Tests), all(r.LeftOut)
	return r
}
