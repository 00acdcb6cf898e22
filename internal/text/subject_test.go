package text

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestASubjectDoesNothingAtGitHub(t *testing.T) {
	for from, want := range map[string]string{
		"fix: keep the port":                                  "fix: keep the port",
		"Fixes #12 and closes acme/widgets#3":                 "Fixes 12 and closes acme/widgets3",
		"Closes https://github.com/acme/widgets/issues/1 now": "Closes now",
		"Closes GH-12":                                        "Closes GH 12",
		"Thanks @ada and @acme/team":                          "Thanks ada and acme/team",
		"feat: x [skip ci] [ci skip]":                         "feat: x (skip ci) (ci skip)",
		"***NO_CI*** x":                                       "NO_CI x",
		"one\ntwo\r\n\nskip-checks: true":                     "one two skip-checks: true",
		"revert 0123456789abcdef0123456789abcdef01234567":     "revert",
		"see abc1234 and added and 1234567":                   "see and added and 1234567",
		"\u202ereversed\u200b <!-- x -->":                     "reversed !-- x --",
		"":                                                    "",
		strings.Repeat("ä", 100):                              strings.Repeat("ä", 34) + "…",
	} {
		if got := Subject(from, 72); got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
}

func TestNoTextMakesASubjectDangerous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"#", "@", "1", "a", "[", "]", "skip ci", "GH-", "://", "http", " ", "\n", "fixes", "\u200b", "<!--", "`", "0123456789abcdef", "/"})).Draw(t, "parts"), "")
		got := Subject(s, 60)
		if len(got) > 60 || strings.ContainsAny(got, "\n\r@#[]`<>") || strings.Contains(got, "://") {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
