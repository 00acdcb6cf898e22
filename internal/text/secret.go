package text

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"
)

// minSecret is how long a secret is at least, in bytes; "true" and "eu-west" stand in any text.
const minSecret = 8

// tokens are GitHub's: installation tokens of the old form and of the new one,
// which has about 520 characters with dots, tokens of persons, and App JWTs.
var tokens = regexp.MustCompile(`gh[a-z]_[A-Za-z0-9._-]{36,}|github_pat_[A-Za-z0-9_]{36,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)

// keys are private keys, to their ends where those are there.
var keys = regexp.MustCompile(`(?s)-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=:,.\-\s\\]*?-----END [A-Z0-9 ]+-----|[A-Za-z0-9+/=\s\\]*)`)

// Redact replaces GitHub's tokens, keys that say what they are and private keys in a text that may quote a request, a
// git remote or a program.
func Redact(s string) string {
	s = tokens.ReplaceAllString(s, "[redacted token]")
	s = keys.ReplaceAllString(s, "[redacted private key]")
	for _, k := range keyForms[2:] {
		s = k.form.ReplaceAllString(s, "[redacted: "+k.Kind+"]")
	}
	return s
}

// Secrets finds secrets in texts and takes them out: the values of variables, also in other writings and in pieces, and
// what says itself that it is one. The zero value knows no values.
type Secrets struct {
	secrets []secret // the longest first: it may begin with a shorter one
	pieceTable
}

type secret struct {
	mark     string
	shapes   []string // of which a text that was cut may hold a part
	writings []string
}

// NewSecrets knows the values of the named variables that are set, and hides them behind marks with their names.
func NewSecrets(names []string, lookup func(name string) (value string, ok bool)) Secrets {
	r := Secrets{pieceTable: pieceTable{of: map[uint64][]pieceAt{}}}
	for _, n := range names {
		v, ok := lookup(n)
		if v = strings.TrimSpace(v); ok && len(v) >= minSecret {
			r.secrets = append(r.secrets, secret{"[hidden: " + n + "]", []string{v, strings.Join(strings.Fields(v), " ")}, writings(v)})
		}
	}
	slices.SortStableFunc(r.secrets, func(a, b secret) int { return cmp.Compare(len(b.shapes[0]), len(a.shapes[0])) })
	for _, s := range r.secrets {
		for _, w := range s.writings {
			r.add(w, s.mark)
		}
	}
	return r
}

// cuts are the marks that stand where a text was cut, here and in solver/attempt.
var cuts = regexp.MustCompile(`\s*(?:\[cut\]|\[…\]|…)\s*`)

// Redact returns the text without the secrets, and without long parts of them where it was cut.
func (r Secrets) Redact(s string) string {
	r.RedactAll(&s)
	return s
}

// RedactAll does so to texts that are shown together: a value that stands in pieces may stand in several of them.
func (r Secrets) RedactAll(texts ...*string) {
	search := r.Search()
	for n, t := range texts {
		search.See(Place{Line: n + 1}, *t)
	}
	whole := search.whole()
	for _, t := range texts {
		*t = r.redactCuts(*t)
		for _, v := range r.secrets {
			for _, w := range slices.Concat(v.shapes, v.writings) {
				*t = strings.ReplaceAll(*t, w, v.mark)
			}
		}
		*t = Redact(r.hide(*t, whole))
	}
}

// redactCuts takes parts of secrets from where a text was cut.
func (r Secrets) redactCuts(s string) string {
	var b strings.Builder
	from := 0
	for _, at := range append(cuts.FindAllStringIndex(s, -1), []int{len(s), len(s)}) {
		b.WriteString(r.redactEnds(s[from:at[0]]))
		b.WriteString(s[at[0]:at[1]])
		from = at[1]
	}
	return b.String()
}

// redactEnds takes the longest part of a secret from both ends of a text, or all where it is one.
func (r Secrets) redactEnds(s string) string {
	var first, last int
	var firstMark, lastMark string
	for _, v := range r.secrets {
		for _, shape := range v.shapes {
			if len(s) >= minSecret && strings.Contains(shape, s) {
				return v.mark
			}
			if n := overlap(shape, s); n >= max(minSecret, first) {
				first, firstMark = n, v.mark
			}
			if n := overlap(s, shape); n >= max(minSecret, last) {
				last, lastMark = n, v.mark
			}
		}
	}
	if first+last > len(s) { // two secrets share a part
		return firstMark
	}
	return firstMark + s[first:len(s)-last] + lastMark
}

// Mask replaces a secret by as many stars, so that lengths stay; a short one is a placeholder.
func Mask(s, secret string) string {
	if len(secret) < minSecret {
		return s
	}
	return strings.ReplaceAll(s, secret, strings.Repeat("*", len(secret)))
}

type masking struct {
	from         io.Reader
	secret, mask []byte
	in           []byte
	held         []byte // read and masked; its end may be the beginning of the secret
	err          error
}

// MaskReader replaces a secret in a stream by as many stars, also in two pieces. It holds back no more than a
// possible beginning, so whole lines are never delayed.
func MaskReader(from io.Reader, secret string) io.Reader {
	if len(secret) < minSecret {
		return from
	}
	return &masking{from: from, secret: []byte(secret), mask: bytes.Repeat([]byte("*"), len(secret)), in: make([]byte, 4<<10)}
}

func (r *masking) Read(p []byte) (n int, err error) {
	for {
		ready := r.held
		if r.err == nil {
			ready = r.held[:len(r.held)-overlap(r.held, r.secret)]
		}
		if len(ready) > 0 {
			n = copy(p, ready)
			r.held = r.held[n:]
			return n, nil
		}
		if r.err != nil {
			return 0, r.err
		}
		n, r.err = r.from.Read(r.in)
		r.held = bytes.ReplaceAll(append(r.held, r.in[:n]...), r.secret, r.mask)
	}
}

// overlap is the length of the longest end of a that begins b.
func overlap[S string | []byte](a, b S) int {
	for n := min(len(b), len(a)); n > 0; n-- {
		if string(a[len(a)-n:]) == string(b[:n]) {
			return n
		}
	}
	return 0
}
