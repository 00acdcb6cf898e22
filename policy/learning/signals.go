package learning

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/simhash"
)

func missing(source SignalSource, at time.Time, failed bool, why string) Signal {
	return Signal{Source: source, At: at, Failed: failed, Missing: why}
}

// Values of verifier and CI. A failure is not a floor grade, since feedback can still fix it (our choice).
const (
	passedValue = 1.0
	failedValue = 0.2
)

// classWeights are the numbers of rewards that an edit loop counts as. Three for severe is a requirement; two for
// moderate is our choice.
var classWeights = map[policy.Class]float64{policy.Mild: 1, policy.Moderate: 2, policy.Severe: 3}

// SeveritySignal grades an edit loop.
func SeveritySignal(v policy.Severity, at time.Time) Signal {
	if v.Class == policy.None || v.Class == "" {
		return missing(SeveritySource, at, false, "no edit loop was seen")
	}
	return Signal{Source: SeveritySource, Value: v.Grade, Weight: classWeights[v.Class], Known: true, At: at,
		Detail: fmt.Sprintf("%s edit loop", v.Class), Basis: strings.Join(v.Reasons, "; ")}
}

// VerifierSignal grades by the verify commands. A pass on an unchanged tree has no value.
func VerifierSignal(configured bool, r policy.Receipt, at time.Time) Signal {
	switch v := r.Verification(); {
	case !configured:
		return missing(VerifierSource, at, false, "the repository names no verify commands")
	case !r.Progress():
		return missing(VerifierSource, at, false, "nothing changed that could be verified")
	case v == policy.Unverified:
		return missing(VerifierSource, at, false, "the attempt ended before it was verified")
	case r.CommandsPassed():
		return Signal{Source: VerifierSource, Value: passedValue, Known: true, At: at, Detail: "passed"}
	case v != policy.Failed:
		return missing(VerifierSource, at, false, "the work is not verified: "+r.VerifiedWords(""))
	}
	s, failing := Signal{Source: VerifierSource, Value: failedValue, Known: true, At: at, Detail: "failed"}, 0
	for _, v := range r.Verify {
		failing += len(v.Failing)
	}
	if failing > 0 {
		s.Detail = policy.Plural(failing, "failing test")
	}
	return s
}

// CheckResult is another App's finished check on the pushed commit.
type CheckResult struct {
	Name       string
	Conclusion string // GitHub's word: success, failure, timed_out, cancelled, …
	Outside    string // why a failure is not the work's (there before, infrastructure); else empty
}

// CISignal grades by other Apps' finished checks. Only success and failure count: a timeout may have waited for a
// machine.
func CISignal(checks []CheckResult, at time.Time) Signal {
	var passed, broken, outside, cancelled []string
	for _, c := range checks {
		switch c.Conclusion {
		case "success":
			passed = append(passed, c.Name)
			continue
		case "skipped", "neutral":
			continue
		}
		switch {
		case c.Outside != "":
			outside = append(outside, c.Name+": "+c.Outside)
		case c.Conclusion == "failure":
			broken = append(broken, c.Name)
		default:
			cancelled = append(cancelled, c.Name+": "+c.Conclusion)
		}
	}
	switch {
	case len(broken) > 0:
		return Signal{Source: CISource, Value: failedValue, Known: true, At: at, Detail: "failed: " + strings.Join(broken, ", ")}
	case len(outside) > 0:
		// The passed checks alone are not the whole result.
		return missing(CISource, at, true, strings.Join(outside, ", "))
	case len(cancelled) > 0:
		// A push cancels the previous commit's checks, so this is not a failure of CI.
		return missing(CISource, at, false, strings.Join(cancelled, ", "))
	case len(passed) > 0:
		return Signal{Source: CISource, Value: passedValue, Known: true, At: at, Detail: policy.Plural(len(passed), "check") + " passed"}
	}
	return missing(CISource, at, false, "no check ran on the pushed commit")
}

// JudgeSignal returns the judge's grade. A grade with an error does not count.
func JudgeSignal(a *policy.Judged, at time.Time) Signal {
	switch {
	case a == nil:
		return missing(JudgeSource, at, false, "no judge is configured")
	case a.Error != "":
		return missing(JudgeSource, at, true, a.Error)
	case a.Cannot != "":
		return missing(JudgeSource, at, false, "the judge cannot tell: "+a.Cannot)
	case !(a.Grade >= 0 && a.Grade <= 1):
		return missing(JudgeSource, at, true, "the judge answered "+strconv.FormatFloat(a.Grade, 'g', -1, 64)+", which is not between 0 and 1")
	}
	return Signal{Source: JudgeSource, Value: a.Grade, Known: true, At: at, Detail: a.Detail}
}

// PeopleKind is a user's act on an attempt's work.
type PeopleKind string

const (
	Merged           PeopleKind = "merged"
	ClosedUnmerged   PeopleKind = "closed_unmerged"
	Reverted         PeopleKind = "reverted"
	Approved         PeopleKind = "approved"
	ChangesRequested PeopleKind = "changes_requested"
	ThumbsUp         PeopleKind = "thumbs_up" // a reaction to the status comment
	ThumbsDown       PeopleKind = "thumbs_down"
)

