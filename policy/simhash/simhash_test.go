package simhash

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVolatileTextIsRemoved(t *testing.T) {
	const (
		uuid  = "019a7b1c-2f3e-7d40-9b1a-0123456789AB"
		cuid  = "clh3x8z5v0000qz6f1a2b3c4d"
		stamp = "2025-11-13T08:20:11.482Z"
		hash  = "5f209919ed9cffc4"
	)
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"only white space", " \t\r\n\f", ""},
		{"case and white space", "  Error:\tNo\r\n\r\nTests ", "error: no tests"},
		{"a vertical tab is not white space", "a\vb", "a\vb"},
		{"a UUID", "session " + uuid + " ends", "session ends"},
		{"a UUID in a longer word stays, except its hashes", "x" + uuid, "x019a7b1c-2f3e-7d40-9b1a-"},
		{"an identifier", "id " + cuid + " C_0123456789abcdefghij ends", "id ends"},
		{"an identifier that is too short stays", "cl0123456789abcdefghi", "cl0123456789abcdefghi"},
		{"a time stamp", stamp + " [" + stamp + "] error", "[] error"},
		{"a time stamp with its zone leaves the zone", "2025-11-13T08:20:11+02:00", "+02:00"},
		{"a hash", "commit " + hash + " (HEAD)", "commit (head)"},
		{"a hash in a longer word stays", "_" + hash + " é" + hash, "_" + hash + " é"},
		{"seven digits are not hashes", "abcdef1", "abcdef1"},
		{"65 digits are not hashes", strings.Repeat("a", 65), strings.Repeat("a", 65)},
		{"line numbers", "   12:\tfoo\n13|  bar\n14\tbaz", "foo bar baz"},
		{"line numbers of empty lines", "1:\n2:\n3: foo", "foo"},
		{"a number after a line number whose indentation is removed, too", "1:\n  2: foo", "2: foo"},
		{"a number in a line", "a 12: b", "a 12: b"},
		{"a number that follows a removed hash", hash + " 12: b", "b"},
		{"a number with eight digits is a hash first", "12345678: b", ": b"},
		{"a time stamp between two halves of a hash", "1234" + stamp + "5678abcd", ""},
		{"a time stamp between two halves of a word", "wor" + stamp + "king", "working"},
		{"a UUID behind a time stamp's dot", "2025-11-13T08:20:11." + uuid + ".5Z", ""},
		{"bytes that are not text", "\xff" + hash + "\xfe", "\xff\xfe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Normalise(tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			agrees(t, tc.text)
		})
	}
}

// These numbers come from the reference implementation. They must never change, because fingerprints are stored in the log.
func TestFingerprintsNeverChange(t *testing.T) {
	log, err := os.ReadFile("testdata/log.txt")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                "0000000000000000",
		"5f209919":        "0000000000000000",
		"a":               "af63dc4c8601ec8c",
		"A \n":            "af63dc4c8601ec8c",
		"foobar":          "85944171f73967e8",
		"usage limit":     "732c9fdf82b653cb",
		"usage limit hit": "df0132deca561566",
		"a b c d":         "2983000005a50428",
		string(log):       "481aaa7b9f1cfd90",
	} {
		if got := Fingerprint(text).String(); got != want {
			t.Errorf("Fingerprint(%.30q) = %s, want %s", text, got, want)
		}
		if got := referenceFingerprint(text).String(); got != want {
			t.Errorf("reference of %.30q = %s, want %s", text, got, want)
		}
	}
}

func TestFingerprintAgreesWithReferenceOnALongText(t *testing.T) {
	log, err := os.ReadFile("testdata/log.txt")
	if err != nil {
		t.Fatal(err)
	}
	agrees(t, strings.Repeat(string(log), 100))
}

func TestSimilarityCountsEqualBits(t *testing.T) {
	for _, tc := range []struct {
		a, b Print
		want float64
	}{
		{0, 0, 1},
		{0xff, 0xff, 1},
		{0, ^Print(0), 0},
		{0, 0x1ff, 1 - 9.0/64},
		{0xffffffff, 0, 0.5},
	} {
		if got := Similarity(tc.a, tc.b); got != tc.want {
			t.Errorf("Similarity(%v, %v) = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
	if Similarity(0, 0x1ff) < 0.85 || Similarity(0, 0x3ff) >= 0.85 {
		t.Error("a similarity of 0.85 is not a distance of at most 9")
	}
}

func TestFailureHasTheSameFingerprintAtAnotherTime(t *testing.T) {
	a := Fingerprint("2025-11-13T08:20:11Z ERROR request 5f209919ed9cffc4 failed: You've hit your usage limit.")
	b := Fingerprint("2025-11-14T19:00:00Z ERROR request aa31e0c7b1de2f33 failed:\n  You've hit your usage LIMIT.")
	if a != b {
		t.Errorf("%v and %v", a, b)
	}
}

func TestFingerprintIsAStringInJSON(t *testing.T) {
	data, err := json.Marshal(map[string]Print{"fingerprint": 0xff})
	if err != nil || string(data) != `{"fingerprint":"00000000000000ff"}` {
		t.Fatalf("%s, %v", data, err)
	}
	var back struct{ Fingerprint, Empty Print }
	if err := json.Unmarshal([]byte(`{"fingerprint":"00000000000000ff","empty":""}`), &back); err != nil || back.Fingerprint != 0xff || back.Empty != 0 {
		t.Fatalf("%+v, %v", back, err)
	}
	for _, bad := range []string{"ff", "000000000000000g", "+0000000000000ff", "0x000000000000ff"} {
		var p Print
		if err := p.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, p)
		}
	}
}

func TestFingerprintDoesNotAllocate(t *testing.T) {
	log, err := os.ReadFile("testdata/log.txt")
	if err != nil {
		t.Fatal(err)
	}
	text := string(log)
	if n := testing.AllocsPerRun(10, func() { Fingerprint(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestClassesMatchTheRegexps(t *testing.T) {
	for i := range 256 {
		b := byte(i)
		within := func(set string) bool { return strings.IndexByte(set, b) >= 0 }
		letters := "abcdefghijklmnopqrstuvwxyz"
		upper := strings.ToUpper(letters)
		for _, c := range []struct {
			class byte
			set   string
		}{
			{isDigit, "0123456789"},
			{isHex, "0123456789abcdefABCDEF"},
			{isAlnum, "0123456789" + letters + upper},
			{isWord, "0123456789_" + letters + upper},
			{isSpace, "\t\n\f\r "},
			{isUpper, upper},
		} {
			if is(b, c.class) != within(c.set) {
				t.Errorf("byte %q and class %b", b, c.class)
			}
		}
	}
}
