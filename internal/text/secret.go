package text

import (
	"bytes"
	"io"
	"regexp"
	"strings"
)

// minSecret is the length in bytes from which a value is taken for a secret.
// Shorter ones ("true", "eu-west") stand in any text.
const minSecret = 8

// tokens are GitHub's: installation tokens of the old form and of the new one,
// which has about 520 characters with dots, tokens of persons, and App JWTs.
var tokens = regexp.MustCompile(`gh[a-z]_[A-Za-z0-9._-]{36,}|github_pat_[A-Za-z0-9_]{36,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)

// Redact replaces every GitHub token in a text with a fixed mark. Texts that may
// quote a request, a git remote or the output of a program go through it before
// they reach a log, an error or a comment.
func Redact(s string) string { return tokens.ReplaceAllString(s, "[redacted token]") }

// Redactor takes the values of variables and GitHub's tokens out of texts.
type Redactor struct{ values *strings.Replacer }

// NewRedactor hides the values of the named variables that are set; each is
// replaced by a mark with its name.
func NewRedactor(names []string, lookup func(name string) (value string, ok bool)) Redactor {
	var pairs []string
	for _, n := range names {
		if v, ok := lookup(n); ok && len(v) >= minSecret {
			pairs = append(pairs, v, "[hidden: "+n+"]")
		}
	}
	return Redactor{strings.NewReplacer(pairs...)}
}

// Redact returns the text without the secrets.
func (r Redactor) Redact(s string) string { return Redact(r.values.Replace(s)) }

// Mask replaces a secret in a text by as many stars, so that lengths stay as they
// are. A short one is a placeholder, and masking it would spoil the text.
func Mask(s, secret string) string {
	if len(secret) < minSecret {
		return s
	}
	return strings.ReplaceAll(s, secret, strings.Repeat("*", len(secret)))
}

// masking is the reader of MaskReader.
type masking struct {
	from   io.Reader
	secret []byte
	mask   []byte
	in     []byte
	held   []byte // read, and possibly the beginning of the secret
	out    []byte // ready to be given
	err    error
}

// MaskReader replaces a secret in a stream by as many stars, also where it comes in
// two pieces. It holds back no more than the beginning of a possible secret, so
// whole lines of a stream are never delayed.
func MaskReader(from io.Reader, secret string) io.Reader {
	if len(secret) < minSecret {
		return from
	}
	return &masking{from: from, secret: []byte(secret), mask: bytes.Repeat([]byte("*"), len(secret)), in: make([]byte, 32<<10)}
}

func (r *masking) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *masking) fill() {
	n, err := r.from.Read(r.in)
	r.held = append(r.held, r.in[:n]...)
	r.err = err
	text := bytes.ReplaceAll(r.held, r.secret, r.mask)
	keep := 0
	if err == nil {
		keep = overlap(text, r.secret)
	}
	cut := len(text) - keep
	r.out = text[:cut]
	r.held = append(r.held[:0], text[cut:]...)
}

// overlap is the length of the longest end of text that begins secret without being
// all of it.
func overlap(text, secret []byte) int {
	for n := min(len(secret)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}
