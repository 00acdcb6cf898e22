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

// anyRows draws rows of three backends with arbitrary signals.
func anyRows(t *rapid.T, most int) []Graded {
	var rows []Graded
	for n := range rapid.IntRange(1, most).Draw(t, "rows") {
		g := endedAt(n, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "backend"))
		g.Context.Category = rapid.SampledFrom([]policy.Category{policy.Bug, policy.Docs}).Draw(t, "category")
		g.Facts.Outcome = rapid.SampledFrom([]policy.Outcome{policy.WorkVerified, policy.WorkVerified, policy.WorkVerified, policy.WasUsageLimit, policy.HasCrashed}).Draw(t, "outcome")
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
	return signalOf(source, rapid.Float64Range(0, 1).Draw(t, "value"), at)
}

func anyKind(t *rapid.T) PeopleKind {
	return rapid.SampledFrom([]PeopleKind{Merged, ClosedUnmerged, Reverted, Approved, ChangesRequested}).Draw(t, "kind")
}

// later is a time after all rows of these tests.
var later = gradeDay.Add(90 * 24 * time.Hour)

// armsIn returns all arms, in one context and overall, for an exact comparison.
func armsIn(rows []Graded, now time.Time) []Arm {
	l, options := Learn(rows, now), []policy.Option{{Backend: "a"}, {Backend: "b"}, {Backend: "c"}}
	arms := append(l.Arms(policy.Context{Repo: "o/r", Category: policy.Bug, Size: policy.Small}, options), l.Arms(policy.Context{}, options)...)
	for i := range arms {
		arms[i].Attempts = 0 // the only field that counts attempts without a reward
	}
	return arms
}

func sameArms(t *rapid.T, want, got []Arm) {
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("arms (-want +got):\n%s", diff)
	}
}

func TestMissingSignalNeverMovesAPosterior(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t, 25)
		before := armsIn(rows, later)
		for i := range rows {
			source := rapid.SampledFrom(SignalSources()).Draw(t, "source")
			if !slices.ContainsFunc(rows[i].Signals, func(s Signal) bool { return s.Source == source }) {
				rows[i].Signals = append(rows[i].Signals, missing(source, rows[i].At, false, "nobody was asked"))
			}
		}
		silent := endedAt(26, "a", missing(JudgeSource, gradeDay, true, "quota exhausted"), missing(VerifierSource, gradeDay, true, "no disk"))
		sameArms(t, before, armsIn(append(rows, silent), later))
	})
}

func TestLateSignalReplacesTheEarlierRewardExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t, 25)
		i := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
		before := armsIn(rows, later)
		original := rows[i]
		revised := original
		revised.Signals = append(slices.Clone(original.Signals), PeopleSignal(anyKind(t), "bob", later.Add(-time.Hour)))
		history := append(slices.Clone(rows), revised) // the newest version of a row counts
		fromStart := slices.Clone(rows)
		fromStart[i] = revised
		sameArms(t, armsIn(fromStart, later), armsIn(history, later))
		sameArms(t, before, armsIn(history, later.Add(-2*time.Hour)))
		history = append(history, original)
		sameArms(t, before, armsIn(history, later))
		again := revised
		again.Signals = append(slices.Clone(revised.Signals), revised.Signals[len(revised.Signals)-1])
		fromStart[i] = again
		sameArms(t, armsIn(append(rows, revised), later), armsIn(fromStart, later))
	})
}

func TestOrderOfRowsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t, 15)
		sameArms(t, armsIn(rows, later), armsIn(rapid.Permutation(rows).Draw(t, "order"), later))
	})
}

func TestOlderRewardsOfAnArmWeighLess(t *testing.T) {
	mean := func(values ...float64) float64 {
		var rows []Graded
		for n, v := range values {
			rows = append(rows, endedAt(2*n, "a", signalOf(VerifierSource, v, gradeDay)), endedAt(2*n+1, "b", signalOf(VerifierSource, 1, gradeDay)))
		}
		return Learn(rows, later).Arms(rows[0].Context, []policy.Option{{Backend: "a"}})[0].Posterior.Mean
	}
	up, down := mean(0.2, 0.2, 1, 1), mean(1, 1, 0.2, 0.2)
	if up <= down || up-down > 0.05 {
		t.Errorf("the newer rewards decide: %.4f after a rise, %.4f after a fall", up, down)
	}
}

