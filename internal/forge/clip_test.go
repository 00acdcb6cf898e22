package forge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClipCutsAtALineAndClosesWhatItLeftOpen(t *testing.T) {
	long := strings.Repeat("0123456789 word\n", 200)
	for _, tt := range []struct{ name, text, closed string }{
		{"plain", long, "word\n\n*… "},
		{"fence", "```go\n" + long, "word\n```\n\n*… "},
		{"long fence with a short one inside", "````\n```\n" + long, "word\n````\n\n*… "},
		{"tilde fence", " ~~~ text\n" + long, "word\n~~~\n\n*… "},
		{"closed fence", "```\nx\n```\n" + long, "word\n\n*… "},
		{"inline code is no fence", "```a``` b\n" + long, "word\n\n*… "},
		{"comment", "<!-- hidden\n" + long, "word\n-->\n\n*… "},
		{"closed comment", "<!-- hidden -->\n" + long, "word\n\n*… "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Clip(tt.text, 1000)
			if !strings.Contains(got, tt.closed) || len(got) > 1000 || !strings.HasSuffix(got, "more bytes were cut here*") {
				t.Errorf("%d bytes, ending in %q", len(got), got[max(0, len(got)-80):])
			}
		})
	}
}

func TestClipLeavesWhatFits(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 1000)} {
		if got := Clip(text, 1000); got != text {
			t.Errorf("Clip changed %q to %q", text, got)
		}
	}
	if got := Clip("a\x00b\xffc", 100); got != "ab\uFFFDc" {
		t.Errorf("Clip = %q", got)
	}
}

func TestClipNeverExceedsItsLimitNorBreaksARune(t *testing.T) {
	piece := rapid.SampledFrom([]string{"```\n", "~~~~\n", "<!--", "-->", "é", "🦀", "\n", "word ", "\xff", "```````````` go\n", strings.Repeat("`", 200) + "\n"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 400).Draw(t, "pieces"), "")
		limit := rapid.IntRange(0, 1500).Draw(t, "limit")
		got := Clip(text, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("%d bytes for a limit of %d: %q", len(got), limit, got)
		}
		if again := Clip(got, limit); again != got {
			t.Fatalf("clipping again changed %q to %q", got, again)
		}
		if strings.HasSuffix(got, "cut here*") && closeOpen(got) != "" {
			t.Fatalf("left open: %q", got)
		}
	})
}

func TestAMarkerSurvivesClipping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringN(0, 300, -1).Draw(t, "body") + strings.Repeat("x\n", rapid.IntRange(0, 40_000).Draw(t, "lines"))
		if rapid.Bool().Draw(t, "marked") {
			body += "<!-- m -->"
		}
		got := withMarker(body, "<!-- m -->")
		if len(got) > MaxText || strings.Count(got, "<!-- m -->") < 1 {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

func TestClipLineMakesOneLine(t *testing.T) {
	if got := clipLine(" a\n b\tc ", 10); got != "a b c" {
		t.Errorf("%q", got)
	}
	if got := clipLine("äöüäöü", 4); got != "äöü…" {
		t.Errorf("%q", got)
	}
}
