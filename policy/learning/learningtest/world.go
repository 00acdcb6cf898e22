// Package learningtest simulates attempts of backends with known quality, for the tests of package learning and for
// lab/worlds.
package learningtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// Scenario configures the backends and signals of a simulated world. The zero value has one context, constant
// backends and honest signals.
type Scenario struct {
	Name    string
	Ordered bool // the configured order is right
	Many    bool // twelve contexts with different backends
	Drifts  bool // one backend changes every driftEvery attempts
	Delayed bool // only people give signals, up to two weeks later
	Missing bool // half of the attempts have no signal
	Judge   Judge
}

// Judge is a judge's misbehaviour; empty for an honest one.
type Judge string

const (
	Failing  Judge = "failing"    // one answer in five is the floor: the quota is exhausted
	Stuck    Judge = "stuck"      // the same value for a third of the time
	Random   Judge = "random"     // random values
	Inverted Judge = "inverted"   // calls bad work good
	Partial  Judge = "partial"    // always praises the worst backend
	Mistaken Judge = "mistaken"   // confuses two in five attempts of the best backend with another attempt
	Harsh    Judge = "harsh"      // honest, between 0.02 and 0.3
	PassFail Judge = "pass, fail" // honest, 0 or 1
	Generous Judge = "generous"   // honest, between 0.8 and 1
)

// Place is a world's size: backends, and attempts a week.
type Place struct{ Arms, Weekly int }

// Seed is one run of a scenario.
type Seed struct {
	Scenario
	Place
	N uint64
}

// The world's numbers are our choice, not measured.
const (
	worst, best   = 0.15, 0.85 // bounds of backends' qualities, uniformly distributed
	spread        = 0.2        // standard deviation of a backend's quality over contexts
	driftEvery    = 125        // average attempts between two changes of a backend
	lasts         = 20 * time.Minute
	verified      = 0.6  // share of attempts in repositories with a verifier
	Judged        = 0.8  // share of attempts that the judge answers
	heard         = 0.5  // share of attempts with a signal from people
	pushes        = 0.95 // share of attempts that push commits
	verifierRight = 0.95 // probability that the verifier passes good work
	verifierMiss  = 0.2  // probability that the verifier passes bad work
	goodJudged    = 0.8  // the judge's average grade of good work
	badJudged     = 0.35 // and of bad work
	judgeSpread   = 0.12 // its standard deviation
	peopleWait    = 5 * 24 * time.Hour
	longWait      = 14 * 24 * time.Hour
)

// World has each backend's quality over time, and each attempt's result, for one seed. It does not depend on choices.
type World struct {
	Seed
	Quality  [][]float64 // by attempt, then arm: the probability of good work
	Contexts []policy.Context
	Start    time.Time
	worst    int // index of the arm that is worst at the start, over all contexts
	best     int
}

func NewWorld(t Seed, attempts int) World {
	w := World{Seed: t, Start: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
	chance := w.Chance(0, 0, 1)
	base := make([]float64, t.Arms)
	draw := func() float64 { return worst + (best-worst)*chance.Float64() }
	for k := range base {
		base[k] = draw()
	}
	if t.Ordered {
		slices.SortFunc(base, func(a, b float64) int { return int(1e6 * (b - a)) })
	}
	offset := map[policy.Context][]float64{}
	for range attempts {
		if t.Drifts && chance.Float64() < 1.0/driftEvery {
			base[chance.IntN(t.Arms)] = draw()
		}
		c := policy.Context{Repo: "made/up", Category: policy.Bug, Size: policy.Small}
		if t.Many {
			c.Repo, c.Category = fmt.Sprintf("made/up%d", chance.IntN(4)), []policy.Category{policy.Bug, policy.Docs, policy.Feature}[chance.IntN(3)]
		}
		if offset[c] == nil {
			offset[c] = make([]float64, t.Arms)
			for k := range offset[c] {
				if t.Many {
					offset[c][k] = spread * w.context(c, k).NormFloat64()
				}
			}
		}
		now := make([]float64, t.Arms)
		for k := range now {
			now[k] = min(0.95, max(0.05, base[k]+offset[c][k]))
		}
		w.Quality, w.Contexts = append(w.Quality, now), append(w.Contexts, c)
	}
	w.worst, w.best = slices.Index(base, slices.Min(base)), slices.Index(base, slices.Max(base))
	return w
}

func (w World) context(c policy.Context, arm int) *rand.Rand {
	h := uint64(0)
	for _, b := range []byte(c.Repo + string(c.Category)) {
		h = h*131 + uint64(b)
	}
	return rand.New(rand.NewPCG(w.N, h<<8|uint64(arm)))
}

// Chance returns a random source for each attempt, arm and purpose. Two policies with the same choice see the same
// attempt.
func (w World) Chance(attempt, arm int, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.N<<8|purpose, uint64(attempt)<<16|uint64(arm)<<8|uint64(w.Arms)))
}

// Apart returns the time between two attempts.
func (w World) Apart() time.Duration { return 7 * 24 * time.Hour / time.Duration(w.Weekly) }

func Backend(arm int) string { return fmt.Sprintf("backend-%d", arm+1) }

