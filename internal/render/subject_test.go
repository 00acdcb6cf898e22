package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSubjectIsInertOnGitHub(t *testing.T) {
	for from, want := range map[string]string{
		"fix: keep the port":                                  "fix: keep the port",
		"Fixes #12 and closes acme/widgets#3":                 "Fixes 12 and closes acme/widgets 3",
		"Closes https://github.com/acme/widgets/issues/1 now": "Closes now",
		"Closes GH-12":                                        "Closes GH 12",
		"Thanks @ada and @acme/team":                          "Thanks ada and acme/team",
		"feat: x [skip ci] [ci skip]":                         "feat: x (skip ci) (ci skip)",
		"***NO_CI*** x":                                       "NO_CI x",
		"one\ntwo\r\n\nskip-checks: true":                     "one two skip-checks: true",
		"revert 0123456789abcdef0123456789abcdef01234567":     "revert",
		"see abc1234 and added and 1234567":                   "see and added and 1234567",
		"\u202ereversed\u200b <!-- x -->":                     "reversed !-- x --",
		"**`*NO_CI**`*":                                       "NO_CI",
		"w`ww.evil.example g`h-1":                             "GH 1",
		"":                                                    "",
		strings.Repeat("ä", 100):                              strings.Repeat("ä", 34) + "…",
	} {
		if got := Subject(from, 72).String(); got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
}

func TestNoTextMakesASubjectDangerous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"#", "@", "1", "a", "[", "]", "skip ci", "GH-", "://", "http", " ", "\n", "fixes", "\u200b", "<!--", "`", "0123456789abcdef", "/", "**", "*", "w", "ww.a"})).Draw(t, "parts"), "")
		got := Subject(s, 60).String()
		if again := Subject(got, 60).String(); again != got {
			t.Fatalf("%q became %q and then %q", s, got, again)
		}
		if len(got) > 60 || strings.ContainsAny(got, "\n\r@#[]`<>") || strings.Contains(got, "://") {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func TestInertTextIsSafeInCommitMessages(t *testing.T) {
	for from, want := range map[string]string{
		"Fixes #12, closes acme/widgets#3":                    "Fixes  12, closes acme/widgets 3",
		"closes https://github.com/acme/widgets/issues/4":     "closes https://github.com/acme/widgets/issues 4",
		"```\nresolves GH-5\n```":                             "```\nresolves GH 5\n```",
		"`@ada`, @acme/team and a@example.org":                "` ada`,  acme/team and a@example.org",
		"packages/@acme/web":                                  "packages/@acme/web",
		"acme/widgets@0123456789abcdef0123456789abcdef012345": "acme/widgets 0123456789abcdef0123456789abcdef012345",
		"[skip ci] [Actions Skip] [x] [a link](https://x)":    "(skip ci) (Actions Skip) [x] [a link](https://x)",
		"***NO_CI*** --skip-ci\nskip-checks: true":            "NO_CI skip-ci\nskip-checks true",
		"docs/issues/1.md costs #!":                           "docs/issues/1.md costs #!",
	} {
		if got := Inert(from); got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
}
