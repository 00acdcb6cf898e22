package policy

import (
	"strings"
	"testing"
)

func TestHostHasOneCanonicalForm(t *testing.T) {
	for in, want := range map[string]string{
		"example.org": "example.org", "Example.ORG": "example.org", "a_b.example.org": "a_b.example.org", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"registry": "registry", "0x.example": "0x.example", "1.example": "1.example",
	} {
		if got, err := CanonicalHost(in); got != want || err != nil {
			t.Errorf("CanonicalHost(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", ".", "example.org.", ".example.org", "a..b", "example.org\x00.evil.org", "example%2eorg", "exаmple.org", "example。org", "\u017f.example.org", "\u212a.example.org",
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0x", "::1", "[::1]", "fe80::1%lo", "::ffff:127.0.0.1", "a b", "user@example.org", "example.org/x",
		"example.org:443", "-a.example.org", "a-.example.org", strings.Repeat("a.", 127) + "ab", strings.Repeat("a", 64) + ".org", "a\nb.org", "*.example.org",
	} {
		if got, err := CanonicalHost(in); err == nil {
			t.Errorf("CanonicalHost(%q) = %q; want it refused", in, got)
		}
	}
}

func TestHostRulesAllowExactMatches(t *testing.T) {
	rule := func(text string) (r HostRule) {
		t.Helper()
		if err := r.UnmarshalText([]byte(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return r
	}
	for _, c := range []struct {
		rule, host, port string
		want             bool
	}{
		{"example.org", "example.org", "443", true}, {"example.org", "example.org", "80", false}, {"example.org:80", "example.org", "80", true},
		{"example.org", "www.example.org", "443", false}, {"*.example.org", "www.example.org", "443", true}, {"*.example.org", "a.b.example.org", "443", true},
		{"*.example.org", "example.org", "443", false}, {"*.example.org", "evilexample.org", "443", false}, {"example.org", "example.org.evil.com", "443", false},
	} {
		if got := rule(c.rule).Allows(c.host, c.port); got != c.want {
			t.Errorf("%s allows %s:%s: %t", c.rule, c.host, c.port, got)
		}
	}
	for _, text := range []string{"", "*", "*:443", "*.", "a.*.org", "*example.org", "example.org:0", "example.org:+1", "example.org:0443", "example.org:65536", "example.org:", "10.0.0.1:443", "https://example.org"} {
		if err := new(HostRule).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted as a rule", text)
		}
	}
	for _, c := range []struct {
		rule, list string
		want       bool
	}{
		{"a.org", "a.org", true}, {"a.org", "*.a.org", false}, {"b.a.org", "*.a.org", true}, {"*.b.a.org", "*.a.org", true}, {"*.a.org", "*.b.a.org", false},
		{"*.a.org", "a.org", false}, {"*.a.org", "*.a.org", true}, {"b.a.org:80", "*.a.org", false},
	} {
		if got := rule(c.rule).In([]HostRule{rule(c.list)}); got != c.want {
			t.Errorf("%s in %s: %t", c.rule, c.list, got)
		}
	}
}
