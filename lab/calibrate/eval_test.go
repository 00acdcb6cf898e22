//go:build eval

package main

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// recorded opens the recorded pairs.
func recorded(t *testing.T) *os.File {
	f, err := os.Open("../../../shared/corpora/stagnation-pairs.jsonl.gz")
	if err != nil {
		t.Skipf("the evaluation data is missing: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestEvalThresholds prints the report on the recorded pairs. It fails if a view, except the agent's prose, shows that
// another threshold is better than the default.
func TestEvalThresholds(t *testing.T) {
	f := recorded(t)
	r, err := Measure(Read(f), Options{Threshold: policy.Defaults().Stagnation.Similarity, Seed: 1, Resamples: 2000})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Text(&b)
	t.Log("\n" + b.String())
	for _, v := range r.Views {
		if v.View != prose && v.HeldOut.Better {
			t.Errorf("%s: the data does not support the default: %s", v.View, v.Verdict())
		}
	}
}

// TestEvalFalseAlarms counts the false alarms whose failures name the same failing tests. A false alarm is a pair with similar
// failures and different patches. If the failing tests are equal, the alarm is right about the failure.
func TestEvalFalseAlarms(t *testing.T) {
	threshold := policy.Defaults().Stagnation.Similarity
	alarms, equal := 0, 0
	for p, err := range Read(recorded(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if s, _ := byPrint(p.View, p.A, p.B); p.View != "failure" || p.Label != Different || s < threshold {
			continue
		}
		alarms++
		if a := failing(p.A); len(a) > 0 && maps.Equal(a, failing(p.B)) {
			equal++
		}
	}
	t.Logf("%d failures of different patches are similar from %.2f on; %d of them name exactly the same failing tests", alarms, threshold, equal)
}

// failing returns the failing tests in the output of pytest, unittest or sympy's runner.
func failing(output string) map[string]bool {
	named := regexp.MustCompile(`(?m)^(?:FAILED|ERROR) (\S+)|^(\S+ \(\S+\)) \.\.\. (?:FAIL|ERROR)|^_{3,} (\S+) _{3,}|^(test_\w+) [FE]\b`)
	tests := map[string]bool{}
	for _, m := range named.FindAllStringSubmatch(output, -1) {
		tests[strings.Join(m[1:], "")] = true
	}
	return tests
}
