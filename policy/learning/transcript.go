package learning

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/simhash"
)

// The values of a trajectory: a change by itself, tests that were run and calls that did not fail on top, less
// for retries and an early end. Nothing that changed the tree goes below lowestChanged, above the floor. How an
// agent works says little of the work, hence the low weight; the numbers are our choice.
const (
	unchangedValue  = 0.1
	changedValue    = 0.5
	testsValue      = 0.25
	cleanValue      = 0.2
	retryCost       = 0.05
	mostRetriesCost = 0.2
	unfinishedCost  = 0.3
	lowestChanged   = 0.15
)

// TrajectorySignal is the signal of how the agent worked, as its transcript shows.
func TrajectorySignal(r policy.Receipt, at time.Time) Signal {
	t := r.Trajectory
	s := Signal{Source: TrajectorySource, Known: true, At: at, Value: trajectoryValue(r),
		Detail: fmt.Sprintf("%s, %s, %d of %s failed, %d retries, ended %s",
			policy.Plural(r.Edits.Operations, "edit"), policy.Plural(t.TestRuns, "test run"), t.Errors, policy.Plural(r.ToolCalls, "call"), t.Retries, r.Ending)}
	s.Basis = fmt.Sprintf("%s, %d bytes", s.Detail, t.Bytes)
	return s
}

func trajectoryValue(r policy.Receipt) float64 {
	if !r.Progress() {
		return unchangedValue
	}
	v := changedValue
	if r.Trajectory.TestRuns > 0 {
		v += testsValue
	}
	failing := 0.0
	if r.ToolCalls > 0 {
		failing = float64(min(r.Trajectory.Errors, r.ToolCalls)) / float64(r.ToolCalls)
	}
	v += cleanValue * (1 - failing)
	v -= min(mostRetriesCost, retryCost*float64(r.Trajectory.Retries))
	if r.Ending != policy.Completed {
		v -= unfinishedCost
	}
	return max(lowestChanged, v)
}

// The values of a journal: claims hold, it admits defeat, or one is not borne out. The numbers are our choice.
const (
	claimsHold   = 0.9
	admitsDefeat = 0.3
	claimsFalse  = 0.15
)

// The words of claims in the agents' own summaries, in lower case; a message without them is no signal.
const (
	defeatWords = "unable to|could not|couldn't|cannot complete|can't complete|not able to|i'm blocked|i am blocked|did not manage|gave up"
	testsWords  = "tests pass|tests passed|tests are passing|tests now pass|all tests|ran the tests|test suite passes|tests succeed"
	doneWords   = "fixed|implemented|added|updated|changed|completed|done|resolved|refactored|removed|renamed|created"
)

// JournalSignal compares what the agent says at the end with what is known. It is a lie detector: an agent that
// says that all is well is no better for it.
func JournalSignal(r policy.Receipt, verifier Signal, at time.Time) Signal {
	text := strings.ToLower(strings.ReplaceAll(r.Final, "’", "'"))
	tests, done := claims(text, testsWords), claims(text, doneWords)
	s := Signal{Source: JournalSource, Known: true, At: at, Basis: simhash.Fingerprint(r.Final).String()}
	switch {
	case strings.TrimSpace(text) == "":
		return missing(JournalSource, at, false, "the agent said nothing at the end")
	case tests && verifier.usable() && verifier.Value < failedBelow:
		s.Value, s.Detail = claimsFalse, "says that tests pass, but the verifier failed"
	case done && !r.Progress():
		s.Value, s.Detail = claimsFalse, "says that something was done, but nothing changed"
	case claims(text, defeatWords):
		s.Value, s.Detail = admitsDefeat, "says itself that it did not get there"
	case tests && r.Trajectory.TestRuns == 0 && !verifier.usable():
		return missing(JournalSource, at, false, "says that tests pass, which nobody saw")
	case tests || done:
		s.Value, s.Detail = claimsHold, "what it says is borne out"
	default:
		return missing(JournalSource, at, false, "claims nothing that can be checked")
	}
	return s
}

func claims(text, words string) bool {
	return slices.ContainsFunc(strings.Split(words, "|"), func(word string) bool { return strings.Contains(text, word) })
}
