package learning

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

// anyRows are rows of three backends with whatever signals.
func anyRows(t *rapid.T, most int) []Graded {
	var rows []Graded
	for n := range rapid.IntRange(1, most).Draw(t, "rows") {
		g := endedAt(n, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "backend"))
		g.Context.Category = rapid.SampledFrom([]policy.Category{policy.Bug, policy.Docs}).Draw(t, "category")
		g.Facts.Ending = rapid.SampledFrom([]policy.Ending{policy.Completed, policy.Completed, policy.Completed, policy.UsageLimit, policy.Crashed}).Draw(t, "ending")
		g.Facts.Commits = rapid.IntRange(0, 2).Draw(t, "commits")
		g.Facts.Changed = g.Facts.Commits > 0 || rapid.Bool().Draw(t, "changed")
		for range rapid.IntRange(0, 4).Draw(t, "signals") {
			g.Signals = append(g.Signals, anySignal(t, g.At))
		}
		rows = append(rows, g)
	}
	return rows
}

func anySignal(t *rapid.T, at time.Time) Signal {
	source := rapid.SampledFrom(SignalSources()).Draw(t, "source")
	at = at.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "later")) * time.Hour)
	if source == PeopleSource {
		return PeopleSignal(anyKind(t), "ann", at)
	}
	if rapid.IntRange(0, 3).Draw(t, "missing") == 0 {
		return missing(source, at, rapid.Bool().Draw(t, "failed"), "no answer")
	}
	return says(source, rapid.Float64Range(0, 1).Draw(t, "value"), at)
}

func anyKind(t *rapid.T) PeopleKind {
	return rapid.SampledFrom([]PeopleKind{Merged, ClosedUnmerged, Reverted, Approved, ChangesRequested}).Draw(t, "kind")
}

// later is after everything in these tests.
var later = gradeDay.Add(90 * 24 * time.Hour)

// posteriors are all cells, to compare bit for bit.
func posteriors(rows []Graded, now time.Time) map[cell]Posterior {
	all := map[cell]Posterior{}
	for at, p := range Learn(rows, now).cells {
		all[at] = p
	}
	return all
}

func sameCells(t *rapid.T, want, got map[cell]Posterior) {
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cell{})); diff != "" {
		t.Fatalf("posteriors (-want +got):\n%s", diff)
	}
}

func TestAMissingSignalNeverMovesAPosterior(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t, 25)
		before := posteriors(rows, later)
		for i := range rows {
			source := rapid.SampledFrom(SignalSources()).Draw(t, "source")
			if !slices.ContainsFunc(rows[i].Signals, func(s Signal) bool { return s.Source == source }) {
				rows[i].Signals = append(rows[i].Signals, missing(source, rows[i].At, false, "nobody was asked"))
			}
		}
		silent := endedAt(26, "a", missing(JudgeSource, gradeDay, true, "quota exhausted"), missing(VerifierSource, gradeDay, true, "no disk"))
		sameCells(t, before, posteriors(append(rows, silent), later))
	})
}

func TestALateSignalUndoesTheEarlierRewardExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t, 25)
		i := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
		before := posteriors(rows, later)
		original := rows[i]
		revised := original
		revised.Signals = append(slices.Clone(original.Signals), PeopleSignal(anyKind(t), "bob", later.Add(-time.Hour)))
		history := append(slices.Clone(rows), revised) // the newer version of a row counts
		fromStart := slices.Clone(rows)
		fromStart[i] = revised
		sameCells(t, posteriors(fromStart, later), posteriors(history, later))
		sameCells(t, before, posteriors(history, later.Add(-2*time.Hour)))
		history = append(history, original)
		sameCells(t, before, posteriors(history, later))
		again := revised
		again.Signals = append(slices.Clone(revised.Signals), revised.Signals[len(revised.Signals)-1])
		fromStart[i] = again
		sameCells(t, posteriors(append(rows, revised), later), posteriors(fromStart, later))
	})
}

func TestTheOrderOfRowsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t, 15)
		sameCells(t, posteriors(rows, later), posteriors(rapid.Permutation(rows).Draw(t, "order"), later))
	})
}

func TestOlderRewardsOfTheSameArmWeighLess(t *testing.T) {
	rows := []Graded{endedAt(1, "a", says(VerifierSource, 1, gradeDay)), endedAt(2, "b", says(VerifierSource, 1, gradeDay)),
		endedAt(3, "a", says(VerifierSource, 0.2, gradeDay)), endedAt(4, "a", says(VerifierSource, 1, gradeDay))}
	l := Learn(rows, later)
	p, level := l.Posterior("a", rows[0].Context)
	if level != policy.Exact || p.N != 3 || math.Abs(p.Beta(nil).Alpha-(1+0.99*0.99+0.99*0.2+1)) > 1e-12 || math.Abs(p.Beta(nil).Beta-(1+0.99*0.8)) > 1e-12 {
		t.Errorf("%s %+v", level, p)
	}
	if p, _ := l.Posterior("b", rows[0].Context); p.N != 1 || p.Beta(nil).Alpha != 2 || p.Beta(nil).Beta != 1 {
		t.Errorf("rewards of the other arm discounted this one: %+v", p)
	}
	if p, _ := l.Posterior("c", policy.Context{}); p.Beta(nil).Mean() != 0.5 || p.Good+p.Bad != 0 {
		t.Errorf("the prior is %+v", p)
	}
}

