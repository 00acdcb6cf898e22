package policy

import (
	"fmt"
	"slices"
	"time"
)

// The rungs of the ladder, as stored in receipts.
const (
	RungAnswer = 1 // no answer: repeat in the opposite thinking mode
	RungVerify = 2 // verification failed: repeat with its output
	RungEffort = 3 // rung 2 is used up: repeat once at the escalated effort, if the backend has one
	RungTests  = 4 // the agent ran the tests itself
)

// noAnswer applies rung 1 once per run, unless the gateway already asked again.
func noAnswer(f Facts) Decision {
	a, _ := f.result()
	if !f.Limits.Ladder.NoAnswerRetry || !a.gaveNoAnswer() {
		return Decision{}
	}
	if slices.ContainsFunc(f.run(), func(b Attempt) bool { return b.Decision.Rung == RungAnswer }) {
		return Decision{}
	}
	return again(
		RuleNoAnswer,
		fmt.Sprintf("attempt %d ended without an answer; once more in the opposite thinking mode", a.N),
	).on(a.Backend, RungAnswer)
}

// gaveNoAnswer reports whether an attempt without an answer may be repeated: the gateway was unused, or the answer
// was mostly prose.
func (r Receipt) gaveNoAnswer() bool {
	if r.Outcome != GaveNoAnswer {
		return false
	}
	return !r.Gateway || r.Rambled
}

// ladder decides what follows an attempt that changed the work without finishing it.
func ladder(f Facts) Decision {
	a, ok := f.result()
	if !ok {
		return Decision{}
	}
	switch a.Outcome {
	case Interrupted:
		return f.interrupted(a)
	case VerifyFailed:
		return f.verifyFailed(a)
	case WorkVerified, WorkUnverified, NoChange, Answered, Planned, Asked, Declined:
		return Decision{}
	case OutOfBudget:
		why := fmt.Sprintf("attempt %d was ended by a budget of the day, which has room again", a.N)
		return again(RuleBudget, why).like(a)
	default:
		why := fmt.Sprintf("attempt %d moved the work forward before it ended %s", a.N, a.Outcome.Words())
		return again(RuleProgress, why).like(a)
	}
}

// inARow lists the newest attempts of a kind, newest first, up to another result. Blameless failures are skipped.
func inARow(all []Attempt, kind func(Attempt) bool) (row []Attempt) {
	for _, a := range slices.Backward(all) {
		switch {
		case kind(a):
			row = append(row, a)
		case !a.blameless():
			return row
		}
	}
	return row
}

// silence repeats an attempt whose agent hung.
func silence(f Facts) Decision {
	a, _ := f.result()
	if a.Outcome != FellSilent {
		return Decision{}
	}
	why := fmt.Sprintf("attempt %d was ended because the agent was silent for %s; that does not count as a failure", a.N, a.Silent)
	if n := len(inARow(f.run(), Attempt.wentSilent)); n >= maxSilences {
		return stop(
			RuleSilent,
			"The operator should look at what the agent waits for, or raise its idle_timeout; /pawl retry tries again.",
			why,
			fmt.Sprintf("%d attempts ended so, and none between them came to its own end", n),
		)
	}
	return again(RuleSilent, why).like(a)
}

func (a Attempt) wentSilent() bool { return a.Outcome == FellSilent }

// After three attempts in a row (a usual retry budget), hung agents and interrupted attempts need a user. If the server
// was killed each time, the attempt may be the cause: from the third time, the next attempt waits. The wait starts at
// firstHeldBack and doubles each time.
const (
	maxSilences     = 3
	maxBroken       = 3
	patientUntil    = 3
	firstHeldBack   = time.Minute
	longestHeldBack = 2 * time.Hour
)

