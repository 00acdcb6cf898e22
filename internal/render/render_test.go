package render

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

var now = time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)

func TestInvisibleCharactersAreRemoved(t *testing.T) {
	for in, want := range map[string]string{
		"a\u3164\ufe0f<!-- pawl:status -->b":            "a<! -- pawl:status -->b",
		"<!-\u200b-\u00a0pawl:end -->":                  "<! --\u00a0pawl:end -->",
		"\x1b[31mred\x1b[0m and \x1b]8;;u\x07link":      "red and link",
		"\x1bPq#0\x1b\\a\x1b_b\x1b\\c\x1b(Bd":           "acd",
		"\u202eevil\u202c \u200bz\u034fero\u115f\u2066": "evil zero",
		"a\r\nb\rc\u2028d\vx\u0085y\tz":                 "a\nb\nc\nd\nx\ny\tz",
		"\xff\x00a\u009b31mb\x7f":                       "\uFFFDa31mb",
		"tag\U000e0041\U000e0042 plain":                 "tag plain",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// A terminal hides all text after such a start. A report that did the same would hide why the tests failed.
func TestUnterminatedSequenceHidesNoText(t *testing.T) {
	for _, start := range []string{"\x1b]0;title ", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1b[", "\x1b", "\u009d", "\u0090"} {
		got := Clean("before\n" + start + "FAIL: test\nafter\n")
		if !strings.HasPrefix(got, "before\n") || !strings.Contains(got, "AIL: test\nafter\n") {
			t.Errorf("%q hides: %q", start, got)
		}
	}
}

func TestCleanedTextIsShortAndHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 50).Draw(t, "max")
		raw := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for _, got := range []string{Line(raw, most), Block(raw, most)} {
			if utf8.RuneCountInString(got) > most {
				t.Fatalf("%q of at most %d", got, most)
			}
			harm(t, got)
		}
		if got := Excerpt(raw, most); len(got) > most+len("\n[…]\n") {
			t.Fatalf("%q of at most %d bytes", got, most)
		}
		harm(t, Clean(raw))
	})
}

func harm(t interface{ Fatalf(string, ...any) }, s string) {
	i := strings.IndexFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && policy.Invisible(r) })
	if i >= 0 || !utf8.ValidString(s) || strings.ContainsRune(s, '\x1b') || marker.MatchString(s) {
		t.Fatalf("%q is not harmless (at %d)", s, i)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u3164\ufe0f<!-- pawl:status -->b")
	f.Add("\x1b]0;x\x07\x1b[1m\x1bP0q\x1b\\<!--\u2003pawl")
	f.Fuzz(func(t *testing.T, s string) {
		harm(t, Clean(s))
		harm(t, Line(s, 60))
		harm(t, Block(s, 60))
	})
}

func TestLongTextIsCutBetweenCharacters(t *testing.T) {
	huge := strings.Repeat("語<é\x00", 200_000)
	for _, got := range []string{Line(huge, 100), Block(huge, 100)} {
		if utf8.RuneCountInString(got) != 100 || !strings.HasSuffix(got, "…") {
			t.Errorf("got %q", got)
		}
	}
	if h, l := Head("aé", 2), Tail("éa", 2); h != "a" || l != "a" {
		t.Errorf("got %q and %q", h, l)
	}
}

func TestOnlyWebAddressesBecomeLinks(t *testing.T) {
	for in, ok := range map[string]bool{
		"https://github.com/acme/widgets/pull/8": true, "http://127.0.0.1:8080/x": true, "HTTPS://github.com/x": true,
		"javascript:alert(1)": false, "data:text/html,x": false, "//evil.example": false, "/x": false, "": false,
		"https://user:secret@github.com/": false, "https://": false, "https://x\n.y/": false, "https://x/a)b": false,
	} {
		if got := URL(in); (got == in) != ok && in != "" || got != "" && got != in {
			t.Errorf("URL(%q) = %q, want it to be one: %t", in, got, ok)
		}
	}
}

func TestWordsAndPathsStayReadable(t *testing.T) {
	for in, want := range map[string]string{
		"65 edits, 16 of them on internal/a_b.go":     "65 edits, 16 of them on `internal/a_b.go`",
		"Comment /pawl resume to try before that.":    "Comment `/pawl resume` to try before that.",
		"stopped by @octocat, who asked for it":       "stopped by `@octocat`, who asked for it",
		"You've hit your limit (0.87; 3 × in a row).": "You've hit your limit (0.87; 3 × in a row).",
	} {
		if got := Prose(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNumbersAndTimesAreReadable(t *testing.T) {
	for want, got := range map[string]string{
		"5h 12m left (until 14:03 UTC)":           Left(now, now.Add(5*time.Hour+12*time.Minute)),
		"2d 3h left (until 2026-03-06 11:51 UTC)": Left(now, now.Add(51*time.Hour)),
		"17h left (until 2026-03-05 01:51 UTC)":   Left(now, now.Add(17*time.Hour)),
		"under a minute left (until 08:51 UTC)":   Left(now, now.Add(20*time.Second)),
		"due since 08:50 UTC":                     Left(now, now.Add(-time.Minute)),
		"4m 5s":                                   Span(4*time.Minute + 5*time.Second),
		"1h":                                      Span(time.Hour + 5*time.Second),
		"59s":                                     Span(59*time.Second + 999*time.Millisecond),
		"106,751d 23h":                            Span(1<<63 - 1),
		"0s":                                      Span(-time.Second),
		"1,234,567":                               Count(1234567),
		"-123":                                    Count(-123),
		"1 attempt":                               policy.Plural(1, "attempt"),
		"$0.00":                                   Dollars(0),
		"$0.0012":                                 Dollars(0.0012),
		"$0.42":                                   Dollars(0.42),
		"$99999.99":                               Dollars(math.Inf(1)),
		"1,200 attempts":                          policy.Plural(1200, "attempt"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
