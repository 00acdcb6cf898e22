package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// The numbers of the made-up world. None of them is measured; they are chosen to
// be neither kind nor cruel, and docs/learning.md names them.
const (
	worst, best   = 0.15, 0.85 // the qualities of backends lie between, evenly
	driftEvery    = 125        // attempts, on average, between two changes of a backend
	apart         = 72 * time.Minute
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
)

// world is what happens with one seed: how good each backend is at each time,
// and what each attempt would come to. It does not depend on what is chosen.
type world struct {
	task
	quality [][]float64 // by attempt, then arm: the probability of good work
	start   time.Time
}

func newWorld(t task, attempts int) world {
	w := world{task: t, start: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
	chance := w.chance(0, 0, 1)
	now := make([]float64, t.arms)
	draw := func() float64 { return worst + (best-worst)*chance.Float64() }
	for k := range now {
		now[k] = draw()
	}
	for range attempts {
		if t.scenario == Drifting && chance.Float64() < 1.0/driftEvery {
			now[chance.IntN(t.arms)] = draw()
		}
		w.quality = append(w.quality, append([]float64(nil), now...))
	}
	return w
}

// chance is a source of its own for each attempt, arm and purpose, so that two
// policies that choose the same arm see the same attempt.
func (w world) chance(attempt, arm int, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(w.seed)<<8|purpose, uint64(attempt)<<16|uint64(arm)<<8|uint64(w.arms)))
}

// bestArm is the fixed arm that would have done best over all attempts.
func (w world) bestArm() int {
	top, most := 0, -1.0
	for k := range w.arms {
		sum := 0.0
		for _, q := range w.quality {
			sum += q[k]
		}
		if sum > most {
			top, most = k, sum
		}
	}
	return top
}

func backend(arm int) string { return fmt.Sprintf("backend-%d", arm+1) }

// attempt makes the row of an attempt, and the signal of people that comes later,
// if any.
func (w world) attempt(i, arm int) (row policy.Graded, late *policy.Signal) {
	chance := w.chance(i, arm, 2)
	good := chance.Float64() < w.quality[i][arm]
	end := w.start.Add(time.Duration(i+1) * apart)
	session := fmt.Sprintf("session-%d", i)
	f := policy.AttemptFacts{Ending: policy.Completed, Outcome: policy.Edited, StartedAt: end.Add(-lasts), EndedAt: end, Session: session,
		Changed: true, Transcript: &policy.Transcript{Session: session, First: end.Add(-lasts), Last: end, Bytes: 20_000 + chance.Int64N(400_000)}}
	if chance.Float64() < pushes {
		f.Commits = 1 + chance.IntN(3)
	} else {
		f.Changed, f.Outcome = false, policy.NoChange
		good = false
	}
	row = policy.Graded{ID: fmt.Sprintf("made/up#%d/1", i+1), At: end, Backend: backend(arm), Facts: f,
		Context: policy.Context{Repo: "made/up", Category: policy.Bug, Size: policy.Small}}
	verifier := policy.VerifierSignal(policy.Verified{Configured: chance.Float64() < verified, Changed: f.Changed,
		Passed: passes(chance, good)}, end)
	answer := policy.JudgeAnswer{Asked: chance.Float64() < judged, Grade: judge(chance, good)}
	row.Signals = []policy.Signal{verifier, policy.JudgeSignal(answer, end), worked(chance, good, f, end),
		policy.JournalSignal(policy.Journal{Final: fmt.Sprintf("Fixed number %d. All tests pass.", i), Changed: f.Changed, TestRuns: 1, Verifier: verifier}, end)}
	if said := people(chance, good, end); said != nil && f.Commits > 0 {
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

func judge(chance *rand.Rand, good bool) float64 {
	mean := badJudged
	if good {
		mean = goodJudged
	}
	return min(1, max(0, mean+judgeSpread*chance.NormFloat64()))
}

// worked is the trajectory: good work is a little tidier.
func worked(chance *rand.Rand, good bool, f policy.AttemptFacts, at time.Time) policy.Signal {
	t := policy.Trajectory{ToolCalls: 10 + chance.IntN(60), Changed: f.Changed, Ending: f.Ending, Bytes: f.Transcript.Bytes}
	t.Edits, t.Errors, t.Retries = 1+chance.IntN(12), chance.IntN(t.ToolCalls/3), chance.IntN(2)
	if good || chance.Float64() < 0.5 {
		t.TestRuns = 1 + chance.IntN(4)
	}
	if good {
		t.Errors /= 2
	}
	return policy.TrajectorySignal(t, at)
}

// people says what somebody did with the work, some days later; nil for nothing.
func people(chance *rand.Rand, good bool, end time.Time) *policy.Signal {
	speaks, wait, right := chance.Float64() < heard, time.Duration(chance.Float64()*float64(peopleWait)), chance.Float64() < 0.9
	if !speaks {
		return nil
	}
	kind := policy.ClosedUnmerged
	if good == right {
		kind = policy.Merged
	}
	s := policy.PeopleSignal(kind, "somebody", end.Add(wait))
	return &s
}