// interrupted repeats an attempt that Pawl could not finish, waits, or stops after maxBroken attempts.
func (f Facts) interrupted(a Attempt) Decision {
	row := inARow(f.run(), func(b Attempt) bool { return b.Outcome == Interrupted })
	killed := 0
	for _, b := range row {
		if b.Ending == Killed {
			killed++
		}
	}
	why := fmt.Sprintf("%d attempts were interrupted and none between them came to its own end, which is not a failure of the agent%s", len(row), a.detail())
	if len(row)-killed >= maxBroken {
		return stop(RuleInterrupted, "The operator should look at the server's log; /pawl retry tries again.", why)
	}
	until := a.EndedAt.Add(Retry(killed-patientUntil+1, firstHeldBack, longestHeldBack, 1))
	if killed >= patientUntil && f.Now.Before(until) {
		return Decision{
			Action:  DoWait,
			Rule:    RuleInterrupted,
			Until:   until,
			Hint:    "The operator should look at the server's log; /pawl retry tries before that.",
			Reasons: Reasons{{RuleInterrupted, why + "; the next one begins at", until}},
		}
	}
	why = fmt.Sprintf("attempt %d was interrupted, which is not a failure of the agent%s", a.N, a.detail())
	return again(RuleInterrupted, why).like(a)
}

// verifyFailed counts the failures since the last feedback, so the ladder ends.
func (f Facts) verifyFailed(a Attempt) Decision {
	if v := a.Deciding(); v != nil && v.Broken != "" {
		return verifyBroken(v.broken(v.Broken))
	}
	c := f.tried()
	if c.failed <= f.Limits.Ladder.VerifyRetries {
		why := fmt.Sprintf("verification failed after attempt %d; retry %d of %d with its output", a.N, c.failed, f.Limits.Ladder.VerifyRetries)
		return again(RuleVerifyFailed, why).on("", RungVerify)
	}
	tried := Plural(c.attempts, "attempt")
	backends := f.candidates(Decision{Backend: a.Backend})
	if len(backends) == 0 { // admit gives the reason
		return again(RuleVerifyFailed, fmt.Sprintf("verification failed, and %s did not mend it", tried))
	}
	b := backends[0]
	if f.mayEscalate(b) && !c.escalated {
		why := fmt.Sprintf("verification failed and %s did not mend it; once more with the escalated effort", tried)
		return again(RuleEscalateEffort, why).on(b.Name, RungEffort)
	}
	return f.ladderEnds(b, tried)
}

func (f Facts) ladderEnds(b Backend, tried string) Decision {
	d := stop(
		RuleVerifyFailed,
		"Look at the failing commands; comment what to do, or /pawl escalate.",
		fmt.Sprintf("verification failed, and %s did not mend it", tried),
	)
	if f.canEscalate(b) {
		return d
	}
	if !b.CanEscalate {
		d.Hint = "Look at the failing commands; comment what to do."
	}
	d.Reasons = append(d.Reasons, b.noEffort(d.Rule))
	return d
}

func (f Facts) mayEscalate(b Backend) bool {
	return f.Limits.Ladder.EscalateEffort && f.canEscalate(b)
}

type tries struct {
	failed    int // failed verifications, and attempts that gave up after one
	attempts  int
	escalated bool
}

// tried counts the tries since the last feedback. An attempt that changed nothing uses up the retries: the same output
// would not help again.
func (f Facts) tried() (c tries) {
	for _, b := range f.ladderAttempts() {
		gaveUp := c.failed > 0 && b.gaveUp()
		switch {
		case gaveUp:
			c.failed = max(c.failed, f.Limits.Ladder.VerifyRetries) + 1
		case b.failedVerification():
			c.failed++
		default:
			continue
		}
		c.attempts++
		if b.Decision.Escalated {
			c.escalated = true
		}
	}
	return c
}

// gaveUp reports whether the attempt ended by itself without a change.
func (r Receipt) gaveUp() bool { return !r.Progress() && !r.blameless() }

// noEffort explains a skipped rung 3.
func (b Backend) noEffort(rule Rule) Reason {
	if b.CanEscalate {
		why := fmt.Sprintf("the higher effort of backend %s is in cooldown after a %s edit loop", b.Name, b.Escalated.Class)
		return Reason{Rule: rule, Text: why}
	}
	return Reason{Rule: rule, Text: fmt.Sprintf("backend %s has no higher effort to try", b.Name)}
}

