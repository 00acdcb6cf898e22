package policy

import (
	"fmt"
	"slices"
	"time"
)

// Rungs of the ladder as they stand in receipts.
const (
	RungAnswer = 1 // no answer: once more in the opposite thinking mode
	RungVerify = 2 // the verifier failed: again, with its output
	RungEffort = 3 // rung 2 is used up: once with the escalated effort, where the backend has one
	RungTests  = 4 // the agent ran the tests itself
)

// noAnswer is the first rung where the gateway did not ask again itself, because it was not there or the answer was too
// much prose: one more attempt a run.
func noAnswer(f Facts) Decision {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 || a.Ending != NoAnswer || a.Outcome == EditLoop || a.Gateway && !a.Rambled || !f.Limits.Ladder.NoAnswerRetry ||
		slices.ContainsFunc(f.run(), func(b Attempt) bool { return b.Decision.Rung == RungAnswer }) {
		return Decision{}
	}
	return again(RuleNoAnswer, fmt.Sprintf("attempt %d ended without an answer; once more in the opposite thinking mode", a.N)).on(a.Backend, RungAnswer)
}

// ladder says what to try after an attempt that moved the work but did not finish it.
func ladder(f Facts) Decision {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 {
		return Decision{}
	}
	switch {
	case a.Outcome == Interrupted:
		return interrupted(f, a)
	case a.Outcome == VerifyFailed:
		return verifyFailed(f, a)
	case a.Paused:
		return repeated(again(RuleBudget, fmt.Sprintf("attempt %d was ended by a budget of the day, which has room again", a.N)), a)
	case a.Ending != Completed:
		return repeated(again(RuleProgress, fmt.Sprintf("attempt %d moved the work before it ended %s", a.N, a.Ending)), a)
	}
	return Decision{}
}

// inARow are the attempts of a kind since the last one that came to its own end, the newest first: what is no failure of
// the agent ends no row of another such kind, or an outage that shows in two ways would never be one.
func inARow(all []Attempt, kind func(Attempt) bool) (row []Attempt) {
	for _, a := range slices.Backward(all) {
		if kind(a) {
			row = append(row, a)
		} else if a.Outcome != Interrupted && !a.cut() {
			break
		}
	}
	return row
}

// silence asks an agent again that hung.
func silence(f Facts) Decision {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 || !a.WentSilent() {
		return Decision{}
	}
	why := fmt.Sprintf("attempt %d was ended because the agent was silent for %s, which is no failure of it", a.N, a.Silent)
	if n := len(inARow(f.run(), Attempt.WentSilent)); n >= maxSilences {
		return stop(RuleSilent, "The operator should look at what the agent waits for, or raise its idle_timeout; /pawl retry tries again.",
			why, fmt.Sprintf("%d attempts ended so, and none between them came to its own end", n))
	}
	return repeated(again(RuleSilent, why), a)
}

// Three attempts in a row, the usual retry budget, are put down to an agent that hangs for good, and as many that Pawl
// could not carry through need a person. Where the server was killed each time the attempt may be what takes it down:
// from the patientUntil-th time on it waits for firstHeldBack, twice as long after each further one.
const (
	maxSilences     = 3
	maxBroken       = 3
	patientUntil    = 3
	firstHeldBack   = time.Minute
	longestHeldBack = 2 * time.Hour
)

func interrupted(f Facts, a Attempt) Decision {
	row, killed := inARow(f.run(), func(b Attempt) bool { return b.Outcome == Interrupted }), 0
	for _, b := range row {
		if b.Ending == Killed {
			killed++
		}
	}
	every := fmt.Sprintf("%d attempts were interrupted and none between them came to its own end, which is no failure of the agent%s", len(row), detail(a))
	if len(row)-killed >= maxBroken {
		return stop(RuleInterrupted, "The operator should look at the server's log; /pawl retry tries again.", every)
	}
	until := a.EndedAt.Add(Retry(killed-patientUntil+1, firstHeldBack, longestHeldBack, 1))
	if killed >= patientUntil && f.Now.Before(until) {
		return Decision{Action: DoWait, Rule: RuleInterrupted, Until: until, Hint: "The operator should look at the server's log; /pawl retry tries before that.",
			Reasons: Reasons{{RuleInterrupted, every + "; the next one begins at", until}}}
	}
	return repeated(again(RuleInterrupted, fmt.Sprintf("attempt %d was interrupted, which is no failure of the agent%s", a.N, detail(a))), a)
}

