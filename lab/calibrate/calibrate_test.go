package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/goldentest"
)

// madeUp returns pairs of invented texts.
func madeUp(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// printed returns the report as text and as JSON.
func printed(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	r.Text(&b)
	j, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(j) + "\n"
}

// measured measures lines with few resamples.
func measured(t *testing.T, lines string) Report {
	t.Helper()
	r, err := Measure(Read(strings.NewReader(lines)), Options{Threshold: 0.85, Seed: 1, Resamples: 300})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReportAndPictureAreGolden(t *testing.T) {
	r := measured(t, madeUp(t))
	goldentest.Compare(t, "testdata/report.golden", printed(t, r))
	goldentest.Compare(t, "testdata/roc.golden.svg", r.SVG())
}

// line returns one pair as a line of input. In these tests, different texts share no trigram.
func line(label string, task int, a, b string) string {
	return fmt.Sprintf(`{"view": "diff", "label": %q, "group": "t%d", "a": %q, "b": %q}`+"\n", label, task, a, b)
}

func TestOneLabelLeavesTheCurveUnknown(t *testing.T) {
	for label, missing := range map[string]string{Same: Different, Different: Same} {
		r := measured(t, line(label, 1, "a b c", "a b c")+line(label, 2, "a b c", "d e f"))
		v := r.Views[0]
		if v.AUC.Known() || v.AUC95[0].Known() || v.Recommended != nil || len(v.ROC) > 0 || v.HeldOut.Better {
			t.Errorf("%s only: %+v", label, v)
		}
		known, unknown := v.Current.TPR, v.Current.FPR
		if label == Different {
			known, unknown = unknown, known
		}
		if known != 0.5 || unknown.Known() {
			t.Errorf("%s only: current %+v", label, v.Current)
		}
		text := printed(t, r)
		if !strings.Contains(text, "no pair is labelled "+missing) || !strings.Contains(text, `"auc": null`) || strings.Contains(text, "NaN") {
			t.Errorf("%s only:\n%s", label, text)
		}
		if strings.Contains(r.SVG(), "NaN") {
			t.Errorf("%s only:\n%s", label, r.SVG())
		}
	}
}

func TestTooCostlyThresholdIsNotRecommended(t *testing.T) {
	// All pairs have equal texts, so every threshold calls all or no pairs similar.
	r := measured(t, line(Same, 1, "a b c", "a b c")+line(Different, 2, "a b c", "a b c"))
	if v := r.Views[0]; v.Recommended != nil || v.AUC != 0.5 || !strings.Contains(v.Verdict(), "no threshold finds anything") {
		t.Errorf("recommended %+v, AUC %v, %s", v.Recommended, v.AUC, v.Verdict())
	}
}

func TestFewTasksShowNoBetterThreshold(t *testing.T) {
	near := "a b c d e f g h i j k l m n"
	var few, many string
	for task := range 2 * minTasks {
		pair := line(Same, task, near, near+" o p") + line(Different, task, near, "q r s t u")
		if task < 2 {
			few += pair
		}
		many += pair
	}
	// The current threshold of 1 finds no pair of similar texts. The rule's threshold finds all.
	for lines, want := range map[string]bool{few: false, many: true} {
		r, err := Measure(Read(strings.NewReader(lines)), Options{Threshold: 1, Seed: 1, Resamples: 50})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Views[0]; v.HeldOut.Better != want || v.HeldOut.Gain != 1 {
			t.Errorf("%d tasks: %+v, want better %t with a gain of 1", v.Groups, v.HeldOut, want)
		}
	}
}

func TestRecommendedThresholdCanBeSet(t *testing.T) {
	// A threshold with two decimals must call exactly the same distances similar as the exact score.
	for bits := range 65 {
		score := 1 - float64(bits)/64
		set := float64(settable(Number(score)))
		if set > score || bits < 64 && set <= 1-float64(bits+1)/64 {
			t.Errorf("%d bits: the setting %v does not match the score %v", bits, set, score)
		}
	}
}

func TestEmptyTextsAreCounted(t *testing.T) {
	r := measured(t, line(Same, 1, "", "")+line(Same, 2, "a b c", "a b c")+line(Different, 1, "a b c", "d e f"))
	if v := r.Views[0]; v.Empty != 1 || v.Current.TPR != 0.5 || len(v.Reservations) != 3 {
		t.Errorf("%d empty, true positives %v, %q", v.Empty, v.Current.TPR, v.Reservations)
	}
}
