package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// stopped speaks where a person, the operator or GitHub ended the work.
func stopped(f Facts) Decision {
	switch {
	case f.Paused != "":
		if d := done(f); d.Action != "" { // the attempt that ran when the pause began
			return d
		}
		return stop(RulePaused, "What stopped for the pause goes on by itself when that ends.", f.Paused)
	case f.Closed != "":
		return stop(RuleClosed, "", f.Closed)
	case f.Stopped != "":
		return stop(RuleCancelled, "Comment /pawl resume to go on.", f.Stopped)
	}
	if a, ok := f.last(); ok && a.Revoked && len(f.Fresh) == 0 {
		return stop(RuleRevoked, "Somebody who may write to the repository must ask for it: /pawl retry.",
			fmt.Sprintf("attempt %d was not pushed: whoever asked for it may not write to the repository any more", a.N))
	}
	return Decision{}
}

// declined asks a person: the agent said that the task cannot be done, or asked something, which is no failure of it.
func declined(f Facts) Decision {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 || a.Outcome != Declined && a.Outcome != Asked {
		return Decision{}
	}
	d := stop(RuleDeclined, "Say in a comment what to do instead, or what the agent got wrong; the work then begins again.", "the agent declined: "+a.Declined)
	if a.Outcome == Asked {
		d = stop(RuleQuestion, "Answer in a comment; the work then goes on.", "the agent asks: "+a.Question)
	}
	d.Action = DoAsk
	return d
}

// answered ends what was only asked: with an answer there is nothing left to do, and a plan waits for a person.
func answered(f Facts) Decision {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 || a.Outcome != Answered {
		return Decision{}
	}
	if f.Purpose == ToPlan {
		return Decision{Action: DoAsk, Rule: RulePlanned, Reasons: Because(RulePlanned, fmt.Sprintf("attempt %d made a plan", a.N)),
			Hint: "Read the plan and edit its comment where it should be otherwise; /pawl go has it worked off, as it stands then."}
	}
	return Decision{Action: DoDone, Rule: RuleAnswered, Reasons: Because(RuleAnswered, fmt.Sprintf("attempt %d answered", a.N))}
}

// done speaks where the last attempt completed, its work or that which it went on with
// stands, and it was verified where there is something to verify with. Feedback that
// came meanwhile is work that is left, so it keeps the run open. Where the last attempt
// began at the tree that the work began at, somebody threw the work away.
func done(f Facts) Decision {
	a, ok := f.last()
	work, stands := f.Standing()
	gone := work.N != a.N && work.StartTree == a.StartTree
	if !ok || len(f.Fresh) > 0 || a.Ending != Completed || !stands || gone || len(a.Verify) == 0 && work.Outcome == VerifyFailed ||
		a.Failing() || a.Outcome == VerifyFailed || a.Outcome == Interrupted || a.Outcome == Cancelled {
		return Decision{}
	}
	how := "ended completed; no verify command ran"
	if len(a.Verify) > 0 {
		if how, ok = a.Receipt.Verified(); ok {
			how = "the verify commands passed"
		} else if strings.HasPrefix(strings.TrimPrefix(how, "un"), "verified") {
			how = "is " + how
		}
	}
	what := "changed the tree"
	if a.Updated != "" {
		what = "merged the base"
	}
	if work.N != a.N {
		what = fmt.Sprintf("completed what attempt %d had changed,", work.N)
	}
	return Decision{Action: DoDone, Rule: RuleDone, Reasons: Because(RuleDone, append([]string{fmt.Sprintf("attempt %d %s and %s", a.N, what, how)}, a.TestEvidence.Says()...)...)}
}

// needsPerson stops, since a rejected login or a wrong configuration does not get better by trying again.
func needsPerson(f Facts) Decision {
	a, ok := f.last()
	if !ok || a.Ending != Auth && a.Ending != Misconfigured {
		return Decision{}
	}
	rule, what, hint := RuleAuth, "rejected its login", "The operator must renew the login of this backend; then comment /pawl retry."
	if a.Ending == Misconfigured {
		rule, what, hint = RuleMisconfigured, "is misconfigured", "The operator must correct the configuration of this backend; then comment /pawl retry."
	}
	if b, ok := f.other(a); ok {
		return again(rule, fmt.Sprintf("backend %s ended %s; %s is next", a.Backend, a.Ending, b.Name)).on(b.Name, 0)
	}
	if f.insists() || f.command("solve") {
		return Decision{}
	}
	return stop(rule, hint, fmt.Sprintf("backend %s %s%s", a.Backend, what, detail(a)))
}