// Attempt returns an attempt's row, and the later signal from people, if any.
func (w World) Attempt(i, arm int) (row learning.Graded, late *learning.Signal) {
	chance := w.Chance(i, arm, 2)
	good := chance.Float64() < w.Quality[i][arm]
	end := w.Start.Add(time.Duration(i)*w.Apart() + lasts)
	f := learning.AttemptFacts{Outcome: policy.WorkVerified,
		Changed: true, Transcript: &learning.Transcript{Bytes: 20_000 + chance.Int64N(400_000)}}
	if chance.Float64() < pushes {
		f.Commits = 1 + chance.IntN(3)
	} else {
		f.Changed, f.Outcome = false, policy.NoChange
		good = false
	}
	row = learning.Graded{ID: fmt.Sprintf("made/up#%d/1", i+1), At: end, Backend: Backend(arm), Facts: f, Context: w.Contexts[i]}
	r := policy.Receipt{StartTree: "1", EndTree: "1", Ending: policy.Completed, Final: fmt.Sprintf("Fixed number %d. All tests pass.", i), Trajectory: policy.Trajectory{TestRuns: 1}}
	if f.Changed {
		r.EndTree = "2"
	}
	speaks := !w.Delayed && (!w.Missing || chance.Float64() < 0.5)
	r.Verify = []policy.Verified{{Passed: passes(chance, good)}}
	verifier := learning.VerifierSignal(chance.Float64() < verified && speaks, r, end)
	var answer *policy.Judged
	asked, grade := chance.Float64() < Judged, judgeOf(chance, good)
	if asked && speaks {
		answer = &policy.Judged{Grade: grade}
	}
	row.Signals = []learning.Signal{verifier, learning.JudgeSignal(answer, end), worked(chance, good, r, f.Transcript.Bytes, end), learning.JournalSignal(r, verifier, end)}
	w.corrupt(&row, i, arm, good)
	wait := peopleWait
	if w.Delayed {
		wait = longWait
	}
	signal := people(chance, good, end, wait)
	if reacts := speaks || w.Delayed; reacts && f.Commits > 0 {
		late = signal
	}
	return row, late
}

func passes(chance *rand.Rand, good bool) bool {
	if good {
		return chance.Float64() < verifierRight
	}
	return chance.Float64() < verifierMiss
}

func judgeOf(chance *rand.Rand, good bool) float64 {
	mean := badJudged
	if good {
		mean = goodJudged
	}
	return min(1, max(0, mean+judgeSpread*chance.NormFloat64()))
}

// worked returns the trajectory: good work has fewer errors.
func worked(chance *rand.Rand, good bool, r policy.Receipt, bytes int64, at time.Time) learning.Signal {
	r.ToolCalls = 10 + chance.IntN(60)
	r.Edits.Operations = 1 + chance.IntN(12)
	t := policy.Trajectory{Errors: chance.IntN(r.ToolCalls / 3), Retries: chance.IntN(2), Bytes: bytes}
	if good || chance.Float64() < 0.5 {
		t.TestRuns = 1 + chance.IntN(4)
	}
	if good {
		t.Errors /= 2
	}
	r.Trajectory = t
	return learning.TrajectorySignal(r, at)
}

// people returns a user's later act on the work; nil for none.
func people(chance *rand.Rand, good bool, end time.Time, most time.Duration) *learning.Signal {
	speaks, wait, right := chance.Float64() < heard, time.Duration(chance.Float64()*float64(most)), chance.Float64() < 0.9
	if !speaks {
		return nil
	}
	kind := learning.ClosedUnmerged
	if good == right {
		kind = learning.Merged
	}
	s := learning.PeopleSignal(kind, "somebody", end.Add(wait))
	return &s
}

// corrupt replaces the honest judge's answer with the scenario's.
func (w World) corrupt(row *learning.Graded, i, arm int, good bool) {
	s := row.Signals[1]
	if !s.Known || w.Judge == "" {
		return
	}
	chance := w.Chance(i, arm, 4)
	v := s.Value
	switch w.Judge {
	case Failing:
		if chance.Float64() < 0.2 {
			v = 0.02
		}
	case Stuck:
		if w.Chance(i/15, 0, 3).Float64() < 0.33 {
			v = 0.3
		}
	case Random:
		v = chance.Float64()
	case Inverted:
		v = 1 - v
	case Partial:
		if arm == w.worst {
			v = 0.9 + 0.1*chance.Float64()
		}
	case Mistaken:
		if arm == w.best && chance.Float64() < 0.4 {
			v = 0.02
			row.Signals[2] = learning.TrajectorySignal(policy.Receipt{Trajectory: policy.Trajectory{Bytes: row.Facts.Transcript.Bytes}, ToolCalls: 1, Ending: policy.Completed}, row.At)
			row.Signals[3] = learning.JournalSignal(policy.Receipt{Final: "I have fixed it."}, learning.Signal{}, row.At)
		}
	case Harsh:
		v = 0.02 + 0.28*v
	case PassFail:
		v = 0
		if good == (chance.Float64() < 0.9) {
			v = 1
		}
	case Generous:
		v = 0.8 + 0.2*v
	}
	row.Signals[1] = learning.JudgeSignal(&policy.Judged{Grade: v}, row.At)
}