// verifyFailed counts over everything since people last said something, whatever came between: the ladder has an end.
// An attempt that gave up on what failed without changing anything ends rung 2.
func verifyFailed(f Facts, a Attempt) Decision {
	if v := a.Verification(); v != nil && v.Broken != "" {
		return verifyBroken(v.broken(v.Broken))
	}
	failed, tried, escalated := 0, 0, false
	for _, b := range f.climb() {
		gaveUp := failed > 0 && !b.Progress() && b.Outcome != Interrupted && !b.cut()
		switch {
		case gaveUp:
			failed = max(failed, f.Limits.Ladder.VerifyRetries) + 1 // to be told again would not help
		case b.Outcome == VerifyFailed:
			failed++
		default:
			continue
		}
		tried, escalated = tried+1, escalated || b.Decision.Escalated
	}
	if failed <= f.Limits.Ladder.VerifyRetries {
		return again(RuleVerifyFailed, fmt.Sprintf("verification failed after attempt %d; retry %d of %d with its output",
			a.N, failed, f.Limits.Ladder.VerifyRetries)).on("", RungVerify)
	}
	backends := f.candidates(Decision{Backend: a.Backend})
	if len(backends) == 0 { // which admit says, as of every attempt
		return again(RuleVerifyFailed, fmt.Sprintf("verification failed, and %s did not mend it", Plural(tried, "attempt")))
	}
	b := backends[0]
	if f.Limits.Ladder.EscalateEffort && f.canEscalate(b) && !escalated {
		return again(RuleEscalateEffort, fmt.Sprintf("verification failed and %s did not mend it; once more with the escalated effort", Plural(tried, "attempt"))).on(b.Name, RungEffort)
	}
	d := stop(RuleVerifyFailed, "Look at the failing commands; comment what to do, or /pawl escalate.",
		fmt.Sprintf("verification failed, and %s did not mend it", Plural(tried, "attempt")))
	if !f.canEscalate(b) {
		if !b.CanEscalate {
			d.Hint = "Look at the failing commands; comment what to do."
		}
		d.Reasons = append(d.Reasons, noEffort(d.Rule, b))
	}
	return d
}

// noEffort says that rung 3 is skipped.
func noEffort(rule Rule, b Backend) Reason {
	if b.CanEscalate {
		return Reason{Rule: rule, Text: fmt.Sprintf("the higher effort of backend %s rests after a %s edit loop", b.Name, b.Escalated.Class)}
	}
	return Reason{Rule: rule, Text: fmt.Sprintf("backend %s has no higher effort to try", b.Name)}
}

// unable is the answer to verify commands that cannot work on the base: no attempt is spent on them unless a person
// asks to try in spite of that.
func unable(f Facts) Decision {
	if f.Purpose != ToChange || f.Unable == "" || len(f.run()) > 0 || f.insists() {
		return Decision{}
	}
	return verifyBroken(f.Unable)
}

