package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

type form struct {
	kind   string         // such as "an AWS access key"
	finds  *regexp.Regexp // shortest identifying text
	hides  *regexp.Regexp // the whole key, if finds matches only its beginning; nil means finds
	hidden string         // replaces the key; empty: "[redacted: " and the kind
}

// forms are the documented forms of keys with a distinctive prefix.
//
// The detector of gitleaks (8.30, 222 rules) found nothing more in our test data. It does not recognise a private key
// by its first line alone, takes seven times as long, and adds 7 MB and 59 modules.
var forms = []form{
	// Installation tokens of the old and the new form (with dots); user tokens; JSON Web Tokens.
	{
		kind:   "a GitHub token",
		finds:  regexp.MustCompile(`gh[a-z]_[A-Za-z0-9._-]{36,}|github_pat_[A-Za-z0-9_]{36,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`),
		hidden: "[redacted token]",
	},
	// RFC 7468, OpenSSH, RFC 4880.
	{
		kind:   "a private key",
		finds:  regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\r?\n[^\r\n]+)?`),
		hides:  regexp.MustCompile(`(?s)-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=:,.\-\s\\]*?-----END [A-Z0-9 ]+-----|[A-Za-z0-9+/=\s\\]*)`),
		hidden: "[redacted private key]",
	},
	{kind: "an AWS access key", finds: regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`)}, // AWS, IAM identifiers
	{kind: "an Anthropic key", finds: regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]{32,}`)},
	{kind: "an OpenAI key", finds: regexp.MustCompile(`\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}`)},
	{kind: "a Google API key", finds: regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{kind: "a GitLab token", finds: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{kind: "a Slack token", finds: regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}`)},
	{kind: "a Stripe key", finds: regexp.MustCompile(`\b[rs]k_live_[A-Za-z0-9]{20,}`)},
	{kind: "an npm token", finds: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{kind: "a token of Pawl's gateway", finds: regexp.MustCompile(`\bpawl-[A-Za-z0-9_-]{43}\b`)},
	{kind: "a PyPI token", finds: regexp.MustCompile(`\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}`)},
}

// Redact replaces identifiable keys in a text.
func Redact(s string) string {
	for _, f := range forms {
		hides, mark := f.hides, f.hidden
		if hides == nil {
			hides = f.finds
		}
		if mark == "" {
			mark = "[redacted: " + f.kind + "]"
		}
		s = hides.ReplaceAllString(s, mark)
	}
	return s
}

// Leak describes a secret in a line without containing it.
type Leak struct {
	Kind string // such as "an AWS access key"
	// Fingerprint lets a maintainer allow this path and value: 16 hexadecimal digits of a SHA-256.
	Fingerprint string
}

func leak(kind, path, value string) Leak {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", kind, path, value))
	return Leak{Kind: kind, Fingerprint: hex.EncodeToString(sum[:8])}
}
