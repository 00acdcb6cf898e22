package learning_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// worldAttempts are those of one run.
const worldAttempts = 500

// result is what one seed came to: its regret against the best fixed arm for the
// sampler, for the sampler without validation, and for uniform choice (its
// expectation).
type result struct {
	seed
	checked, unchecked, uniform float64
	// moving is the regret of the sampler against the arm that was best at
	// the time, and movingUniform that of uniform choice.
	moving, movingUniform float64
}

// play plays one seed.
func play(t seed, attempts int) result {
	w := newWorld(t, attempts)
	r := result{seed: t}
	fixed := w.bestArm()
	var chosen []int
	chosen, r.checked = w.sample(learning.Learn, fixed)
	if t.scenario.isCorrupted() {
		_, r.unchecked = w.sample(learning.LearnUnchecked, fixed)
	}
	for i, q := range w.quality {
		mean := 0.0
		for _, p := range q {
			mean += p / float64(len(q))
		}
		r.uniform += q[fixed] - mean
		r.movingUniform += slices.Max(q) - mean
		r.moving += slices.Max(q) - q[chosen[i]]
	}
	return r
}

// learner is learning.Learn or learning.LearnUnchecked.
type learner func([]learning.Graded, time.Time) learning.Learned

// late is a signal that has not come yet.
type late struct {
	row    int
	signal learning.Signal
}

// deliver adds the signals that have come to their rows, and gives those that
// have not.
func deliver(waiting []late, rows []learning.Graded, now time.Time) []late {
	return slices.DeleteFunc(waiting, func(l late) bool {
		if l.signal.At.After(now) {
			return false
		}
		rows[l.row].Signals = append(rows[l.row].Signals, l.signal)
		return true
	})
}

// sample lets Thompson sampling choose every attempt, and gives what it chose and
// the regret against a fixed arm. The attempts come one after the
// other; what people say comes when it comes.
func (w world) sample(learn learner, fixed int) (chosen []int, regret float64) {
	options := make([]policy.Option, w.arms)
	for k := range options {
		options[k].Backend = backend(k)
	}
	var rows []learning.Graded
	var waiting []late
	for i, q := range w.quality {
		now := w.start.Add(time.Duration(i+1)*apart - lasts)
		waiting = deliver(waiting, rows, now)
		context := policy.Context{Repo: "made/up", Category: policy.Bug, Size: policy.Small}
		arms := learn(rows, now).Arms(context, options)
		choice := learning.Choose(policy.ModeLearn, arms, w.chance(i, 0, 5).Uint64())
		arm := slices.IndexFunc(options, func(o policy.Option) bool { return o.Backend == choice.Chosen })
		row, said := w.attempt(i, arm)
		w.corrupt(&row, w.faultOf(i, arm, fixed), i, w.chance(i, arm, 6))
		rows = append(rows, row)
		if said != nil {
			waiting = append(waiting, late{i, *said})
		}
		regret += q[fixed] - q[arm]
		chosen = append(chosen, arm)
	}
	return chosen, regret
}

// playAll plays so many seeds of each scenario with each number of arms, on all
// processors, and gives a cell for each.
func playAll(seeds int, arms []int) []cell {
	var all []seed
	for _, s := range []scenario{stationary, drifting, corrupted, targeted} {
		for _, k := range arms {
			for n := range seeds {
				all = append(all, seed{s, k, uint64(n + 1)})
			}
		}
	}
	results := make([]result, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				results[i] = play(all[i], worldAttempts)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	var cells []cell
	for from := 0; from < len(results); from += seeds {
		honest := slices.IndexFunc(all, func(s seed) bool { return s.scenario == stationary && s.arms == all[from].arms })
		cells = append(cells, measure(results[from:from+seeds], results[honest:honest+seeds]))
	}
	return cells
}

// cell is one scenario with one number of arms. Regret is counted in attempts
// whose work would have been good with the best fixed arm.
type cell struct {
	seed
	regret, uniform interval // of the sampler, and of choosing evenly
	saved           interval // 1 − regret ÷ uniform, of the means
	// moving is saved for the regret against the arm that is best at the time,
	// which differs from the best fixed one where backends drift.
	moving interval
	// The rest is zero where nothing is corrupted. unchecked is the sampler's
	// regret without validation.
	unchecked, savedUnchecked interval
	// lost is what corruption costs with validation, and lostUnchecked without:
	// the part of what the sampler saves over uniform choice on honest signals
	// and the same seeds that is lost.
	lost, lostUnchecked interval
	// more is by how much regret grows with validation, and moreUnchecked
	// without, as a share of the regret on honest signals.
	more, moreUnchecked interval
}

// measure adds up the seeds of one cell; honest are the same seeds with honest
// signals.
func measure(seeds, honest []result) cell {
	column := func(of func(result) float64, from []result) []float64 {
		all := make([]float64, len(from))
		for i, r := range from {
			all[i] = of(r)
		}
		return all
	}
	checked := column(func(r result) float64 { return r.checked }, seeds)
	uniform := column(func(r result) float64 { return r.uniform }, seeds)
	moving := column(func(r result) float64 { return r.moving }, seeds)
	movingUniform := column(func(r result) float64 { return r.movingUniform }, seeds)
	unchecked := column(func(r result) float64 { return r.unchecked }, seeds)
	clean := column(func(r result) float64 { return r.checked }, honest)

	single := func(m []float64) float64 { return m[0] }
	saved := func(m []float64) float64 { return 1 - m[0]/m[1] }
	lost := func(m []float64) float64 { return (m[0] - m[1]) / (m[2] - m[1]) }
	more := func(m []float64) float64 { return m[0]/m[1] - 1 }
	c := cell{seed: seeds[0].seed, regret: over(single, checked), uniform: over(single, uniform),
		saved: over(saved, checked, uniform), moving: over(saved, moving, movingUniform)}
	if c.scenario.isCorrupted() {
		c.unchecked, c.savedUnchecked = over(single, unchecked), over(saved, unchecked, uniform)
		c.lost, c.lostUnchecked = over(lost, checked, clean, uniform), over(lost, unchecked, clean, uniform)
		c.more, c.moreUnchecked = over(more, checked, clean), over(more, unchecked, clean)
	}
	return c
}

// interval is a mean over the seeds with its 95 % bootstrap interval.
type interval struct{ mean, low, high float64 }

// resamples of the bootstrap over the seeds.
const resamples = 2000

// over computes a number from the means of columns over the seeds, with the
// interval that drawing other seeds gives.
func over(number func(means []float64) float64, columns ...[]float64) interval {
	n := len(columns[0])
	chance := rand.New(rand.NewPCG(1, 0))
	means := make([]float64, len(columns))
	compute := func(row func(int) int) float64 {
		clear(means)
		for i := range n {
			at := row(i)
			for c := range columns {
				means[c] += columns[c][at] / float64(n)
			}
		}
		return number(means)
	}
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = compute(func(int) int { return chance.IntN(n) })
	}
	slices.Sort(drawn)
	return interval{mean: compute(func(i int) int { return i }), low: drawn[resamples/40], high: drawn[resamples-1-resamples/40]}
}