// An arm's mean changes gradually with the number of rewards, without a jump at some number.
func TestSimilarContextsShareRewards(t *testing.T) {
	asked := policy.Context{Repo: "o/r", Category: policy.Bug, Size: policy.Small}
	after := func(n int, c policy.Context) Posterior {
		var rows []Graded
		for i := range n {
			g := endedAt(i, "a", signalOf(VerifierSource, 1, gradeDay))
			g.Context = c
			rows = append(rows, g)
		}
		return Learn(rows, later).Arms(asked, []policy.Option{{Backend: "a"}})[0].Posterior
	}
	before := after(0, asked)
	if math.Abs(before.Mean-firstPrior) > 1e-9 {
		t.Errorf("the prior's mean is %.2f, want %.2f", before.Mean, firstPrior)
	}
	last := before.Mean
	for _, c := range []policy.Context{
		{Repo: "o/x", Category: policy.Docs, Size: policy.Large}, {Repo: "o/x", Category: policy.Bug, Size: policy.Large},
		{Repo: "o/r", Category: policy.Bug, Size: policy.Large}, asked,
	} {
		if p := after(5, c); p.Mean <= last || p.Weight < before.Weight {
			t.Errorf("five rewards in %+v give %+v, want more than %.3f", c, p, last)
		} else {
			last = p.Mean
		}
	}
	for n := range 8 {
		if step := after(n+1, asked).Mean - after(n, asked).Mean; step < 0 || step > 0.2 {
			t.Errorf("reward %d moves the mean by %.2f", n+1, step)
		}
	}
}

func TestArmIncludesModelAndEffort(t *testing.T) {
	run := func(n int, model, effort string, escalated bool) Graded {
		g := endedAt(n, "a", signalOf(VerifierSource, 1, gradeDay))
		g.Model, g.Effort, g.Escalated = model, effort, escalated
		return g
	}
	var rows []Graded
	for n := range 10 {
		rows = append(rows, run(n, "old", "", false))
	}
	arm := func(rows []Graded, o policy.Option) Arm {
		o.Backend = "a"
		return Learn(rows, later).Arms(policy.Context{}, []policy.Option{o})[0]
	}
	old, fresh, escalated := arm(rows, policy.Option{Model: "old"}), arm(rows, policy.Option{Model: "new"}), arm(rows, policy.Option{Model: "old", Effort: "high", Escalated: true})
	if old.Rewards != 10 || fresh.Rewards != 0 || fresh.Attempts != 0 {
		t.Errorf("old %+v, new %+v", old, fresh)
	}
	if !(firstPrior < fresh.Posterior.Mean && fresh.Posterior.Mean < old.Posterior.Mean && fresh.Posterior.Weight < old.Posterior.Weight) {
		t.Errorf("a new model starts at %+v; the old one has %+v", fresh.Posterior, old.Posterior)
	}
	if escalated.Posterior.Mean != firstPrior {
		t.Errorf("the escalated effort has learned from the usual one: %+v", escalated.Posterior)
	}
	for n := range 10 {
		rows = append(rows, run(20+n, "old", "high", true))
		rows[len(rows)-1].Signals[0].Value = 0.2
	}
	if got := arm(rows, policy.Option{Model: "old"}); got.Posterior != old.Posterior {
		t.Errorf("escalated attempts moved the usual arm from %+v to %+v", old.Posterior, got.Posterior)
	}
}

func TestCostsIncludeAllAttempts(t *testing.T) {
	good, limited := endedAt(1, "a", signalOf(VerifierSource, 1, gradeDay)), endedAt(2, "a")
	good.CostUSD, good.Seconds, limited.CostUSD, limited.Seconds = 2, 60, 1, 30
	limited.Facts.Outcome = policy.Outcome(policy.UsageLimit)
	a := Learn([]Graded{good, limited}, later).Arms(policy.Context{}, []policy.Option{{Backend: "a"}})
	v := View(a)[0]
	if v.Attempts != 2 || v.Solved != 1 || v.PerSolved != 3 || v.Cost() != 1.5 || v.Seconds != 90 || v.Rewards != 1 {
		t.Errorf("%+v", v)
	}
}

