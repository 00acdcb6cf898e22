package edit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

func TestTextsAreComparedWithoutWhiteSpaceAndTimestamps(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"x := 1\n", "x := 1", true},
		{"\tx := 1\n\n\ty := 2\n", "  x := 1  \r\n y := 2", true},
		{"built 2026-11-21T08:30:00Z by x", "built 2027-01-02T09:00:01.123456Z by x", true},
		{"built 2026-11-21 08:30:00 by x", "built 2026-12-21 18:31:07 by x", true},
		{"at 1795248776536", "at 1795248799999", true},
		{"at (1795248776)", "at (1795248799)", true},
		{"counter: 1", "counter: 2", false},
		{"port 8080", "port 8081", false},
		{"044e7c69b539615f", "3c29e61e27c6ee95", false},
		{"x := 1", "x := 1\ny := 2", false},
		{"a\nb", "b\na", false},
		{"version 1.2.3", "version 1.2.4", false},
	} {
		a, _ := fold(tc.a, false)
		b, _ := fold(tc.b, false)
		if (a == b) != tc.same {
			t.Errorf("%q and %q: same %v, want %v", tc.a, tc.b, a == b, tc.same)
		}
	}
}

func TestEditKeysDifferIfTextsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,9}( [a-z]{1,9}){0,3}`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		same := strings.Join(strings.Fields(b), " ") == strings.Join(strings.Fields(c), " ")
		if got := Replaced("f", a, b).Key == Replaced("f", a, c).Key; got != same {
			t.Fatalf("%q to %q and to %q: same key %v", a, b, c, got)
		}
		if a != b && Replaced("f", a, b).Key == Replaced("f", b, a).Key {
			t.Fatalf("%q to %q has the key of the reverse edit", a, b)
		}
		if Replaced("f", a, b).Key == 0 || Written("f", a).Key == 0 || Written("f", "").State == 0 {
			t.Fatal("a known edit has no key")
		}
	})
}

func TestPatchListsItsFilesAndLines(t *testing.T) {
	edits := Patch("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.go\n+package a\n+var x int\n" +
		"*** Update File: old.go\n@@ func a\n same line\n-was here\n+is here now\n*** Delete File: gone.go\n*** End Patch\nEOF\n")
	var got []string
	for _, e := range edits {
		got = append(got, fmt.Sprintf("%s +%d -%d %v", e.Path, len(e.Added), len(e.Removed), e.Key != 0))
	}
	want := []string{"new.go +2 -0 true", "old.go +1 -1 true", "gone.go +0 -0 true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again := Patch("*** Begin Patch\n*** Update File: old.go\n@@ func b\n same line\n-was here\n+is here now\n*** End Patch\n"); again[0].Key == edits[1].Key {
		t.Error("the same lines at another place have the same key")
	}
}

func TestFileAddedByPatchEqualsWrittenFile(t *testing.T) {
	add := func(text string) policy.Edit {
		return Patch("*** Begin Patch\n*** Add File: a.go\n" + text + "*** End Patch\n")[0]
	}
	e, written := add("+package a\n+var x int\n"), Written("a.go", "package a\nvar x int\n")
	if !e.Whole || e.State != written.State || !slices.Equal(e.Added, written.Added) || len(e.Removed) > 0 {
		t.Errorf("%+v, want the file as %+v", e, written)
	}
	if other := add("+package a\n+var y int\n"); other.State == e.State || other.Key == e.Key {
		t.Error("different content has the same key")
	}
}

func TestResultsAreComparedWithoutTimeAndWhiteSpace(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"ok 0.12s, 3 failed", "ok 4.5s, 3 failed", true},
		{"3 failed", "2 failed", false},
		{"at 9:05:01 it failed", "at 9:06:44 it failed", true},
		{"2026-11-21T09:05:01.5Z ERROR no space", "2026-11-22T19:05:01.7Z ERROR no space", true},
		{"run 20261121T090501", "run 20261121T101112", true},
		{"a  b\n\n c\t\n", "a b\nc", true},
		{"a b", "a\nb", false},
		{`C:\new 1`, "C: ew 1", false},
		{`say "no"`, `say "yes"`, false},
		{"seed 123456", "seed 123457", false},
		{"took 12µs", "took 7µs", true},
		{"", "\n\n", true},
		{"", "x", false},
	} {
		a, errA := json.Marshal(tc.a)
		b, errB := json.Marshal(tc.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if (Result(string(a[1:len(a)-1])) == Result(string(b[1:len(b)-1]))) != tc.same {
			t.Errorf("%q and %q: want same %v", tc.a, tc.b, tc.same)
		}
	}
}

// The regular expressions run only if a cheaper check says that they may match.
func TestPrecheckMissesNoTime(t *testing.T) {
	word := rapid.StringMatching(`[a(]?(\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?Z?|\d{1,2}:\d{2}:\d{2}|20\d{6}[T_-]?\d{6}|1\d{9}|\d{1,3}(\.\d+)?(ns|µs|us|ms|s|secs|seconds|m)|[\dT:.-]{1,12})[,)s]?`)
	rapid.Check(t, func(t *rapid.T) {
		w := word.Draw(t, "word")
		stamped, measured := timed(w)
		if !stamped && stamp.MatchString(w) || !measured && lasted.MatchString(w) {
			t.Fatalf("timed(%q) = %v, %v", w, stamped, measured)
		}
	})
}
