package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// minLength is a secret's shortest length in bytes: "true" and "eu-west" occur in any text.
const minLength = 8

// Values finds and removes known values and identifiable keys.
type Values struct {
	values []value // longest first: a value may begin with a shorter one
}

type value struct {
	mark     string
	shapes   []string // parts of these may end a truncated text
	writings []string
}

// New returns Values that replace the named variables' values with marks that contain the variables' names.
func New(names []string, lookup func(name string) (value string, ok bool)) Values {
	var r Values
	for _, n := range names {
		v, _ := lookup(n)
		v = strings.TrimSpace(v)
		if len(v) < minLength {
			continue
		}
		r.values = append(r.values, value{
			mark:     "[hidden: " + n + "]",
			shapes:   []string{v, strings.Join(strings.Fields(v), " ")},
			writings: writings(v),
		})
	}
	slices.SortStableFunc(r.values, func(a, b value) int { return cmp.Compare(len(b.shapes[0]), len(a.shapes[0])) })
	return r
}

// writings returns a value's encodings: plain, JSON, hexadecimal, URL and base64.
func writings(v string) []string {
	quoted, _ := json.Marshal(v) // never fails
	h := hex.EncodeToString([]byte(v))
	all := []string{v, string(quoted[1 : len(quoted)-1]), h, strings.ToUpper(h), url.QueryEscape(v), url.PathEscape(v)}
	for skip := range 3 { // the value's offset in a group of three bytes
		raw := append(make([]byte, skip), v...)
		whole := len(raw) / 3 * 4 // the first and last characters depend on the neighbouring bytes
		first := []int{0, 2, 3}[skip]
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if s := e.EncodeToString(raw)[first:whole]; len(s) >= minLength {
				all = append(all, s)
			}
		}
	}
	return all
}

// Find returns the first secret in a line of a file; ok is false for none.
func (r Values) Find(path, line string) (found Leak, ok bool) {
	for _, v := range r.values {
		for _, w := range v.writings {
			if strings.Contains(line, w) {
				return leak("a value that Pawl gave", path, w), true
			}
		}
	}
	for _, f := range forms {
		if v := f.finds.FindString(line); v != "" {
			return leak(f.kind, path, v), true
		}
	}
	return Leak{}, false
}

// cuts matches the marks of truncated texts, here and in solver/attempt.
var cuts = regexp.MustCompile(`\s*(?:\[cut\]|\[…\]|…)\s*`)

// Redact removes secrets from a text, and long parts of secrets next to cuts.
func (r Values) Redact(s string) string {
	s = r.redactCuts(s)
	for _, v := range r.values {
		for _, w := range slices.Concat(v.shapes, v.writings) {
			s = strings.ReplaceAll(s, w, v.mark)
		}
	}
	return Redact(s)
}

func (r Values) redactCuts(s string) string {
	var b strings.Builder
	from := 0
	for _, at := range append(cuts.FindAllStringIndex(s, -1), []int{len(s), len(s)}) {
		b.WriteString(r.redactEnds(s[from:at[0]]))
		b.WriteString(s[at[0]:at[1]])
		from = at[1]
	}
	return b.String()
}

// redactEnds removes the longest part of a secret from both ends of a text, or the whole text.
func (r Values) redactEnds(s string) string {
	var first, last int
	var firstMark, lastMark string
	for _, v := range r.values {
		for _, shape := range v.shapes {
			if len(s) >= minLength && strings.Contains(shape, s) {
				return v.mark
			}
			if n := overlap(shape, s); n >= max(minLength, first) {
				first, firstMark = n, v.mark
			}
			if n := overlap(s, shape); n >= max(minLength, last) {
				last, lastMark = n, v.mark
			}
		}
	}
	if first+last > len(s) { // two secrets overlap
		return firstMark
	}
	return firstMark + s[first:len(s)-last] + lastMark
}