// A pending reward changes no mean and nothing that is shown. But the draw is as narrow as with the reward, and the pending
// attempt counts as exploration of the arm. After two weeks the reward is no longer expected.
func TestPendingRewardsCount(t *testing.T) {
	var rows []Graded
	for n := range 3 {
		rows = append(rows, endedAt(n, "a", missing(JudgeSource, gradeDay, false, "no judge is configured")))
	}
	limited := endedAt(3, "a")
	limited.Facts.Outcome = policy.Outcome(policy.UsageLimit)
	rows = append(rows, limited)
	at := func(now time.Time) []Arm {
		return Learn(rows, now).Arms(rows[0].Context, []policy.Option{{Backend: "a"}, {Backend: "b"}})
	}
	end := rows[2].At
	before, soon, late := at(rows[0].At.Add(-time.Hour)), at(end.Add(awaitedFor-24*time.Hour)), at(end.Add(awaitedFor+24*time.Hour))
	a := soon[0]
	if a.Awaited != 3 || a.Posterior.Awaited <= 0 || a.Posterior.sharp(nil).StdDev() >= before[0].Posterior.sharp(nil).StdDev() {
		t.Errorf("%+v: three rewards are pending", a)
	}
	if b, now := View(before)[0], View(soon)[0]; b.Mean != now.Mean || b.Low != now.Low || b.High != now.High {
		t.Errorf("the shown mean moved from %+v to %+v", b, now)
	}
	if late[0].Awaited != 0 || late[0].Posterior != before[0].Posterior || soon[1].Awaited != 0 {
		t.Errorf("after two weeks %+v, want %+v", late[0], before[0])
	}
	for seed := range uint64(500) {
		if c := Choose(How{Mode: policy.ModeAuto, Explore: true}, soon, seed); c.Explored && c.Chosen == "a" {
			t.Fatal("an arm with pending rewards was explored")
		}
	}
}

// One choice in twenty goes to the arm with the fewest rewards. That ends when the arm has three rewards plus a
// fiftieth of an equal share.
func TestFewRewardsAreExplored(t *testing.T) {
	arms := armsOf(map[string]int{"a": 90}, nil, "a", "b")
	arms[1].Posterior = Posterior{Mean: 0.1, Weight: 500}
	count := func(explore bool) (n int) {
		for seed := range uint64(2000) {
			if Choose(How{Mode: policy.ModeAuto, Explore: explore}, arms, seed).Chosen == "b" {
				n++
			}
		}
		return n
	}
	if n := count(true); n < 70 || n > 130 {
		t.Errorf("%d of 2,000 choices, want about 100", n)
	}
	if n := count(false); n > 0 {
		t.Errorf("%d of 2,000 choices on threads that do not allow it", n)
	}
	arms[1].Rewards = 2
	arms[1].Awaited = 1
	if n := count(true); n > 0 {
		t.Errorf("%d of 2,000 choices although it has its rewards", n)
	}
	arms[0].Rewards, arms[1].Rewards, arms[1].Awaited = 1000, 12, 0
	if n := count(true); n < 70 || n > 130 {
		t.Errorf("%d of 2,000 choices with 12 rewards of 1,012, want about 100", n)
	}
	arms[1].Rewards = 13
	if n := count(true); n > 0 {
		t.Errorf("%d of 2,000 choices with 13 rewards of 1,013", n)
	}
}

// armsOf returns arms with these numbers of good and bad rewards.
func armsOf(good, bad map[string]int, names ...string) []Arm {
	var arms []Arm
	for _, n := range names {
		arms = append(arms, Arm{Option: policy.Option{Backend: n}, Rewards: good[n] + bad[n],
			Posterior: Posterior{Mean: float64(1+good[n]) / float64(2+good[n]+bad[n]), Weight: float64(2 + good[n] + bad[n]), N: good[n] + bad[n]}})
	}
	return arms
}

func TestModesChoose(t *testing.T) {
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
		{policy.ModeLearn, func(a []Arm) { a[1].Masked = "cooling down" }, policy.ModeLearn, "a", "a"},
		{policy.ModeFixed, func(a []Arm) { a[0].Masked = "cooling down" }, policy.ModeFixed, "b", ""},
		{policy.ModeLearn, func(a []Arm) { a[0].Masked, a[1].Masked = "x", "y" }, policy.ModeLearn, "", ""},
	} {
		given := slices.Clone(arms)
		if c.change != nil {
			c.change(given)
		}
		got := Choose(How{Mode: c.mode}, given, 7)
		if got.Mode != c.inForce || got.Chosen != c.chosen || got.Would != c.wanted || len(got.Reasons) == 0 || got.Seed != 7 {
			t.Errorf("%q: %+v, want %s %s %s", c.mode, got, c.inForce, c.chosen, c.wanted)
		}
	}
	if got := Choose(How{Mode: policy.ModeLearn}, nil, 1); got.Chosen != "" {
		t.Errorf("without arms: %+v", got)
	}
}

