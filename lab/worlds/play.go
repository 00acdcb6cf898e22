package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/policy/learning/learningtest"
)

type world struct{ learningtest.World }

// chooser is a rule of choice.
type chooser struct {
	name string
	// choose returns a backend for attempt i. chance is the attempt's own source of random numbers.
	choose func(w world, rows []learning.Graded, seen []seen, i int, chance *rand.Rand) int
}

// seen is what a textbook rule knows about an attempt. Its grade is not checked.
type seen struct {
	arm    int
	reward float64
	known  bool
}

const ours = "Pawl"

// choosers returns Pawl and the textbook rules. The textbook rules get unchecked grades, no context and no configured order.
func choosers() []chooser {
	return []chooser{
		{name: ours},
		{name: "plain Thompson", choose: byArm(func(n, sum, _ float64, _ int, chance *rand.Rand) float64 {
			return distuv.Beta{Alpha: 1 + sum, Beta: 1 + n - sum, Src: chance}.Rand()
		})},
		{name: "Gaussian Thompson", choose: byArm(func(n, sum, _ float64, _ int, chance *rand.Rand) float64 {
			// Pawl's numbers: a reward variance of 0.12, and a prior with mean 0.5 and variance 0.0625.
			precision := 1/0.0625 + n/0.12
			return (0.5/0.0625+sum/0.12)/precision + chance.NormFloat64()/math.Sqrt(precision)
		})},
		{name: "ε-greedy", choose: func(w world, rows []learning.Graded, all []seen, i int, chance *rand.Rand) int {
			if chance.Float64() < 0.1 {
				return chance.IntN(w.Arms)
			}
			return greedy(w, rows, all, i, chance)
		}},
		{name: "UCB1", choose: byArm(func(n, sum, all float64, _ int, _ *rand.Rand) float64 {
			if n == 0 {
				return math.Inf(1)
			}
			return sum/n + math.Sqrt(2*math.Log(max(1, all))/n)
		})},
		{name: "best known", choose: greedy},
		{name: "always first", choose: func(world, []learning.Graded, []seen, int, *rand.Rand) int { return 0 }},
	}
}

// greedy takes the backend with the highest mean reward. The mean includes a prior reward of 0.5.
var greedy = byArm(func(n, sum, _ float64, _ int, _ *rand.Rand) float64 { return (0.5 + sum) / (1 + n) })

// byArm takes the backend with the highest number; among equal numbers the first.
func byArm(number func(n, sum, all float64, arm int, chance *rand.Rand) float64) func(world, []learning.Graded, []seen, int, *rand.Rand) int {
	return func(w world, _ []learning.Graded, history []seen, _ int, chance *rand.Rand) int {
		n, sum, all := make([]float64, w.Arms), make([]float64, w.Arms), 0.0
		for _, s := range history {
			if s.known {
				n[s.arm], sum[s.arm], all = n[s.arm]+1, sum[s.arm]+s.reward, all+1
			}
		}
		best, most := 0, math.Inf(-1)
		for k := range w.Arms {
			if v := number(n[k], sum[k], all, k, chance); v > most {
				best, most = k, v
			}
		}
		return best
	}
}

type late struct {
	row    int
	signal learning.Signal
}

// learnEvery is the interval at which Pawl learns in these worlds. A server learns within seconds.
const learnEvery = 24 * time.Hour

// play lets a chooser choose the backend of every attempt. It returns each attempt's regret, compared with the best backend
// at that time. Users' signals arrive late.
func (w world) play(c chooser) []float64 {
	options := make([]policy.Option, w.Arms)
	for k := range options {
		options[k].Backend = learningtest.Backend(k)
	}
	var rows []learning.Graded
	var history []seen
	var waiting []late
	var learned learning.Learned
	var at time.Time
	regret := make([]float64, len(w.Quality))
	for i, q := range w.Quality {
		now := w.Start.Add(time.Duration(i) * w.Apart())
		waiting = slices.DeleteFunc(waiting, func(l late) bool {
			if l.signal.At.After(now) {
				return false
			}
			rows[l.row].Signals = append(rows[l.row].Signals, l.signal)
			history[l.row] = see(history[l.row].arm, rows[l.row])
			return true
		})
		var arm int
		if c.choose != nil {
			arm = c.choose(w, rows, history, i, w.Chance(i, 0, 5))
		} else {
			if now.Sub(at) >= learnEvery {
				learned, at = learning.Learn(rows, now), now
			}
			choice := learning.Choose(learning.How{Mode: policy.ModeAuto, Explore: true}, learned.Arms(w.Contexts[i], options), w.Chance(i, 0, 5).Uint64())
			arm = slices.IndexFunc(options, func(o policy.Option) bool { return o.Backend == choice.Chosen })
		}
		row, signal := w.Attempt(i, arm)
		rows, history = append(rows, row), append(history, see(arm, row))
		if signal != nil {
			waiting = append(waiting, late{i, *signal})
		}
		regret[i] = slices.Max(q) - q[arm]
	}
	return regret
}

func see(arm int, row learning.Graded) seen {
	g := row.Grade()
	return seen{arm, g.Value, g.Known}
}

// uniform returns the expected regret of uniform choice.
func (w world) uniform() float64 {
	sum := 0.0
	for _, q := range w.Quality {
		sum += slices.Max(q)
		for _, p := range q {
			sum -= p / float64(len(q))
		}
	}
	return sum
}

const weeks = 16

// table has each chooser's regret by seed.
type table struct {
	learningtest.Seed
	uniform []float64
	regret  map[string][]float64 // the regret by chooser, one value per seed
	eight   map[string][]float64 // the regret in the first eight weeks
}

// playAll plays some seeds of each scenario and size, on all processors.
func playAll(seeds int, of []learningtest.Scenario, sizes []learningtest.Place) []table {
	var tables []table
	for _, s := range of {
		for _, p := range sizes {
			t := table{Seed: learningtest.Seed{Scenario: s, Place: p}, uniform: make([]float64, seeds), regret: map[string][]float64{}, eight: map[string][]float64{}}
			for _, c := range choosers() {
				t.regret[c.name], t.eight[c.name] = make([]float64, seeds), make([]float64, seeds)
			}
			tables = append(tables, t)
		}
	}
	type job struct{ table, n int }
	next := make(chan job)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range next {
				t := tables[j.table]
				w := world{learningtest.NewWorld(learningtest.Seed{Scenario: t.Scenario, Place: t.Place, N: uint64(j.n + 1)}, weeks*t.Weekly)}
				t.uniform[j.n] = w.uniform()
				for _, c := range choosers() {
					for i, r := range w.play(c) {
						t.regret[c.name][j.n] += r
						if i < weeks/2*t.Weekly {
							t.eight[c.name][j.n] += r
						}
					}
				}
			}
		})
	}
	for i := range tables {
		for n := range seeds {
			next <- job{i, n}
		}
	}
	close(next)
	workers.Wait()
	return tables
}

// saved returns the share of uniform choice's regret that a chooser saves.
func (t table) saved(name string) interval {
	return over(func(m []float64) float64 { return 1 - m[0]/m[1] }, t.regret[name], t.uniform)
}

// interval is a mean over the seeds with its 95 % bootstrap interval.
type interval struct{ mean, low, high float64 }

const resamples = 500

// over computes a number from the columns' means over the seeds, and its interval.
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

// String formats percentage points.
func (i interval) String() string {
	return fmt.Sprintf("%.0f [%.0f, %.0f]", 100*i.mean, 100*i.low, 100*i.high)
}
