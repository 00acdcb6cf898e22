package simhash

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The fuzzer starts with these texts. Each contains a part that a rule removes, or a part that looks similar.
var fingerprintSeeds = []string{
	"",
	" \t\r\n\f\v ",
	"Error: cannot find module './Config'",
	"2025-11-13T08:20:11.482Z INFO  codex::exec: session 019a7b1c-2f3e-7d40-9b1a-0123456789ab started",
	"request req_011CV5x failed; cuid clh3x8z5v0000qz6f1a2b3c4d ref c_0123456789abcdefghij end",
	"commit 5f209919ed9cffc4aa31e0c7b1de2f3344556677 (HEAD -> main)\n    1 | package a\n   12:\tfunc main() {}\n\n13\tx\n",
	"1:\n2:\n  3: x\n\n4|\t5: y\n",
	"1234" + "2025-11-13T08:20:11Z" + "5678",
	"2025-11-13T08:20:11.12345678-1234-1234-1234-123456789012",
	"2025-11-13T08:20:11.019a7b1c-2f3e-7d40-9b1a-0123456789ab.7Z",
	"2025-11-13T08:20:05123456-1234-1234-1234-123456789012",
	"2025-11-13T08:20:11.cl01234567890123456789.5",
	"019a7b1c-2f3e-7d40-9b1a-012345672025-11-13T08:20:11",
	"2025-11-13T08:20:112025-11-13T08:20:11-07:00",
	"deadbeef DEADBEE _deadbeef deadbeef_ déadbeef \xffdeadbeef\xff 12345678:\n12345678: a\n123: b",
	strings.Repeat("a", 64) + " " + strings.Repeat("b", 65) + " " + strings.Repeat("1", 65) + ": x",
	"{\"type\":\"error\",\"message\":\"You've hit your usage limit. Try again at 9:06 AM.\",\"id\":\"019a7b1c-2f3e-7d40-9b1a-0123456789ab\"}\n",
}

func FuzzFingerprintAgreesWithReference(f *testing.F) {
	for _, s := range fingerprintSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { agrees(t, text) })
}

// agrees compares the shipped code with the reference.
func agrees(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) {
	t.Helper()
	if got, want := Fingerprint(text), referenceFingerprint(text); got != want {
		t.Fatalf("Fingerprint(%q) = %v, want %v for %q", text, got, want, Normalise(text))
	}
}

// trickyText joins pieces that are close to the limits of the rules. Random bytes almost never produce such pieces.
func trickyText() *rapid.Generator[string] {
	run := func(alphabet string, low, high int) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), low, high, -1)
	}
	hex := func(n int) *rapid.Generator[string] { return run("0123456789abcdefABCDEF", n, n) }
	uuid := rapid.Custom(func(t *rapid.T) string {
		var groups []string
		for _, n := range []int{8, 4, 4, 4, 12} {
			groups = append(groups, hex(n).Draw(t, "group"))
		}
		return strings.Join(groups, "-")
	})
	cuid := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"cl", "Cm", "c_", "C_", "cn"}).Draw(t, "prefix") + run("019azAZ", 19, 31).Draw(t, "rest")
	})
	stamp := rapid.Custom(func(t *rapid.T) string {
		return "2025-11-13T08:20:1" + run("0123456789", 1, 1).Draw(t, "second") + run(".Z0123456789", 0, 10).Draw(t, "tail")
	})
	number := rapid.Custom(func(t *rapid.T) string {
		return run("\n \t", 0, 3).Draw(t, "before") + run("0123456789", 1, 9).Draw(t, "number") +
			run("\t|: ", 0, 2).Draw(t, "separator") + run(" \t\n\r", 0, 3).Draw(t, "after")
	})
	glue := run("-T:Zz_. \t\n\v\r|xé09aF", 0, 3)
	piece := rapid.OneOf(uuid, cuid, stamp, number, glue, glue, run("0123456789abcdefABCDEF", 1, 66),
		rapid.SampledFrom([]string{"\xff", "\n", "\n\n", "\u00a0", "\u2028", "2025", "-", "T08:20:11", "error", " "}))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
	})
}

func TestFingerprintAgreesWithReferenceOnTrickyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := trickyText().Draw(t, "text")
		agrees(t, text)
	})
}