// usageLimit says what follows a usage limit: another backend goes on, or the
// run waits for a known reset, or it ends and says when it resets.
func usageLimit(f Facts) Decision {
	a, ok := f.last()
	if !ok || a.Ending != UsageLimit {
		return Decision{}
	}
	if b, ok := f.other(a); ok {
		return again(RuleUsageLimit, fmt.Sprintf("account %s hit its usage limit; %s is next", a.Account, b.Name)).on(b.Name, 0)
	}
	reset := a.reset()
	waits := f.Limits.UsageLimit.AutoContinue && !reset.IsZero()
	if waits && !f.Now.Before(reset) {
		return Decision{Action: DoAttempt, Rule: RuleLimitReset,
			Reasons: Reasons{{RuleLimitReset, "the usage limit of account " + a.Account + " was reset at", reset}}}
	}
	if d := breakerStop(f, f.backend(a.Backend)); d.Action != "" {
		return d
	}
	if f.insists() {
		return Decision{}
	}
	reasons := Reasons{{RuleUsageLimit, fmt.Sprintf("account %s hit its usage limit%s; %s", a.Account, detail(a), resets(reset)), reset}}
	if waits {
		return Decision{Action: DoWait, Rule: RuleUsageLimit, Until: reset, Reasons: reasons,
			Hint: "Comment /pawl resume to try before that."}
	}
	return Decision{Action: DoStop, Rule: RuleUsageLimit, Reasons: reasons, Hint: "Comment /pawl resume to try again."}
}

// editLoop speaks of an attempt that went in circles, which cools its backend down;
// another one may go on meanwhile. Which one, and when, is for admit to say. A
// loop that led nowhere is left to the rule of no progress.
func editLoop(f Facts) Decision {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 || a.Outcome != EditLoop || !a.Progress() {
		return Decision{}
	}
	v := f.Limits.Severity.Loop(a.Receipt)
	if v.Class == None {
		// The CLI stopped itself, which has the same name.
		return Decision{}
	}
	reasons := []string{fmt.Sprintf("attempt %d was a %s edit loop: %s", a.N, v.Class, strings.Join(v.Reasons, "; "))}
	if a.Kept != "" {
		reasons = append(reasons, "its work is kept on branch "+a.Kept+" and not part of the pull request")
	}
	return again(RuleEditLoop, reasons...)
}

// noProgress stops: an attempt that failed without changing anything is not repeated by itself.
func noProgress(f Facts) Decision {
	a, ok := f.last()
	if !ok || len(f.Fresh) > 0 || a.Progress() || a.Outcome == Interrupted {
		return Decision{}
	}
	if run := f.run(); a.Paused && (len(run) < 2 || !run[len(run)-2].Paused) {
		return Decision{}
	}
	if _, stands := f.Standing(); stands && a.Outcome == VerifyFailed {
		return Decision{}
	}
	if a.Outcome != VerifyFailed && slices.ContainsFunc(f.climb(), func(b Attempt) bool { return b.Outcome == VerifyFailed }) {
		return verifyFailed(f, a)
	}
	if len(a.Leaks) > 0 {
		return stop(RuleSecret, "Have it taken out; where it is no secret, list its fingerprint under allow_secrets in .github/pawl.yml. Then comment /pawl retry.",
			fmt.Sprintf("attempt %d was not committed: %s", a.N, Named(a.Leaks)))
	}
	if len(a.Conflicts) > 0 {
		return stop(RuleConflict, "Merge the base yourself, or comment /pawl update and how the conflict is to be resolved.",
			fmt.Sprintf("attempt %d left conflict markers in %s, and its merge was not pushed", a.N, few(a.Conflicts)))
	}
	if a.Ending == Completed && len(a.LeftOut) > 0 {
		return stop(RuleLeftOut, "Make that change yourself, or say what else is to be done; the operator and .github/pawl.yml name what is protected.",
			fmt.Sprintf("attempt %d changed nothing but %s", a.N, few(a.LeftOut)))
	}
	if a.Ending == Completed && a.Outcome != VerifyFailed {
		return stop(RuleNoChange, "Say what is missing in a comment, or close the thread.",
			fmt.Sprintf("attempt %d ended completed and changed nothing", a.N))
	}
	return stop(RuleNoProgress, "Look at the failure; /pawl retry tries once more.",
		fmt.Sprintf("attempt %d failed (%s) and brought no change%s", a.N, a.Outcome, detail(a)))
}

// feedback speaks where somebody asked for work that no attempt has taken.
func feedback(f Facts) Decision {
	if len(f.Fresh) == 0 {
		return Decision{}
	}
	if d := gather(f); d.Action != "" {
		return d
	}
	d := again(RuleFeedback, Plural(len(f.Fresh), "remark")+" that no attempt has taken yet")
	if f.command("escalate") {
		d = d.on("", RungEffort)
	}
	return d
}

