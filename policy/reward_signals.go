package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// missing is a signal without a value. Failed says that the source was asked.
func missing(source SignalSource, at time.Time, failed bool, why string) Signal {
	return Signal{Source: source, At: at, Failed: failed, Missing: why}
}

// The values of verifier and CI. A failure is no floor grade: something was done
// that can be checked, and feedback can still mend it. The numbers are our
// choice.
const (
	passedValue = 1.0
	failedValue = 0.2
)

// SeveritySignal is the grade of an edit loop; attempts that are none have no
// such signal.
func SeveritySignal(v Severity, at time.Time) Signal {
	if v.Class == None || v.Class == "" {
		return missing(SeveritySource, at, false, "the edits did not go in circles")
	}
	return Signal{Source: SeveritySource, Value: v.Grade, Known: true, At: at,
		Detail: fmt.Sprintf("%s edit loop", v.Class), Basis: strings.Join(v.Reasons, "; ")}
}

// Verified is what the verifier found at the end of an attempt. The zero value
// is a repository without verify commands.
type Verified struct {
	Configured bool
	// Changed says that the attempt changed the tree; a verifier that passes on
	// an unchanged one says nothing of the attempt.
	Changed bool
	// Error is why the commands could not be run to an answer (a missing program,
	// a timeout of the sandbox); empty where they answered.
	Error string
	// Passed says that nothing fails that did not fail before the attempt.
	Passed bool
	// Failing are the tests that fail now and did not before.
	Failing []string
}

// VerifierSignal is the signal of the repository's own verify commands.
func VerifierSignal(v Verified, at time.Time) Signal {
	switch {
	case !v.Configured:
		return missing(VerifierSource, at, false, "the repository names no verify commands")
	case v.Error != "":
		return missing(VerifierSource, at, true, v.Error)
	case !v.Changed:
		return missing(VerifierSource, at, false, "nothing changed that could be verified")
	case v.Passed:
		return Signal{Source: VerifierSource, Value: passedValue, Known: true, At: at, Detail: "passed"}
	}
	s := Signal{Source: VerifierSource, Value: failedValue, Known: true, At: at, Detail: "failed"}
	if n := len(v.Failing); n > 0 {
		s.Detail = plural(n, "failing test")
	}
	return s
}

// CheckResult is one finished check of others on the pushed commit.
type CheckResult struct {
	Name string
	// Conclusion is GitHub's word: success, failure, timed_out, cancelled …
	Conclusion string
	// Outside is why a failure is not the work's (infrastructure, billing);
	// empty when nothing says so.
	Outside string
}

// CISignal is the signal of the checks of others, all of which have finished.
// Only success and failure say something of the work. A check that timed out may
// have waited for a machine, so it says nothing.
func CISignal(checks []CheckResult, at time.Time) Signal {
	var passed, broken, outside, cancelled []string
	for _, c := range checks {
		switch {
		case c.Conclusion == "success":
			passed = append(passed, c.Name)
		case c.Conclusion == "failure" && c.Outside == "":
			broken = append(broken, c.Name)
		case c.Conclusion == "skipped", c.Conclusion == "neutral":
		case c.Outside != "":
			outside = append(outside, c.Name+": "+c.Outside)
		default:
			cancelled = append(cancelled, c.Name+": "+c.Conclusion)
		}
	}
	switch {
	case len(broken) > 0:
		return Signal{Source: CISource, Value: failedValue, Known: true, At: at, Detail: "failed: " + strings.Join(broken, ", ")}
	case len(outside) > 0:
		// What passed is only half of the answer.
		return missing(CISource, at, true, strings.Join(outside, ", "))
	case len(cancelled) > 0:
		// A push cancels the checks of the commit before; that is no failure of CI.
		return missing(CISource, at, false, strings.Join(cancelled, ", "))
	case len(passed) > 0:
		return Signal{Source: CISource, Value: passedValue, Known: true, At: at, Detail: plural(len(passed), "check") + " passed"}
	}
	return missing(CISource, at, false, "no check ran on the pushed commit")
}

// JudgeAnswer is what the optional judge command answered. The zero value is
// that there is none.
type JudgeAnswer struct {
	Asked bool
	// Error is why there is no answer (exit code, quota, timeout, not a number);
	// empty where Grade is the answer. A grade beside an error is not believed.
	Error  string
	Grade  float64 // 0..1
	Detail string
}

// JudgeSignal is the signal of the judge command.
func JudgeSignal(a JudgeAnswer, at time.Time) Signal {
	switch {
	case !a.Asked:
		return missing(JudgeSource, at, false, "no judge is configured")
	case a.Error != "":
		return missing(JudgeSource, at, true, a.Error)
	case !(a.Grade >= 0 && a.Grade <= 1):
		return missing(JudgeSource, at, true, "the judge answered "+strconv.FormatFloat(a.Grade, 'g', -1, 64)+", which is not between 0 and 1")
	}
	return Signal{Source: JudgeSource, Value: a.Grade, Known: true, At: at, Detail: a.Detail}
}