// peopleValues grade users' acts (our choice). A pull request may be closed for unrelated reasons.
var peopleValues = map[PeopleKind]float64{Merged: 1, Approved: 0.9, ThumbsUp: 0.8, ChangesRequested: 0.3, ThumbsDown: 0.2, ClosedUnmerged: 0.1, Reverted: 0}

// PeopleSignal grades a user's act; by is the login.
func PeopleSignal(kind PeopleKind, by string, at time.Time) Signal {
	value, known := peopleValues[kind]
	if !known {
		return missing(PeopleSource, at, false, "people did nothing that grades")
	}
	s := Signal{Source: PeopleSource, Kind: kind, Value: value, Known: true, At: at, Detail: string(kind)}
	if by != "" {
		s.Detail += " by " + by
	}
	return s
}

// Each change between the work and its merge lowers the grade, but not to the grade of requested changes (our
// choice).
const (
	changeCost  = 0.2
	leastMerged = 0.4
)

func MergedSignal(changes int, by string, at time.Time) Signal {
	s := PeopleSignal(Merged, by, at)
	if changes > 0 {
		s.Value = max(leastMerged, s.Value-changeCost*float64(changes))
		s.Detail = fmt.Sprintf("merged after %s", policy.Plural(changes, "more change"))
	}
	return s
}

// people returns people's deciding signal; nil for none. An end of the pull request outranks reviews. Only the first
// end of each kind counts, and the newest of these decides, so a revert undoes a merge. Without an end, the newest
// review decides.
func people(signals []Signal) *Signal {
	first := map[PeopleKind]*Signal{} // by kind of end
	var review, end *Signal
	for i := range signals {
		s := &signals[i]
		if s.Source != PeopleSource || !s.usable() {
			continue
		}
		switch s.Kind {
		case Merged, ClosedUnmerged, Reverted:
			known := first[s.Kind]
			if known == nil || s.At.Before(known.At) {
				first[s.Kind] = s
			}
		default:
			review = newer(s, review)
		}
	}
	for _, s := range first {
		end = newer(s, end)
	}
	return cmp.Or(end, review)
}

// newer returns the newer of two signals, and the lower of simultaneous ones.
func newer(s, than *Signal) *Signal {
	if than == nil {
		return s
	}
	if cmp.Or(s.At.Compare(than.At), cmp.Compare(than.Value, s.Value)) > 0 {
		return s
	}
	return than
}

// Trajectory values: a change, plus test runs and calls without failures, minus retries and an early end. A changed
// tree stays at or above lowestChanged, above the floor. Our choice.
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

// TrajectorySignal grades the agent's way of working by its transcript.
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

// Journal values: claims are true, the agent admits defeat, or a claim is false (our choice).
const (
	claimsHold   = 0.9
	admitsDefeat = 0.3
	claimsFalse  = 0.15
)

// Words of claims in agents' summaries, in lower case. A message without them gives no signal.
var (
	defeatWords = regexp.MustCompile("unable to|could not|couldn't|cannot complete|can't complete|not able to|i'm blocked|i am blocked|did not manage|gave up")
	testsWords  = regexp.MustCompile("tests pass|tests passed|tests are passing|tests now pass|all tests|ran the tests|test suite passes|tests succeed")
	doneWords   = regexp.MustCompile("fixed|implemented|added|updated|changed|completed|done|resolved|refactored|removed|renamed|created")
)

// JournalSignal compares the agent's final claims with the facts.
func JournalSignal(r policy.Receipt, verifier Signal, at time.Time) Signal {
	text := strings.ToLower(strings.ReplaceAll(r.Final, "’", "'"))
	tests := testsWords.MatchString(text)
	done := doneWords.MatchString(text)
	verifierFailed := verifier.usable() && verifier.Value < failedBelow
	claims := tests || done
	nobodySaw := r.Trajectory.TestRuns == 0 && !verifier.usable()
	s := Signal{Source: JournalSource, Known: true, At: at, Basis: simhash.Fingerprint(r.Final).String()}
	switch {
	case strings.TrimSpace(text) == "":
		return missing(JournalSource, at, false, "the agent said nothing at the end")
	case tests && verifierFailed:
		s.Value, s.Detail = claimsFalse, "says that tests pass, but the verifier failed"
	case done && !r.Progress():
		s.Value, s.Detail = claimsFalse, "says that something was done, but nothing changed"
	case defeatWords.MatchString(text):
		s.Value, s.Detail = admitsDefeat, "says itself that it did not get there"
	case tests && nobodySaw:
		return missing(JournalSource, at, false, "says that tests pass, which nobody saw")
	case claims:
		s.Value, s.Detail = claimsHold, "what it says is borne out"
	default:
		return missing(JournalSource, at, false, "claims nothing that can be checked")
	}
	return s
}