// unable stops if the verify commands cannot work on the base, unless a user forces an attempt.
func (f Facts) unable() Decision {
	if f.Purpose != ToChange || f.Unable == "" {
		return Decision{}
	}
	if len(f.run()) > 0 || f.forced() {
		return Decision{}
	}
	return verifyBroken(f.Unable)
}

func verifyBroken(why string) Decision {
	return stop(
		RuleVerifyBroken,
		"Give the command what it needs on the server, or correct it in .github/pawl.yml; /pawl retry has the agent work anyway.",
		why,
	)
}

// ladderAttempts lists the run's attempts since the last feedback.
func (f Facts) ladderAttempts() []Attempt {
	run := f.run()
	for i := len(run) - 1; i > 0; i-- {
		if run[i].NewInput {
			return run[i:]
		}
	}
	return run
}

// like repeats an attempt on its rung.
func (d Decision) like(a Attempt) Decision {
	was := a.Decision
	if was.Rung != 0 || was.Escalated {
		d.Rung = was.Rung
		d.Escalated = was.Escalated
		d.Backend = a.Backend
	}
	d.Different = was.Different
	return d
}

// maxResumed limits the context, in tokens, of a session to continue: half of the smallest window in use (200,000
// tokens). A session sends its whole context with every request.
const maxResumed = 100_000

// Resume returns the agent's session to continue, and the reason. An empty session starts a new one. start is the new
// attempt's base commit.
func (f Facts) Resume(d Decision, start string) (session, reason string) {
	a, _ := f.last()
	if !f.Limits.Ladder.ResumeSessions || !a.resumable() {
		return "", ""
	}
	if why := f.afresh(a, d, start); why != "" {
		return "", "a new session: " + why
	}
	return a.Session, fmt.Sprintf("it continues the session of attempt %d", a.N)
}

func (a Attempt) resumable() bool { return a.Session != "" && a.Resumable }

// MayRefuseSession reports whether the ending of an agent that did nothing may mean that its CLI refused the session.
// Limits, logins and network failures have endings of their own.
func (e Ending) MayRefuseSession() bool {
	return slices.Contains([]Ending{Crashed, Misconfigured, NoAnswer}, e)
}

// producedOutput reports whether the agent did anything. Otherwise there may be no session: Gemini CLI 0.61.0 refuses to
// resume one without an answer.
func (a Attempt) producedOutput() bool {
	if a.Ending == Completed || a.ToolCalls > 0 {
		return true
	}
	return a.Tokens.Output > 0 || a.Final != ""
}

// afresh returns the reason for a new session; empty to continue the last one.
func (f Facts) afresh(a Attempt, d Decision, start string) string {
	switch {
	case a.Backend != d.Backend:
		return "another backend"
	case a.Account != d.Account:
		return "another account"
	case d.differs():
		return "the attempt must differ from the one before"
	case f.circled(a):
		return "the last one went in circles"
	case !a.undisturbed():
		return fmt.Sprintf("the last one ended %s", a.Ending.Words())
	case !a.producedOutput():
		return "the agent neither said nor did anything in the last one"
	case !a.leftAt(start):
		return "the files are not as the last one left them"
	case a.Context > maxResumed:
		return fmt.Sprintf("the last one fills %d tokens", a.Context)
	}
	return ""
}

func (d Decision) differs() bool {
	if d.Different || d.Escalated {
		return true
	}
	return d.Rung == RungAnswer
}

// circled reports whether the last attempt went in circles, alone or together with earlier ones.
func (f Facts) circled(last Attempt) bool {
	if last.Outcome == EditLoop {
		return true
	}
	return Stagnation(f.attempts(), f.Run, f.Limits).Similar > 0
}

// undisturbed reports whether the attempt ended by itself or for a reason outside its session.
func (r Receipt) undisturbed() bool {
	if r.Paused {
		return true
	}
	switch r.Ending {
	case Completed, CutOff, UsageLimit, RateLimited, Overloaded, Disconnected:
		return true
	default:
		return false
	}
}

