package agent

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestResultsAreToldApartByMoreThanTimeAndSpace(t *testing.T) {
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
		if (foldResult(a[1:len(a)-1]) == foldResult(b[1:len(b)-1])) != tc.same {
			t.Errorf("%q and %q: want the same %v", tc.a, tc.b, tc.same)
		}
	}
}

// The regexps are looked up only where a first look says that they may match.
func TestNoTimeIsOverlooked(t *testing.T) {
	word := rapid.StringMatching(`[a(]?(\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?Z?|\d{1,2}:\d{2}:\d{2}|20\d{6}[T_-]?\d{6}|1\d{9}|\d{1,3}(\.\d+)?(ns|µs|us|ms|s|secs|seconds|m)|[\dT:.-]{1,12})[,)s]?`)
	rapid.Check(t, func(t *rapid.T) {
		w := word.Draw(t, "word")
		stamped, measured := timed(w, 5)
		if !stamped && stamp.MatchString(w) || !measured && lasted.MatchString(w) {
			t.Fatalf("timed(%q) = %v, %v", w, stamped, measured)
		}
	})
}
