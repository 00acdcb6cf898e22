package forge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClipKeepsShortText(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 1000)} {
		if got := clip(text, 1000); got != text {
			t.Errorf("Clip changed %q to %q", text, got)
		}
	}
	if got := clip("a\x00b\xffc", 100); got != "ab\uFFFDc" {
		t.Errorf("Clip = %q", got)
	}
}

func TestClipNeverExceedsItsLimitNorBreaksARune(t *testing.T) {
	piece := rapid.SampledFrom([]string{"é", "🦀", "\n", "word ", "\xff"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 400).Draw(t, "pieces"), "")
		limit := rapid.IntRange(len(more), 1500).Draw(t, "limit")
		got := clip(text, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("%d bytes for a limit of %d: %q", len(got), limit, got)
		}
		if again := clip(got, limit); again != got {
			t.Fatalf("clipping again changed %q to %q", got, again)
		}
		if len(text) > limit && strings.ToValidUTF8(text, "") == text && !strings.HasSuffix(got, more) {
			t.Fatalf("the cut does not show: %q", got)
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
		if len(got) > maxText || strings.Count(got, "<!-- m -->") < 1 {
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
