package simulate

import (
	"fmt"
	"math/rand/v2"

	"github.com/pawlbot/pawl/policy"
)

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
	case w.scenario == Corrupted:
		share = corruptedShare
	case w.scenario == Targeted && arm == bestArm:
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
func (w world) corrupt(row *policy.Graded, f fault, i int, chance *rand.Rand) {
	switch f {
	case failingJudge:
		row.Signals[1] = policy.JudgeSignal(policy.JudgeAnswer{Asked: true, Grade: fallback}, row.At)
	case stuckJudge:
		row.Signals[1] = policy.JudgeSignal(policy.JudgeAnswer{Asked: true, Grade: stuckAt}, row.At)
	case stub:
		row.Facts.Transcript.Bytes = 100 + chance.Int64N(300)
		w.nothingSeen(row)
	case race:
		row.Facts.Transcript.Session = fmt.Sprintf("session-%d", i+100_000)
		w.nothingSeen(row)
	}
}

// nothingSeen is what trajectory and journal make of a transcript in which the
// agent has done nothing yet.
func (w world) nothingSeen(row *policy.Graded) {
	row.Signals[2] = policy.TrajectorySignal(policy.Trajectory{ToolCalls: 1, Ending: policy.Completed, Bytes: row.Facts.Transcript.Bytes}, row.At)
	row.Signals[3] = policy.JournalSignal(policy.Journal{Final: "I have fixed it."}, row.At)
}
