package learning_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// These worlds show how well the choice of a backend learns: attempts of made-up
// backends whose quality is known are graded by made-up signals, and the real code
// validates them, learns and chooses. docs/learning.md has what was measured.

// scenario is how the backends and the signals of a made-up world behave.
type scenario string

const (
	// stationary: backends stay as good as they are, and signals are honest.
	stationary scenario = "stationary"
	// drifting: every 125 attempts on average one backend becomes another.
	drifting scenario = "drifting"
	// corrupted: stationary, and one attempt in five has corrupted signals.
	corrupted scenario = "corrupted"
	// targeted: corrupted, but everything hits the best backend: two in five of
	// its attempts.
	targeted scenario = "targeted"
)

// isCorrupted reports whether signals are corrupted.
func (s scenario) isCorrupted() bool { return s == corrupted || s == targeted }

// seed is one run of one scenario with so many arms.
type seed struct {
	scenario scenario
	arms     int
	n        uint64
}

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
	seed
	quality [][]float64 // by attempt, then arm: the probability of good work
	start   time.Time
}

func newWorld(t seed, attempts int) world {
	w := world{seed: t, start: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
	chance := w.chance(0, 0, 1)
	now := make([]float64, t.arms)
	draw := func() float64 { return worst + (best-worst)*chance.Float64() }
	for k := range now {
		now[k] = draw()
	}
	for range attempts {
		if t.scenario == drifting && chance.Float64() < 1.0/driftEvery {
			now[chance.IntN(t.arms)] = draw()
		}
		w.quality = append(w.quality, append([]float64(nil), now...))
	}
	return w
}

// chance is a source of its own for each attempt, arm and purpose, so that two
// policies that choose the same arm see the same attempt.
func (w world) chance(attempt, arm int, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.n<<8|purpose, uint64(attempt)<<16|uint64(arm)<<8|uint64(w.arms)))
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
func (w world) attempt(i, arm int) (row learning.Graded, late *learning.Signal) {
	chance := w.chance(i, arm, 2)
	good := chance.Float64() < w.quality[i][arm]
	end := w.start.Add(time.Duration(i+1) * apart)
	f := learning.AttemptFacts{Ending: policy.Completed, Outcome: policy.Edited,
		Changed: true, Transcript: &learning.Transcript{Bytes: 20_000 + chance.Int64N(400_000)}}
	if chance.Float64() < pushes {
		f.Commits = 1 + chance.IntN(3)
	} else {
		f.Changed, f.Outcome = false, policy.NoChange
		good = false
	}
	row = learning.Graded{ID: fmt.Sprintf("made/up#%d/1", i+1), At: end, Backend: backend(arm), Facts: f,
		Context: policy.Context{Repo: "made/up", Category: policy.Bug, Size: policy.Small}}
	r := policy.Receipt{StartTree: "1", EndTree: "1", Ending: f.Ending, Final: fmt.Sprintf("Fixed number %d. All tests pass.", i), Trajectory: policy.Trajectory{TestRuns: 1}}
	if f.Changed {
		r.EndTree = "2"
	}
	configured := chance.Float64() < verified
	r.Verify = []policy.Verified{{Passed: passes(chance, good)}}
	verifier := learning.VerifierSignal(configured, r, end)
	var answer *policy.Judged
	asked, grade := chance.Float64() < judged, judge(chance, good)
	if asked {
		answer = &policy.Judged{Grade: grade}
	}
	row.Signals = []learning.Signal{verifier, learning.JudgeSignal(answer, end), worked(chance, good, r, f.Transcript.Bytes, end), learning.JournalSignal(r, verifier, end)}
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
func people(chance *rand.Rand, good bool, end time.Time) *learning.Signal {
	speaks, wait, right := chance.Float64() < heard, time.Duration(chance.Float64()*float64(peopleWait)), chance.Float64() < 0.9
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

// The faults that corrupt signals. They are those of real incidents.
const (
	corruptedShare = 0.2 // of all attempts
	targetedShare  = 0.4 // of the best backend's attempts
	// stuckRun is how long the judge stays stuck, in attempts that have the fault.
	stuckRun = 15
	// fallback is what the failing judge answers instead of an error, stuckAt
	// what it answers while it is stuck.
	fallback, stuckAt = 0.02, 0.3
)

// fault is what is wrong with an attempt's signals; none for nothing.
type fault int

const (
	none fault = iota
	// failingJudge: the judge's quota is exhausted, and its wrapper turns the
	// error into the lowest grade.
	failingJudge
	// stub: the transcript holds its first lines only, so the agent seems to have
	// done nothing.
	stub
	// race: the transcript is that of another attempt on the same host, which is
	// still at its beginning.
	race
	// stuckJudge: the judge gives the same grade whatever it is shown.
	stuckJudge
)

// faultOf says what is wrong with an attempt. Half of the faults come alone, the
// other half are a stuck judge, which stays so for a stretch of attempts. The
// overall share is the scenario's.
func (w world) faultOf(i, arm, bestArm int) fault {
	share := 0.0
	switch {
	case w.scenario == corrupted:
		share = corruptedShare
	case w.scenario == targeted && arm == bestArm:
		share = targetedShare
	}
	stretch := w.chance(i/stuckRun, 0, 3).Float64() < share/2
	chance := w.chance(i, arm, 4)
	switch {
	case stretch:
		return stuckJudge
	case chance.Float64() >= share/2/(1-share/2):
		return none
	}
	return []fault{failingJudge, stub, race}[chance.IntN(3)]
}

// corrupt puts the fault into the row's signals and facts.
func (w world) corrupt(row *learning.Graded, f fault, i int, chance *rand.Rand) {
	switch f {
	case failingJudge:
		row.Signals[1] = learning.JudgeSignal(&policy.Judged{Grade: fallback}, row.At)
	case stuckJudge:
		row.Signals[1] = learning.JudgeSignal(&policy.Judged{Grade: stuckAt}, row.At)
	case stub:
		row.Facts.Transcript.Bytes = 100 + chance.Int64N(300)
		w.nothingSeen(row)
	case race:
		w.nothingSeen(row)
	}
}

// nothingSeen is what trajectory and journal make of a transcript in which the
// agent has done nothing yet.
func (w world) nothingSeen(row *learning.Graded) {
	row.Signals[2] = learning.TrajectorySignal(policy.Receipt{Trajectory: policy.Trajectory{Bytes: row.Facts.Transcript.Bytes}, ToolCalls: 1, Ending: policy.Completed}, row.At)
	row.Signals[3] = learning.JournalSignal(policy.Receipt{Final: "I have fixed it."}, learning.Signal{}, row.At)
}