func TestMasksDoNotChangeOtherDraws(t *testing.T) {
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
		free := Choose(How{Mode: policy.ModeLearn}, arms, seed)
		masked := slices.Clone(arms)
		open := 0
		for i := range masked {
			if rapid.Bool().Draw(t, "masked") {
				masked[i].Masked = "held"
			} else {
				open++
			}
		}
		got := Choose(How{Mode: mode}, masked, seed)
		if diff := cmp.Diff(got, Choose(How{Mode: mode}, masked, seed)); diff != "" {
			t.Fatalf("the same seed gave another choice:\n%s", diff)
		}
		if (got.Chosen == "") != (open == 0) {
			t.Fatalf("%d open arms: chosen %q", open, got.Chosen)
		}
		for i, a := range masked {
			if a.Masked != "" && (got.Chosen == a.Backend || got.Would == a.Backend) {
				t.Fatalf("the masked arm %s was chosen: %+v", a.Backend, got)
			}
			if got.Samples != nil && got.Samples[i].Value != free.Samples[i].Value {
				t.Fatalf("a mask changed the draw of %s", a.Backend)
			}
		}
	})
}

func TestShareMatchesTheChoices(t *testing.T) {
	arms := armsOf(map[string]int{"a": 30, "b": 34, "c": 90}, map[string]int{"a": 20, "b": 16, "c": 1}, "a", "b", "c")
	arms[2].Masked = "held"
	chosen := map[string]float64{}
	const draws = 4000
	for seed := range uint64(draws) {
		chosen[Choose(How{Mode: policy.ModeLearn}, arms, seed).Chosen] += 1.0 / draws
	}
	for _, v := range View(arms) {
		if math.Abs(v.Share-chosen[v.Backend]) > 0.04 {
			t.Errorf("%s: share %.3f, chosen %.3f", v.Backend, v.Share, chosen[v.Backend])
		}
		if !(v.Low < v.Mean && v.Mean < v.High) {
			t.Errorf("%s: mean %.3f is not between %.3f and %.3f", v.Backend, v.Mean, v.Low, v.High)
		}
	}
	// Beta(1,1) is uniform, so its 90 % interval is 0.05 to 0.95.
	if v := View(armsOf(nil, nil, "a"))[0]; math.Abs(v.Low-0.05) > 1e-9 || math.Abs(v.High-0.95) > 1e-9 || v.Share < 1-1e-9 {
		t.Errorf("the prior shows %+v", v)
	}
}

func TestPosteriorIntervalContainsItsMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := beta(rapid.Float64Range(-1, 2).Draw(t, "mean"), rapid.Float64Range(0, 0.3).Draw(t, "variance"))
		v := View([]Arm{{Posterior: p}})[0]
		if !(0 < v.Low && v.Low < v.Mean && v.Mean < v.High && v.High < 1) {
			t.Fatalf("%+v: %v is not between %v and %v", p, v.Mean, v.Low, v.High)
		}
	})
}

// The weight is how far one loop moves the mean of an arm with many rewards.
func TestSevereLoopWeighsThreeTimesAsMuchAsAMildOne(t *testing.T) {
	limits := policy.Defaults().Severity
	var before []Graded
	for n := range 20 {
		before = append(before, endedAt(n+1, "a", signalOf(VerifierSource, []float64{1, 1, 0.2}[n%3], gradeDay)))
	}
	mean := func(rows []Graded) float64 {
		return Learn(rows, gradeDay.Add(9000*time.Hour)).Arms(policy.Context{}, []policy.Option{{Backend: "a"}})[0].Posterior.Mean
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
		t.Errorf("a severe loop weighs %.2f times as much as a mild one, want 3", times)
	}
	if times := drop(moderate, policy.Moderate) / least; times < 1.7 || times > 2.3 {
		t.Errorf("a moderate loop weighs %.2f times as much as a mild one, want 2", times)
	}
	merged := PeopleSignal(Merged, "ann", gradeDay.Add(time.Hour))
	if a, b := drop(mild, policy.Mild, merged), drop(severe, policy.Severe, merged); a != b {
		t.Errorf("users' feedback moves the mean by %.4f after a mild loop, by %.4f after a severe one", a, b)
	}
}