func verifyBroken(why string) Decision {
	return stop(RuleVerifyBroken, "Give the command what it needs on the server, or correct it in .github/pawl.yml; /pawl retry has the agent work in spite of it.", why)
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

// repeated is an attempt that is tried again on the same rung: what ended it has nothing to do with the work.
func repeated(d Decision, a Attempt) Decision {
	if was := a.Decision; was.Rung != 0 || was.Escalated {
		d.Rung, d.Escalated, d.Backend = was.Rung, was.Escalated, a.Backend
	}
	d.Different = a.Decision.Different
	return d
}

// maxResumed is the context, in tokens, up to which continuing a session is taken to be cheaper than a new one. A
// continued session sends its whole context with every request, mostly from the provider's cache at about a tenth of
// the price; a new one reads the same files again. In the recorded runs that is less than half of the context, so a
// session that fills more than half of the smallest window in use (200,000 tokens) is left behind.
const maxResumed = 100_000

// Resume decides whether an attempt continues the agent's session of the last attempt, and says why. The session is
// empty where it starts afresh. start is the commit that the new attempt begins from.
func Resume(f Facts, d Decision, start string) (session, reason string) {
	a, ok := f.last()
	switch {
	case !f.Limits.Ladder.ResumeSessions || !ok || a.Session == "" || !a.Resumable:
		return "", ""
	case a.Backend != d.Backend:
		return "", "a new session: another backend"
	case d.Different || d.Escalated || d.Rung == RungAnswer:
		return "", "a new session: the attempt is to differ from the one before"
	case a.Outcome == EditLoop || Stagnation(f.attempts(), f.Run, f.Limits).Similar > 0:
		return "", "a new session: the last one went in circles"
	case !a.Paused && !slices.Contains([]Ending{Completed, CutOff, UsageLimit, RateLimited, Overloaded, Disconnected}, a.Ending):
		// It neither came to its end, nor was it stopped by what has nothing to do with it.
		return "", fmt.Sprintf("a new session: the last one ended %s", a.Ending)
	case a.Commit != start && (a.Commit != "" || a.Base != start):
		return "", "a new session: the files are not as the last one left them"
	case a.Context > maxResumed:
		return "", fmt.Sprintf("a new session: the last one fills %d tokens", a.Context)
	}
	return a.Session, fmt.Sprintf("it continues the session of attempt %d", a.N)
}

// Rung is one recovery: what set it off, what was done, what that cost, and whether it helped.
type Rung struct {
	Rung     int    `json:"rung"`
	Trigger  string `json:"trigger"`
	Response string `json:"response"`
	Times    int    `json:"times"` // how often it fired
	// Helped is how often it helped, Recovered whether it did each time. The calls of rung 4 do so in the end or not.
	Helped    int  `json:"helped,omitempty"`
	Recovered bool `json:"recovered"`
	// Unneeded says that nothing had failed before, so that there was nothing to recover.
	Unneeded bool     `json:"unneeded,omitempty"`
	Tokens   int64    `json:"tokens,omitempty"`
	CostUSD  *float64 `json:"cost_usd,omitempty"`
	// WastedTokens and WastedUSD are what the answers had used that were thrown away.
	WastedTokens int64    `json:"wasted_tokens,omitempty"`
	WastedUSD    *float64 `json:"wasted_usd,omitempty"`
	MS           int64    `json:"ms,omitempty"`
}

func (r Rung) Took() time.Duration { return time.Duration(r.MS) * time.Millisecond }

// Result says whether it helped, as people are told it.
func (r Rung) Result() string {
	switch {
	case r.Unneeded:
		return "nothing had failed"
	case r.Recovered:
		return "helped"
	case r.Helped > 0:
		return fmt.Sprintf("helped %d of %d times", r.Helped, r.Times)
	}
	return "did not help"
}

// OwnRung is the recovery that an attempt itself was; not ok where it was none. What it cost is what the attempt cost.
// It recovered where it came to what the last one before it that came to its own end did not.
func OwnRung(d Decision, effort string, r Receipt, before []Receipt) (Rung, bool) {
	own := Rung{
		Rung: d.Rung, Times: 1, Trigger: d.Reasons[:min(1, len(d.Reasons))].String(),
		Tokens: r.Tokens.Input + r.Tokens.Output, CostUSD: r.CostUSD, MS: r.AgentMS, Recovered: r.Outcome == Edited, Unneeded: true,
	}
	var last Receipt
	for _, b := range slices.Backward(before) {
		if b.Outcome != Interrupted && b.Outcome != Cancelled && !b.cut() {
			last, own.Unneeded = b, b.Outcome == Edited || b.Outcome == Declined || b.Outcome == Asked
			break
		}
	}
	switch d.Rung {
	case RungAnswer:
		own.Response = "one more attempt in the opposite thinking mode (" + effort + ")"
		own.Recovered = r.Ending == Completed
		own.WastedTokens, own.WastedUSD = last.Tokens.Input+last.Tokens.Output, last.CostUSD
	case RungVerify:
		own.Response = "one more attempt with the change so far and what failed"
	case RungEffort:
		own.Response = "one attempt at the escalated effort"
		if effort != "" {
			own.Response += " (" + effort + ")"
		}
	default:
		return Rung{}, false
	}
	if own.Recovered = own.Recovered && !own.Unneeded; own.Recovered {
		own.Helped = 1
	}
	return own, true
}

// TestCall is one call of the tool run_tests.
type TestCall struct {
	Passed bool  `json:"passed"`
	MS     int64 `json:"ms"`
}

// RanTests is rung 4, that an agent ran the tests itself: it recovered where a call failed and the last one passed.
func RanTests(calls []TestCall) Rung {
	r := Rung{Rung: RungTests, Times: len(calls), Response: "ran the verify commands during the attempt"}
	failed := 0
	for _, c := range calls {
		r.MS += max(0, c.MS)
		if r.Recovered = c.Passed; !c.Passed {
			failed++
		}
	}
	r.Unneeded = failed == 0
	if r.Recovered = r.Recovered && !r.Unneeded; r.Recovered {
		r.Helped = len(calls)
	}
	r.Trigger = fmt.Sprintf("the agent ran the tests; %d of %d calls failed", failed, len(calls))
	return r
}
