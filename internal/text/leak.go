package text

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// keyForms are the forms of keys that say themselves what they are, as their issuers document them; those without
// a prefix of their own would find too much that is no key.
var keyForms = []struct {
	Kind string
	form *regexp.Regexp
}{
	{"a GitHub token", tokens}, // and JSON Web Tokens
	{"a private key", regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\r?\n[^\r\n]+)?`)}, // RFC 7468, OpenSSH, RFC 4880
	{"an AWS access key", regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`)},                                       // AWS, IAM identifiers
	{"an Anthropic key", regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]{32,}`)},
	{"an OpenAI key", regexp.MustCompile(`\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}`)},
	{"a Google API key", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{"a GitLab token", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{"a Slack token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}`)},
	{"a Stripe key", regexp.MustCompile(`\b[rs]k_live_[A-Za-z0-9]{20,}`)},
	{"an npm token", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{"a token of Pawl's gateway", regexp.MustCompile(`\bpawl-[A-Za-z0-9_-]{43}\b`)},
	{"a PyPI token", regexp.MustCompile(`\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}`)},
}

// Leak is a secret that was found in a line. It does not hold the secret.
type Leak struct {
	Kind string // what it looks like, such as "an AWS access key"
	// Fingerprint names the place and the value, for who allows it: 16 hexadecimal digits of a SHA-256.
	Fingerprint string
}

// writings are a value as it is and backwards, and as base64, base32, hexadecimal, URL and JSON write it.
func writings(v string) []string {
	quoted, _ := json.Marshal(v) // a string always can be
	h := hex.EncodeToString([]byte(v))
	all := []string{v, h, strings.ToUpper(h), url.QueryEscape(v), url.PathEscape(v), string(quoted[1 : len(quoted)-1]), backwards(v), backwards(h)}
	if s := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(v)); len(v) > 1 {
		all = append(all, s[:len(s)-1]) // whose last character depends on what follows
	}
	for skip := range 3 { // where in a group of three bytes the value begins
		raw := append(make([]byte, skip), v...)
		whole := len(raw) / 3 * 4 // the last characters depend on what follows, the first on what stands before
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if s := e.EncodeToString(raw)[[]int{0, 2, 3}[skip]:whole]; len(s) >= minSecret {
				all = append(all, s, backwards(s))
			}
		}
	}
	return all
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// Find is the first secret in a line of a file; ok is false where there is none.
func (r Secrets) Find(path, line string) (found Leak, ok bool) {
	for _, v := range r.values {
		if strings.Contains(line, v.raw) {
			return leak("a value that Pawl gave", path, v.raw), true
		}
	}
	for _, k := range keyForms {
		if v := k.form.FindString(line); v != "" {
			return leak(k.Kind, path, v), true
		}
	}
	return Leak{}, false
}

func leak(kind, path, value string) Leak {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", kind, path, value))
	return Leak{Kind: kind, Fingerprint: hex.EncodeToString(sum[:8])}
}