func TestALevelIsUsedFromThreeRewardsOn(t *testing.T) {
	var rows []Graded
	at := func(c policy.Context) {
		g := endedAt(len(rows), "a", says(VerifierSource, 1, gradeDay))
		g.Context = c
		rows = append(rows, g)
	}
	asked := policy.Context{Repo: "o/r", Category: policy.Bug, Size: policy.Small}
	want := func(level policy.Level, n int) {
		t.Helper()
		if p, got := Learn(rows, later).Posterior("a", asked); got != level || p.N != n {
			t.Errorf("after %d rewards: %s with %d, want %s with %d", len(rows), got, p.N, level, n)
		}
	}
	want(policy.Global, 0)
	at(policy.Context{Repo: "o/x", Category: policy.Docs, Size: policy.Large})
	want(policy.Global, 1)
	at(asked)
	at(asked)
	want(policy.Global, 3)
	at(policy.Context{Repo: "o/x", Category: policy.Bug, Size: policy.Large})
	want(policy.ByCategory, 3)
	at(asked)
	want(policy.Exact, 3)
}

// armsOf makes arms with as many good and bad rewards.
func armsOf(good, bad map[string]int, names ...string) []Arm {
	var arms []Arm
	for _, n := range names {
		arms = append(arms, Arm{Option: policy.Option{Backend: n}, Level: policy.Exact, Rewards: good[n] + bad[n],
			Posterior: Posterior{Good: float64(good[n]), Bad: float64(bad[n]), N: good[n] + bad[n]}})
	}
	return arms
}

func TestTheModesChoose(t *testing.T) {
	arms := armsOf(map[string]int{"a": 2, "b": 60}, map[string]int{"a": 60, "b": 2}, "a", "b")
	for _, c := range []struct {
		mode           policy.Mode
		change         func([]Arm)
		inForce        policy.Mode
		chosen, wanted string
	}{
		{policy.ModeFixed, nil, policy.ModeFixed, "a", ""},
		{policy.ModeShadow, nil, policy.ModeShadow, "a", "b"},
		{policy.ModeLearn, nil, policy.ModeLearn, "b", "b"},
		{policy.ModeAuto, nil, policy.ModeLearn, "b", "b"},
		{"", nil, policy.ModeLearn, "b", "b"},
		{"magic", nil, policy.ModeFixed, "a", ""},
		{policy.ModeAuto, func(a []Arm) { a[0].Rewards = 19 }, policy.ModeShadow, "a", "b"},
		{policy.ModeAuto, func(a []Arm) { a[0].Rewards = 20 }, policy.ModeLearn, "b", "b"},
		{policy.ModeLearn, func(a []Arm) { a[1].Masked = "cooling down" }, policy.ModeLearn, "a", "a"},
		{policy.ModeFixed, func(a []Arm) { a[0].Masked = "cooling down" }, policy.ModeFixed, "b", ""},
		{policy.ModeLearn, func(a []Arm) { a[0].Masked, a[1].Masked = "x", "y" }, policy.ModeLearn, "", ""},
	} {
		given := slices.Clone(arms)
		if c.change != nil {
			c.change(given)
		}
		got := Choose(c.mode, given, 7)
		if got.Mode != c.inForce || got.Chosen != c.chosen || got.Would != c.wanted || len(got.Reasons) == 0 || got.Seed != 7 {
			t.Errorf("%q: %+v, want %s %s %s", c.mode, got, c.inForce, c.chosen, c.wanted)
		}
	}
	if got := Choose(policy.ModeLearn, nil, 1); got.Chosen != "" {
		t.Errorf("without arms: %+v", got)
	}
}

func TestMasksAreObeyedAndChangeNoDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		counts := func() map[string]int {
			m := map[string]int{}
			for _, n := range names {
				m[n] = rapid.IntRange(0, 50).Draw(t, "rewards")
			}
			return m
		}
		arms, seed := armsOf(counts(), counts(), names...), rapid.Uint64().Draw(t, "seed")
		mode := rapid.SampledFrom([]policy.Mode{policy.ModeFixed, policy.ModeShadow, policy.ModeLearn, policy.ModeAuto}).Draw(t, "mode")
		free := Choose(policy.ModeLearn, arms, seed)
		masked := slices.Clone(arms)
		open := 0
		for i := range masked {
			if rapid.Bool().Draw(t, "masked") {
				masked[i].Masked = "held"
			} else {
				open++
			}
		}
		got := Choose(mode, masked, seed)
		if diff := cmp.Diff(got, Choose(mode, masked, seed)); diff != "" {
			t.Fatalf("the same seed gave another choice:\n%s", diff)
		}
		if (got.Chosen == "") != (open == 0) {
			t.Fatalf("%d open arms: chosen %q", open, got.Chosen)
		}
		for i, a := range masked {
			if a.Masked != "" && (got.Chosen == a.Backend || got.Would == a.Backend) {
				t.Fatalf("%s is masked: %+v", a.Backend, got)
			}
			if got.Samples != nil && got.Samples[i].Value != free.Samples[i].Value {
				t.Fatalf("a mask changed the draw of %s", a.Backend)
			}
		}
	})
}

func TestShareIsHowOftenAnArmIsChosen(t *testing.T) {
	arms := armsOf(map[string]int{"a": 30, "b": 34, "c": 90}, map[string]int{"a": 20, "b": 16, "c": 1}, "a", "b", "c")
	arms[2].Masked = "held"
	chosen := map[string]float64{}
	const draws = 4000
	for seed := range uint64(draws) {
		chosen[Choose(policy.ModeLearn, arms, seed).Chosen] += 1.0 / draws
	}
	for _, v := range View(arms) {
		if math.Abs(v.Share-chosen[v.Backend]) > 0.04 {
			t.Errorf("%s: share %.3f, chosen %.3f", v.Backend, v.Share, chosen[v.Backend])
		}
		if !(v.Low < v.Mean && v.Mean < v.High) {
			t.Errorf("%s: mean %.3f is not between %.3f and %.3f", v.Backend, v.Mean, v.Low, v.High)
		}
	}
	// Beta(1,1) is even, so its 90 % interval is 0.05 to 0.95.
	if v := View(armsOf(nil, nil, "a"))[0]; math.Abs(v.Low-0.05) > 1e-9 || math.Abs(v.High-0.95) > 1e-9 || v.Share < 1-1e-9 {
		t.Errorf("the prior shows %+v", v)
	}
}

func TestTheIntervalOfEveryPosteriorHoldsItsMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Posterior{Good: rapid.Float64Range(0, 100).Draw(t, "good"), Bad: rapid.Float64Range(0, 100).Draw(t, "bad")}
		v := View([]Arm{{Posterior: p}})[0]
		if !(0 < v.Low && v.Low < v.Mean && v.Mean < v.High && v.High < 1) {
			t.Fatalf("%+v: %v is not between %v and %v", p, v.Mean, v.Low, v.High)
		}
	})
}

// TestASevereLoopTeachesThreeTimesAsMuchAsAMildOne measures how far one loop moves the mean of an arm that is known.
func TestASevereLoopTeachesThreeTimesAsMuchAsAMildOne(t *testing.T) {
	limits := policy.Defaults().Severity
	var before []Graded
	for n := range 20 {
		before = append(before, endedAt(n+1, "a", says(VerifierSource, []float64{1, 1, 0.2}[n%3], gradeDay)))
	}
	mean := func(rows []Graded) float64 {
		p, _ := Learn(rows, gradeDay.Add(9000*time.Hour)).Posterior("a", policy.Context{})
		return p.Beta(nil).Mean()
	}
	drop := func(edits policy.Edits, class policy.Class, more ...Signal) float64 {
		verdict := limits.Judge(edits)
		if verdict.Class != class {
			t.Fatalf("%v is %s, want %s", edits, verdict.Class, class)
		}
		g := endedAt(21, "a", append(more, SeveritySignal(verdict, gradeDay))...)
		return mean(before) - mean(append(before[:len(before):len(before)], g))
	}
	mild, moderate, severe := policy.Edits{Operations: 41, MaxRepeat: 8}, policy.Edits{Operations: 65, MaxRepeat: 16}, policy.Edits{Operations: 105, MaxRepeat: 10}
	least := drop(mild, policy.Mild)
	if least <= 0 {
		t.Fatalf("a mild loop moves the mean by %.4f", -least)
	}
	if times := drop(severe, policy.Severe) / least; times < 2.7 || times > 3.3 {
		t.Errorf("a severe loop teaches %.2f times as much as a mild one, want 3", times)
	}
	if times := drop(moderate, policy.Moderate) / least; times < 1.7 || times > 2.3 {
		t.Errorf("a moderate loop teaches %.2f times as much as a mild one, want 2", times)
	}
	merged := PeopleSignal(Merged, "ann", gradeDay.Add(time.Hour))
	if a, b := drop(mild, policy.Mild, merged), drop(severe, policy.Severe, merged); a != b {
		t.Errorf("people's word moves the mean by %.4f after a mild loop, by %.4f after a severe one", a, b)
	}
}