// gather waits for what comes together with feedback.
func gather(f Facts) Decision {
	most := f.Fresh[0].At.Add(gatherMost)
	for _, t := range f.Fresh {
		// What is dated after now was taken in by a node whose clock is ahead of this
		// one's. By a moment that is usual, but one ahead by a year is not waited for.
		review := t.Source == FromReview || t.Source == FromReviewComment
		if review && f.Now.Sub(t.At).Abs() < gatherReview && f.Now.Before(most) && !f.command(Commands...) {
			return Decision{Action: DoWait, Rule: RuleGather, Until: t.At.Add(min(gatherReview, most.Sub(t.At))),
				Reasons: Because(RuleGather, "a review comes in several parts; the rest of it is awaited")}
		}
	}
	return Decision{}
}

const (
	// gatherReview is how long the rest of a review is awaited. GitHub sends a
	// review and each of its remarks on lines as an event of its own, at once but
	// in no order; without the wait they would become two attempts.
	gatherReview = 3 * time.Second
	// gatherMost is how long that goes on in all, and keeps what people say waiting. A
	// command does not wait for it.
	gatherMost = 30 * time.Second
)

func detail(a Attempt) string {
	if a.Detail == "" {
		return ""
	}
	return ": " + a.Detail
}

// resets ends a reason whose time is that of a reset.
func resets(at time.Time) string {
	if at.IsZero() {
		return "when it resets is unknown"
	}
	return "it resets at"
}

// Transient says how refusals that pass are waited out: the provider's short limits and
// overloads, and lost connections.
type Transient struct {
	// MaxConsecutive attempts in a row that end so stop the run. With the waits between them 5 last seven and a half
	// minutes, longer than most of what providers call incidents of minutes; it is our choice.
	MaxConsecutive int `yaml:"max_consecutive"`
	// BackoffStart is the first wait, doubled for each one after it. A later reset that the provider tells is waited for.
	BackoffStart time.Duration `yaml:"backoff_start"`
	BackoffCap   time.Duration `yaml:"backoff_cap"`
}

// Passes reports whether an ending is a refusal that passes, which is no failure of the agent.
func (e Ending) Passes() bool {
	return slices.Contains([]Ending{RateLimited, Overloaded, Disconnected}, e)
}

func (a Attempt) refused() bool {
	return a.Ending.Passes() && a.Outcome != EditLoop && a.Outcome != Interrupted && a.Outcome != Cancelled
}

// transient says what follows a refusal that passes: an account that has
// not refused in this row goes on, or the run waits.
func transient(f Facts) Decision {
	a, ok := f.last()
	if !ok || !a.refused() || f.insists() {
		return Decision{}
	}
	row := inARow(f.Attempts, Attempt.refused)
	why := fmt.Sprintf("attempt %d ended %s, which is no failure of the agent%s", a.N, a.Ending, detail(a))
	if n := len(row); n >= f.Limits.Transient.MaxConsecutive {
		return stop(RuleTransient, "Comment /pawl resume to try again.", why, fmt.Sprintf("%s ended so, and none between them came to its own end; the limit is %d", Plural(n, "attempt"), f.Limits.Transient.MaxConsecutive))
	}
	if b, ok := f.other(row...); ok { // none that refused in this row
		d := repeated(again(RuleTransient, why+"; "+b.Name+" is next"), a)
		d.Backend = b.Name
		return d
	}
	until := Later(a.EndedAt.Add(Retry(len(row), f.Limits.Transient.BackoffStart, f.Limits.Transient.BackoffCap, 1)), a.reset())
	if f.Now.Before(until) {
		return Decision{Action: DoWait, Rule: RuleTransient, Until: until, Reasons: Because(RuleTransient, why), Hint: "Comment /pawl resume to try before that."}
	}
	return repeated(again(RuleTransient, why), a)
}

// stands reports whether the attempt's work is kept. What was neither pushed nor ended by itself is lost.
func (a Attempt) stands() bool {
	return a.Pushed || a.Progress() && a.Ending != Killed && a.Outcome != Interrupted && a.Outcome != Cancelled
}

// Standing is the newest attempt whose work stands, as far as nobody has asked for
// anything new since: to be told to go on is nothing new.
func (f Facts) Standing() (Attempt, bool) {
	for _, a := range slices.Backward(f.attempts()) {
		if a.stands() {
			return a, true
		}
		if a.NewInput && !a.GoesOn {
			break
		}
	}
	return Attempt{}, false
}
