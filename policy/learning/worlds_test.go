package learning_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// These worlds show how well the choice of a backend learns: attempts of made-up
// backends whose quality is known are graded by made-up signals, and the real code
// validates them, learns and chooses. docs/learning.md has what was measured.

// scenario is how the backends and the signals of a made-up world behave. Zero is a
// world of one context, whose backends stay as they are and whose signals are honest.
type scenario struct {
	name    string
	ordered bool // the configured order is the right one
	many    bool // twelve contexts, in which backends differ
	drifts  bool // every driftEvery attempts one backend becomes another
	delayed bool // only people speak, up to two weeks later
	missing bool // of half of the attempts nobody says anything
	judge   judge
}

// judge is what a judge does, beside answering honestly.
type judge string

const (
	failing  judge = "failing"    // one answer in five is the floor, since its quota is exhausted
	stuck    judge = "stuck"      // for a third of the time it says the same
	random   judge = "random"     // whatever it is shown, it says anything
	inverted judge = "inverted"   // it calls bad work good
	partial  judge = "partial"    // it praises the worst backend, whatever that does
	mistaken judge = "mistaken"   // of two in five attempts of the best backend it sees the log of another attempt, as what reads the transcript does
	harsh    judge = "harsh"      // honest, between 0.02 and 0.3
	passFail judge = "pass, fail" // honest, 0 or 1
	generous judge = "generous"   // honest, between 0.8 and 1
)

// place is one world's size: backends, and attempts a week.
type place struct{ arms, weekly int }

// seed is one run of one scenario.
type seed struct {
	scenario
	place
	n uint64
}

// The numbers of the made-up world. None of them is measured; they are chosen to
// be neither kind nor cruel, and docs/learning.md names them.
const (
	worst, best   = 0.15, 0.85 // the qualities of backends lie between, evenly
	spread        = 0.2        // the standard deviation of a backend's quality over contexts
	driftEvery    = 125        // attempts, on average, between two changes of a backend
	lasts         = 20 * time.Minute
	verified      = 0.6  // share of attempts in repositories with a verifier
	judged        = 0.8  // share of attempts that the judge answers
	heard         = 0.5  // share of attempts that people say something of
	pushes        = 0.95 // share of attempts that push commits
	verifierRight = 0.95 // probability that the verifier passes good work
	verifierMiss  = 0.2  // probability that it passes bad work
	goodJudged    = 0.8  // what the judge gives good work on average
	badJudged     = 0.35 // and bad work
	judgeSpread   = 0.12 // its standard deviation
	peopleWait    = 5 * 24 * time.Hour
	longWait      = 14 * 24 * time.Hour
)

// world is what happens with one seed: how good each backend is at each time,
// and what each attempt would come to. It does not depend on what is chosen.
type world struct {
	seed
	quality  [][]float64 // by attempt, then arm: the probability of good work
	contexts []policy.Context
	start    time.Time
	worst    int // of the arms at the start, over all contexts
	best     int
}

func newWorld(t seed, attempts int) world {
	w := world{seed: t, start: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
	chance := w.chance(0, 0, 1)
	base := make([]float64, t.arms)
	draw := func() float64 { return worst + (best-worst)*chance.Float64() }
	for k := range base {
		base[k] = draw()
	}
	if t.ordered {
		slices.SortFunc(base, func(a, b float64) int { return int(1e6 * (b - a)) })
	}
	offset := map[policy.Context][]float64{}
	for range attempts {
		if t.drifts && chance.Float64() < 1.0/driftEvery {
			base[chance.IntN(t.arms)] = draw()
		}
		c := policy.Context{Repo: "made/up", Category: policy.Bug, Size: policy.Small}
		if t.many {
			c.Repo, c.Category = fmt.Sprintf("made/up%d", chance.IntN(4)), []policy.Category{policy.Bug, policy.Docs, policy.Feature}[chance.IntN(3)]
		}
		if offset[c] == nil {
			offset[c] = make([]float64, t.arms)
			for k := range offset[c] {
				if t.many {
					offset[c][k] = spread * w.context(c, k).NormFloat64()
				}
			}
		}
		now := make([]float64, t.arms)
		for k := range now {
			now[k] = min(0.95, max(0.05, base[k]+offset[c][k]))
		}
		w.quality, w.contexts = append(w.quality, now), append(w.contexts, c)
	}
	w.worst, w.best = slices.Index(base, slices.Min(base)), slices.Index(base, slices.Max(base))
	return w
}

// context is the chance of how good an arm is in a context.
func (w world) context(c policy.Context, arm int) *rand.Rand {
	h := uint64(0)
	for _, b := range []byte(c.Repo + string(c.Category)) {
		h = h*131 + uint64(b)
	}
	return rand.New(rand.NewPCG(w.n, h<<8|uint64(arm)))
}

// chance is a source of its own for each attempt, arm and purpose, so that two
// policies that choose the same arm see the same attempt.
func (w world) chance(attempt, arm int, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.n<<8|purpose, uint64(attempt)<<16|uint64(arm)<<8|uint64(w.arms)))
}

