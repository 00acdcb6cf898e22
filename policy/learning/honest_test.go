package learning_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/policy/learning/learningtest"
)

// One backend does 80 % of its attempts well, another 40 %. For every scale that a judge may use, the learned means must be at
// least 0.8 times as far apart as without validation.
func TestHonestJudgesKeepTheGapBetweenBackends(t *testing.T) {
	options := []policy.Option{{Backend: learningtest.Backend(0)}, {Backend: learningtest.Backend(1)}}
	gap := func(l learning.Learned) float64 {
		arms := l.Arms(policy.Context{}, options)
		return arms[0].Posterior.Mean - arms[1].Posterior.Mean
	}
	for _, j := range []learningtest.Judge{"", learningtest.Harsh, learningtest.PassFail, learningtest.Generous} {
		checked, unchecked := 0.0, 0.0
		for n := range uint64(20) {
			w := learningtest.NewWorld(learningtest.Seed{Scenario: learningtest.Scenario{Judge: j}, Place: learningtest.Place{Arms: 2, Weekly: 20}, N: n + 1}, 160)
			for i := range w.Quality {
				w.Quality[i] = []float64{0.8, 0.4}
			}
			var rows []learning.Graded
			for i := range 160 {
				row, signals := w.Attempt(i, i%2)
				if signals != nil {
					row.Signals = append(row.Signals, *signals)
				}
				rows = append(rows, row)
			}
			now := w.Start.Add(30 * 7 * 24 * time.Hour)
			checked, unchecked = checked+gap(learning.Learn(rows, now)), unchecked+gap(learning.LearnUnchecked(rows, now))
		}
		t.Logf("judge %q: %.2f of the gap is kept", j, checked/unchecked)
		if checked < 0.8*unchecked {
			t.Errorf("judge %q: %.2f of the gap is kept", j, checked/unchecked)
		}
	}
}

// The judge is the only source: there is no verifier and no other signal.
func TestLoneJudgeIsTrustedOnAnyScale(t *testing.T) {
	for _, j := range []learningtest.Judge{"", learningtest.Harsh, learningtest.PassFail, learningtest.Generous} {
		w := learningtest.NewWorld(learningtest.Seed{Scenario: learningtest.Scenario{Judge: j}, Place: learningtest.Place{Arms: 2, Weekly: 20}, N: 1}, 60)
		var rows []learning.Graded
		for i := range 60 {
			row, _ := w.Attempt(i, i%2)
			row.Signals = row.Signals[1:2]
			rows = append(rows, row)
		}
		rewarded := 0
		for _, g := range learning.Learn(rows, w.Start.Add(1e4*time.Hour)).Judged() {
			if g.Rewarded() {
				rewarded++
			}
		}
		if asked := int(learningtest.Judged * 60); rewarded < asked-10 {
			t.Errorf("judge %q: %d of about %d attempts are rewarded", j, rewarded, asked)
		}
	}
}

// Learn trusts an inverted or a random judge less than an honest one.
func TestDisagreeingSourceLosesWeight(t *testing.T) {
	trust := map[learningtest.Judge]float64{}
	for _, j := range []learningtest.Judge{"", learningtest.Random, learningtest.Inverted} {
		w := learningtest.NewWorld(learningtest.Seed{Scenario: learningtest.Scenario{Judge: j}, Place: learningtest.Place{Arms: 2, Weekly: 20}, N: 1}, 160)
		var rows []learning.Graded
		for i := range 160 {
			row, signals := w.Attempt(i, i%2)
			if signals != nil {
				row.Signals = append(row.Signals, *signals)
			}
			rows = append(rows, row)
		}
		for _, h := range learning.Learn(rows, w.Start.Add(1e4*time.Hour)).Health() {
			if h.Source == learning.JudgeSource {
				trust[j] = h.Trust
			}
		}
	}
	if s := fmt.Sprintf("honest %.2f, random %.2f, inverted %.2f", trust[""], trust[learningtest.Random], trust[learningtest.Inverted]); trust[""] < 0.6 || trust[learningtest.Random] > 0.35 || trust[learningtest.Inverted] > 0.05 {
		t.Error(s)
	} else {
		t.Log(s)
	}
}

// The test counts the checks' false alarms on honest signals.
func TestHonestSignalsRarelyRaiseAlarms(t *testing.T) {
	for _, j := range []learningtest.Judge{"", learningtest.Harsh, learningtest.PassFail, learningtest.Generous} {
		found, all := 0, 0
		for n := range uint64(20) {
			w := learningtest.NewWorld(learningtest.Seed{Scenario: learningtest.Scenario{Judge: j}, Place: learningtest.Place{Arms: 3, Weekly: 20}, N: n + 1}, 500)
			var rows []learning.Graded
			for i := range 500 {
				row, signals := w.Attempt(i, i%3)
				if signals != nil {
					row.Signals = append(row.Signals, *signals)
				}
				rows = append(rows, row)
			}
			all += len(rows)
			found += len(learning.Learn(rows, w.Start.Add(1e5*time.Hour)).Violations())
		}
		t.Logf("judge %q: %d violations in %d attempts", j, found, all)
		if share := float64(found) / float64(all); share > 0.02 {
			t.Errorf("judge %q: %d violations in %d attempts with honest signals", j, found, all)
		}
	}
}

// Text that the agent can write itself, such as a tidy transcript or claims, must not raise the grade.
func TestAgentsTextDoesNotRaiseTheGrade(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	signal := func(s learning.SignalSource, v float64) learning.Signal {
		return learning.Signal{Source: s, Value: v, Known: true, At: at}
	}
	for _, outside := range [][]learning.Signal{nil, {signal(learning.VerifierSource, 0.2)}, {signal(learning.JudgeSource, 0.4)}, {signal(learning.CISource, 1)}} {
		g := learning.Graded{ID: "o/r#1/1", At: at, Backend: "a", Signals: outside, Facts: learning.AttemptFacts{Outcome: policy.WorkVerified, Changed: true, Commits: 1}}
		before := g.Grade()
		g.Signals = append(outside[:len(outside):len(outside)], signal(learning.TrajectorySource, 0.95), signal(learning.JournalSource, 0.9))
		if after := g.Grade(); after.Known != before.Known || after.Value > before.Value {
			t.Errorf("the agent's text raised a grade from %v to %v", before.Value, after.Value)
		}
	}
}
