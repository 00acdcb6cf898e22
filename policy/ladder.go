package policy

import (
	"fmt"
	"slices"
)

// Rungs of the ladder as they stand in receipts.
const (
	RungAnswer = 1 // no answer: once more in the opposite thinking mode
	RungVerify = 2 // the verifier failed: again, with its output
	RungEffort = 3 // rung 2 is used up: once with the escalated effort
	RungTests  = 4 // the agent ran the tests itself
)

// noAnswer is the first rung for agents whose model is not reached through the
// gateway, which would have asked again itself: one more attempt a run.
func noAnswer(f Facts) (Decision, bool) {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 || a.Ending != NoAnswer || a.Outcome == EditLoop || a.Gateway || !f.Limits.NoAnswerRetry ||
		slices.ContainsFunc(f.run(), func(b Attempt) bool { return b.Rung == RungAnswer }) {
		return silent()
	}
	d, ok := again("no_answer", fmt.Sprintf("attempt %d ended without an answer; once more in the opposite thinking mode", a.N))
	d.Rung, d.Backend = RungAnswer, a.Backend
	return d, ok
}

// ladder is rule 9: what to try after an attempt that moved the work but did
// not finish it.
func ladder(f Facts) (Decision, bool) {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 {
		return silent()
	}
	switch {
	case a.Outcome == Interrupted:
		return interrupted(f, a)
	case a.Outcome == VerifyFailed:
		return verifyFailed(f, a)
	case a.Ending != Completed:
		d, ok := again("progress", fmt.Sprintf("attempt %d moved the work before it ended %s", a.N, a.Ending))
		return repeated(d, a), ok
	}
	return silent()
}

// maxInterruptions in a row are put down to Pawl or its machine; more than that
// needs a person. Three tries is the usual retry budget.
const maxInterruptions = 3

func interrupted(f Facts, a Attempt) (Decision, bool) {
	run, n := f.run(), 0
	for i := len(run) - 1; i >= 0 && run[i].Outcome == Interrupted; i-- {
		n++
	}
	if n >= maxInterruptions {
		return stop("interrupted", "The operator should look at the server's log; /pawl retry tries again.",
			fmt.Sprintf("%d attempts in a row were interrupted, which is no failure of the agent%s", n, detail(a)))
	}
	d, ok := again("interrupted", fmt.Sprintf("attempt %d was interrupted, which is no failure of the agent%s", a.N, detail(a)))
	return repeated(d, a), ok
}

// verifyFailed counts over everything since people last said something, whatever
// came between: the ladder has an end.
func verifyFailed(f Facts, a Attempt) (Decision, bool) {
	failed, escalated := 0, false
	for _, b := range f.climb() {
		if b.Outcome == VerifyFailed {
			failed++
		}
		escalated = escalated || b.Escalated && b.Outcome == VerifyFailed
	}
	if failed <= f.Limits.VerifyRetries {
		d, ok := again("verify_failed", fmt.Sprintf("verification failed after attempt %d; retry %d of %d with its output",
			a.N, failed, f.Limits.VerifyRetries))
		d.Rung = RungVerify
		return d, ok
	}
	if b := f.backend(a.Backend); f.Limits.EscalateEffort && b.CanEscalate && !escalated {
		d, ok := again("escalate_effort", fmt.Sprintf("verification failed %d times; once more with the escalated effort", failed))
		d.Rung, d.Escalated, d.Backend = RungEffort, true, a.Backend
		return d, ok
	}
	return stop("verify_failed", "Look at the failing commands; comment what to do, or /pawl escalate.",
		fmt.Sprintf("verification failed after %d attempts", failed))
}

// climb are the attempts of the run from the last one on that was given feedback.
func (f Facts) climb() []Attempt {
	run := f.run()
	for i := len(run) - 1; i > 0; i-- {
		if run[i].NewInput {
			return run[i:]
		}
	}
	return run
}

// repeated is an attempt that is tried again on the same rung: what ended it has
// nothing to do with the work.
func repeated(d Decision, a Attempt) Decision {
	if a.Rung != 0 || a.Escalated {
		d.Rung, d.Escalated, d.Backend = a.Rung, a.Escalated, a.Backend
	}
	d.Different = a.Different
	return d
}