// apart is the time between two attempts.
func (w world) apart() time.Duration { return 7 * 24 * time.Hour / time.Duration(w.weekly) }

func backend(arm int) string { return fmt.Sprintf("backend-%d", arm+1) }

// attempt makes the row of an attempt, and the signal of people that comes later,
// if any.
func (w world) attempt(i, arm int) (row learning.Graded, late *learning.Signal) {
	chance := w.chance(i, arm, 2)
	good := chance.Float64() < w.quality[i][arm]
	end := w.start.Add(time.Duration(i)*w.apart() + lasts)
	f := learning.AttemptFacts{Ending: policy.Completed, Outcome: policy.Edited,
		Changed: true, Transcript: &learning.Transcript{Bytes: 20_000 + chance.Int64N(400_000)}}
	if chance.Float64() < pushes {
		f.Commits = 1 + chance.IntN(3)
	} else {
		f.Changed, f.Outcome = false, policy.NoChange
		good = false
	}
	row = learning.Graded{ID: fmt.Sprintf("made/up#%d/1", i+1), At: end, Backend: backend(arm), Facts: f, Context: w.contexts[i]}
	r := policy.Receipt{StartTree: "1", EndTree: "1", Ending: f.Ending, Final: fmt.Sprintf("Fixed number %d. All tests pass.", i), Trajectory: policy.Trajectory{TestRuns: 1}}
	if f.Changed {
		r.EndTree = "2"
	}
	speaks := !w.delayed && (!w.missing || chance.Float64() < 0.5)
	r.Verify = []policy.Verified{{Passed: passes(chance, good)}}
	verifier := learning.VerifierSignal(chance.Float64() < verified && speaks, r, end)
	var answer *policy.Judged
	asked, grade := chance.Float64() < judged, judgeOf(chance, good)
	if asked && speaks {
		answer = &policy.Judged{Grade: grade}
	}
	row.Signals = []learning.Signal{verifier, learning.JudgeSignal(answer, end), worked(chance, good, r, f.Transcript.Bytes, end), learning.JournalSignal(r, verifier, end)}
	w.corrupt(&row, i, arm, good)
	wait := peopleWait
	if w.delayed {
		wait = longWait
	}
	if said := people(chance, good, end, wait); said != nil && f.Commits > 0 && (speaks || w.delayed) {
		late = said
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

// worked is the trajectory: good work is a little tidier.
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

// people says what somebody did with the work, some days later; nil for nothing.
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

// corrupt lets the scenario's judge answer instead of the honest one.
func (w world) corrupt(row *learning.Graded, i, arm int, good bool) {
	s := row.Signals[1]
	if !s.Known || w.judge == "" {
		return
	}
	chance := w.chance(i, arm, 4)
	v := s.Value
	switch w.judge {
	case failing:
		if chance.Float64() < 0.2 {
			v = 0.02
		}
	case stuck:
		if w.chance(i/15, 0, 3).Float64() < 0.33 {
			v = 0.3
		}
	case random:
		v = chance.Float64()
	case inverted:
		v = 1 - v
	case partial:
		if arm == w.worst {
			v = 0.9 + 0.1*chance.Float64()
		}
	case mistaken:
		if arm == w.best && chance.Float64() < 0.4 {
			v = 0.02
			row.Signals[2] = learning.TrajectorySignal(policy.Receipt{Trajectory: policy.Trajectory{Bytes: row.Facts.Transcript.Bytes}, ToolCalls: 1, Ending: policy.Completed}, row.At)
			row.Signals[3] = learning.JournalSignal(policy.Receipt{Final: "I have fixed it."}, learning.Signal{}, row.At)
		}
	case harsh:
		v = 0.02 + 0.28*v
	case passFail:
		v = 0
		if good == (chance.Float64() < 0.9) {
			v = 1
		}
	case generous:
		v = 0.8 + 0.2*v
	}
	row.Signals[1] = learning.JudgeSignal(&policy.Judged{Grade: v}, row.At)
}
