package simulate

import (
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// result is what one seed came to: cumulative regret against the best fixed arm
// after each attempt, for the sampler, for the sampler without validation, and
// for uniform choice (its expectation).
type result struct {
	task
	checked, unchecked, uniform []float64
	// moving is the final regret of the sampler against the arm that was best at
	// the time, and movingUniform that of uniform choice.
	moving, movingUniform float64
	// reward is the expected number of good attempts of the sampler.
	reward float64
}

// play plays one seed.
func play(t task, attempts int) result {
	w := newWorld(t, attempts)
	r := result{task: t}
	fixed := w.bestArm()
	var chosen []int
	chosen, r.checked = w.sample(policy.Learn, fixed)
	if t.scenario.corrupted() {
		_, r.unchecked = w.sample(policy.LearnUnchecked, fixed)
	}
	sum := 0.0
	for i, q := range w.quality {
		mean := 0.0
		for _, p := range q {
			mean += p / float64(len(q))
		}
		sum += q[fixed] - mean
		r.uniform = append(r.uniform, sum)
		r.movingUniform += slices.Max(q) - mean
		r.moving += slices.Max(q) - q[chosen[i]]
		r.reward += q[chosen[i]]
	}
	return r
}

// learner is policy.Learn or policy.LearnUnchecked.
type learner func([]policy.Graded, time.Time) policy.Learned

// late is a signal that has not come yet.
type late struct {
	row    int
	signal policy.Signal
}

// deliver adds the signals that have come to their rows, and gives those that
// have not.
func deliver(waiting []late, rows []policy.Graded, now time.Time) []late {
	return slices.DeleteFunc(waiting, func(l late) bool {
		if l.signal.At.After(now) {
			return false
		}
		rows[l.row].Signals = append(rows[l.row].Signals, l.signal)
		return true
	})
}

// sample lets Thompson sampling choose every attempt, and gives what it chose and
// the cumulative regret against a fixed arm. The attempts come one after the
// other; what people say comes when it comes.
func (w world) sample(learn learner, fixed int) (chosen []int, regret []float64) {
	options := make([]policy.Option, w.arms)
	for k := range options {
		options[k].Backend = backend(k)
	}
	var rows []policy.Graded
	var waiting []late
	sum := 0.0
	for i, q := range w.quality {
		now := w.start.Add(time.Duration(i+1)*apart - lasts)
		waiting = deliver(waiting, rows, now)
		context := policy.Context{Repo: "made/up", Category: policy.Bug, Size: policy.Small}
		arms := learn(rows, now).Arms(context, options)
		choice := policy.Choose(policy.ModeLearn, arms, w.chance(i, 0, 5).Uint64())
		arm := slices.IndexFunc(options, func(o policy.Option) bool { return o.Backend == choice.Chosen })
		row, said := w.attempt(i, arm)
		w.corrupt(&row, w.faultOf(i, arm, fixed), i, w.chance(i, arm, 6))
		rows = append(rows, row)
		if said != nil {
			waiting = append(waiting, late{i, *said})
		}
		sum += q[fixed] - q[arm]
		chosen, regret = append(chosen, arm), append(regret, sum)
	}
	return chosen, regret
}
