//go:build eval

package calibrate

import (
	"os"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// TestEvalThresholds prints what thresholds do on the recorded pairs, and holds
// the shipped default against them: the views that decide must not show a
// better one.
func TestEvalThresholds(t *testing.T) {
	f, err := os.Open("../../../shared/corpora/stagnation-pairs.jsonl.gz")
	if err != nil {
		t.Skipf("the evaluation data is not here: %v", err)
	}
	defer f.Close()
	r, err := Measure(Read(f), Options{Threshold: policy.Defaults().Similarity, Seed: 1, Resamples: 2000})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
	for _, v := range r.Views {
		if v.View != prose && v.HeldOut.Better {
			t.Errorf("%s: the default is not what the data supports: %s", v.View, v.Verdict())
		}
	}
}