// leftAt reports whether the attempt left the files at a commit: its own commit, else its base.
func (r Receipt) leftAt(commit string) bool {
	if r.Commit == "" {
		return commit == "" || r.Base == commit
	}
	return r.Commit == commit
}

// Rung records one recovery with its cost.
type Rung struct {
	Rung     int    `json:"rung"`
	Trigger  string `json:"trigger"`
	Response string `json:"response"`
	Times    int    `json:"times"` // the number of times it fired
	// Helped counts successes. Recovered means that it helped each time; for rung 4, in the end.
	Helped    int  `json:"helped,omitempty"`
	Recovered bool `json:"recovered"`
	// Unneeded means that nothing had failed before.
	Unneeded bool     `json:"unneeded,omitempty"`
	Tokens   int64    `json:"tokens,omitempty"`
	CostUSD  *float64 `json:"cost_usd,omitempty"`
	// The cost of discarded answers.
	WastedTokens int64    `json:"wasted_tokens,omitempty"`
	WastedUSD    *float64 `json:"wasted_usd,omitempty"`
	MS           int64    `json:"ms,omitempty"`
}

func (r Rung) Took() time.Duration { return time.Duration(r.MS) * time.Millisecond }

// Result describes for users whether the recovery helped.
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

// OwnRung describes an attempt that was itself a recovery. Its cost is the attempt's cost. It recovered if it succeeded
// and the last attempt that ended by itself did not.
func (d Decision) OwnRung(effort string, r Receipt, before []Receipt) (Rung, bool) {
	own := Rung{
		Rung:      d.Rung,
		Times:     1,
		Trigger:   d.Reasons[:min(1, len(d.Reasons))].String(),
		Tokens:    r.Tokens.used(),
		CostUSD:   r.CostUSD,
		MS:        r.AgentMS,
		Recovered: r.Outcome.Work(),
	}
	last, ok := lastEnded(before)
	own.Unneeded = !ok || last.succeeded()
	switch d.Rung {
	case RungAnswer:
		own.Response = "one more attempt in the opposite thinking mode (" + effort + ")"
		own.Recovered = r.Ending == Completed
		own.WastedTokens = last.Tokens.used()
		own.WastedUSD = last.CostUSD
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
	own.settle()
	return own, true
}

// settle counts every firing as helped if the rung recovered. An unneeded rung did not recover.
func (r *Rung) settle() {
	if r.Unneeded {
		r.Recovered = false
	}
	if r.Recovered {
		r.Helped = r.Times
	}
}

// lastEnded returns the last attempt that ended by itself.
func lastEnded(before []Receipt) (Receipt, bool) {
	for _, r := range slices.Backward(before) {
		if !r.Outcome.BrokenOff() && !r.cut() {
			return r, true
		}
	}
	return Receipt{}, false
}

// succeeded reports whether there was nothing to recover: work exists, or the attempt declined or asked a user.
func (r Receipt) succeeded() bool {
	switch r.Outcome {
	case WorkVerified, WorkUnverified, Declined, Asked:
		return true
	default:
		return false
	}
}

func (t Tokens) used() int64 { return t.Input + t.Output }

// TestCall is one call of the run_tests tool.
type TestCall struct {
	Passed bool  `json:"passed"`
	MS     int64 `json:"ms"`
}

// RanTests returns rung 4, the agent's own test runs. It recovered if a call failed and the last one passed.
func RanTests(calls []TestCall) Rung {
	r := Rung{Rung: RungTests, Times: len(calls), Response: "ran the verify commands during the attempt"}
	failed := 0
	for _, c := range calls {
		r.MS += max(0, c.MS)
		r.Recovered = c.Passed
		if !c.Passed {
			failed++
		}
	}
	r.Unneeded = failed == 0
	r.settle()
	r.Trigger = fmt.Sprintf("the agent ran the tests; %d of %d calls failed", failed, len(calls))
	return r
}
