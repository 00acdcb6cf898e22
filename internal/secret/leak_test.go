package secret

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
)

func TestLeaksAreFoundInEveryForm(t *testing.T) {
	const value = "s3cret/valué \"of\" the operator"
	l := New([]string{"KEY", "SHORT"}, func(n string) (string, bool) {
		return map[string]string{"KEY": value, "SHORT": "true"}[n], true
	})
	lines := []string{
		value, hex.EncodeToString([]byte(value)), url.QueryEscape(value), url.PathEscape(value), `{"k":"s3cret/valué \"of\" the operator"}`,
		"-----BEGIN OPENSSH PRIVATE " + "KEY-----", "-----BEGIN PRIVATE " + "KEY-----", "-----BEGIN PGP PRIVATE KEY " + "BLOCK-----",
		"id = AKIA" + strings.Repeat("Q", 16), "sk-ant-" + strings.Repeat("a", 40), "sk-proj-" + strings.Repeat("b", 40),
		"AIza" + strings.Repeat("c", 35), "ghp_" + strings.Repeat("d", 36), "npm_" + strings.Repeat("e", 36), "glpat-" + strings.Repeat("f", 20),
	}
	for i := range 4 {
		around := []byte(strings.Repeat("x", i) + value + "yz")
		lines = append(lines, base64.StdEncoding.EncodeToString(around), base64.URLEncoding.EncodeToString(around))
	}
	for _, line := range lines {
		found, ok := l.Find("a.txt", "before "+line+" after")
		if !ok || len(found.Fingerprint) != 16 || strings.Contains(found.Kind, value) {
			t.Errorf("%q: %+v, %v", line, found, ok)
		}
	}
	for _, line := range []string{"", "true", "skip-ant", "-----BEGIN PUBLIC " + "KEY-----", "-----BEGIN CERTIFICATE-----", "task-management-systems-are-not-a-secret", "AKIA is a prefix"} {
		if found, ok := l.Find("a.txt", line); ok {
			t.Errorf("%q is called %+v", line, found)
		}
	}
}

func TestLeakFingerprintCoversFileAndValue(t *testing.T) {
	var l Values
	key := "AKIA" + strings.Repeat("Q", 16)
	a, _ := l.Find("a", key)
	b, _ := l.Find("b", key)
	c, _ := l.Find("a", "AKIA"+strings.Repeat("R", 16))
	again, _ := l.Find("a", "moved: "+key)
	if a == b || a == c || a != again {
		t.Errorf("%v %v %v %v", a, b, c, again)
	}
}

func TestKeysOfEveryFormAreRemoved(t *testing.T) {
	const key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nAAAA=\n-----END OPENSSH PRIVATE KEY-----"
	r := New([]string{"V"}, func(string) (string, bool) { return "the value of it", true })
	for in, want := range map[string]string{
		"before " + key + " after":                                "before [redacted private key] after",
		"cut " + key[:60]:                                         "cut [redacted private key]",
		strings.ReplaceAll(key, "\n", "\\n") + ".":                "[redacted private key].",
		"id AKIAQQQQQQQQQQQQQQQQ, no AKIAQQ":                      "id [redacted: an AWS access key], no AKIAQQ",
		"dGhlIHZhbHVlIG9mIGl0 and 7468652076616C7565206F66206974": "[hidden: V] and [hidden: V]",
		"the+value+of+it":                                         "[hidden: V]",
	} {
		if got := r.Redact(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