// checkAims holds every cell against the aims, by its means: the share of uniform
// choice's regret that sampling must save, and the share of what it saves that
// corrupted signals may cost with validation. Both were given.
func checkAims(t *testing.T, cells []cell) {
	t.Helper()
	const leastSaved, mostLost = 0.40, 0.10
	for _, c := range cells {
		if c.saved.mean < leastSaved {
			t.Errorf("%s with %d arms saves %.0f %% of the regret, not %.0f %%", c.scenario, c.arms, 100*c.saved.mean, 100*leastSaved)
		}
		if c.lost.mean >= mostLost {
			t.Errorf("%s with %d arms loses %.0f %% to corruption, not less than %.0f %%", c.scenario, c.arms, 100*c.lost.mean, 100*mostLost)
		}
	}
}

// TestLearningPays plays fewer seeds and numbers of arms than TestEvalLearning.
func TestLearningPays(t *testing.T) {
	seeds, arms := 5, []int{2, 5}
	if testing.Short() { // volume: make test plays more
		seeds, arms = 3, []int{3}
	}
	cells := playAll(seeds, arms)
	checkAims(t, cells)
	for _, c := range cells {
		if c.scenario.isCorrupted() && c.unchecked.mean <= c.regret.mean {
			t.Errorf("%s with %d arms: validation brings nothing: regret %v with, %v without", c.scenario, c.arms, c.regret.mean, c.unchecked.mean)
		}
	}
}

func TestOneAttemptInFiveIsCorrupted(t *testing.T) {
	count := func(s scenario, arm, bestArm int) float64 {
		hit, all := 0.0, 0.0
		for n := range uint64(40) {
			w := newWorld(seed{s, 3, n + 1}, 500)
			for i := range 500 {
				all++
				if w.faultOf(i, arm, bestArm) != none {
					hit++
				}
			}
		}
		return hit / all
	}
	for _, c := range []struct {
		scenario     scenario
		arm, bestArm int
		want         float64
	}{{stationary, 0, 0, 0}, {drifting, 0, 0, 0}, {corrupted, 0, 1, 0.2}, {corrupted, 1, 1, 0.2}, {targeted, 1, 1, 0.4}, {targeted, 0, 1, 0}} {
		if got := count(c.scenario, c.arm, c.bestArm); math.Abs(got-c.want) > 0.02 {
			t.Errorf("%s, arm %d of best %d: %.3f, want %.1f", c.scenario, c.arm, c.bestArm, got, c.want)
		}
	}
}

func TestEachFaultIsFoundByItsRule(t *testing.T) {
	w := newWorld(seed{corrupted, 2, 1}, 40)
	for f, want := range map[fault]learning.ValidityRule{failingJudge: learning.FloorWithWork, stub: learning.StubTranscript, race: learning.FloorWithWork, stuckJudge: learning.Stuck} {
		var rows []learning.Graded
		for i := range 30 {
			row, _ := w.attempt(i, i%2)
			w.corrupt(&row, f, i, w.chance(i, 0, 6))
			rows = append(rows, row)
		}
		found := map[learning.ValidityRule]bool{}
		for _, v := range learning.Learn(rows, rows[29].At).Violations() {
			found[v.Check] = true
		}
		if !found[want] {
			t.Errorf("fault %d is not found as %s: %v", f, want, found)
		}
	}
}

func TestHonestSignalsAreSeldomSuspected(t *testing.T) {
	found, all := 0, 0
	for n := range uint64(20) {
		w := newWorld(seed{stationary, 3, n + 1}, 500)
		var rows []learning.Graded
		for i := range 500 {
			row, said := w.attempt(i, i%3)
			if said != nil {
				row.Signals = append(row.Signals, *said)
			}
			rows = append(rows, row)
		}
		all += len(rows)
		found += len(learning.Learn(rows, rows[499].At).Violations())
	}
	if share := float64(found) / float64(all); share > 0.02 {
		t.Errorf("%d violations in %d attempts with honest signals", found, all)
	} else {
		t.Logf("%d violations in %d attempts with honest signals", found, all)
	}
}
