package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// stopped applies if a user, the operator or GitHub ended the work.
func stopped(f Facts) Decision {
	switch {
	case f.Paused != "":
		return f.paused()
	case f.Closed != "":
		return stop(RuleClosed, "", f.Closed)
	case f.Stopped != "":
		return stop(RuleCancelled, "Comment /pawl resume to go on.", f.Stopped)
	}
	a, _ := f.result()
	if a.Outcome != NotPermitted {
		return Decision{}
	}
	return stop(
		RuleRevoked,
		"A user who may write to the repository must ask for it: /pawl retry.",
		fmt.Sprintf("attempt %d was not pushed: the user who asked may not write to the repository any more", a.N),
	)
}

// paused stops, unless the attempt that ran when the pause began finished the work.
func (f Facts) paused() Decision {
	if d := done(f); d.Action != "" {
		return d
	}
	return stop(RulePaused, "Work that the pause stopped continues by itself when the pause ends.", f.Paused)
}

// declined asks a user after the agent declined the task or asked a question.
func declined(f Facts) Decision {
	var d Decision
	switch a, _ := f.result(); a.Outcome {
	case Declined:
		d = stop(
			RuleDeclined,
			"Say in a comment what to do instead, or what the agent got wrong; the work then begins again.",
			"the agent declined: "+a.Declined,
		)
	case Asked:
		d = stop(RuleQuestion, "Answer in a comment; the work then goes on.", "the agent asks: "+a.Question)
	default:
		return Decision{}
	}
	d.Action = DoAsk
	return d
}

// answered ends requests for an answer or a plan. A plan waits for a user.
func answered(f Facts) Decision {
	switch a, _ := f.result(); a.Outcome {
	case Planned:
		return Decision{
			Action:  DoAsk,
			Rule:    RulePlanned,
			Reasons: Because(RulePlanned, fmt.Sprintf("attempt %d made a plan", a.N)),
			Hint:    "Read the plan and edit its comment as you like; /pawl go then has the agent work by it.",
		}
	case Answered:
		return Decision{
			Action:  DoDone,
			Rule:    RuleAnswered,
			Reasons: Because(RuleAnswered, fmt.Sprintf("attempt %d answered", a.N)),
		}
	default:
		return Decision{}
	}
}

// done applies if the last attempt ended well and its work, or the work that it continued, is kept.
func done(f Facts) Decision {
	a, _ := f.result()
	if !a.endedWell() {
		return Decision{}
	}
	work, ok := f.finished(a)
	if !ok || f.asksAboutFailures(a) {
		return Decision{}
	}
	what := "changed the tree"
	if a.Updated != "" {
		what = "merged the base"
	}
	if work.N != a.N {
		what = fmt.Sprintf("completed what attempt %d had changed", work.N)
	}
	reasons := []string{fmt.Sprintf("attempt %d %s: %s", a.N, what, a.VerifiedWords(""))}
	if a.Outcome == Declined {
		reasons = append(reasons, "the agent says of what fails: "+a.Declined)
	}
	return Decision{
		Action:  DoDone,
		Rule:    RuleDone,
		Reasons: Because(RuleDone, append(reasons, a.TestEvidence.Sentences()...)...),
	}
}

// endedWell reports whether the attempt left work or had nothing to add to earlier work.
func (a Attempt) endedWell() bool {
	switch a.Outcome {
	case WorkVerified, WorkUnverified, NoChange, OnlyLeftOut:
		return true
	case Declined:
		return a.saysNotItsTask()
	default:
		return false
	}
}

// saysNotItsTask reports whether the agent answered that tests failing as on the base are not its task.
func (a Attempt) saysNotItsTask() bool {
	return a.Decision.Rule == RuleStillFailing && a.Verification() == AsBefore
}

func (f Facts) finished(last Attempt) (work Attempt, ok bool) {
	work, kept := f.KeptWork()
	switch {
	case !kept:
		return Attempt{}, false
	case work.Failing() && len(last.Verify) == 0:
		return Attempt{}, false // not verified since
	case work.N != last.N && work.StartTree == last.StartTree:
		return Attempt{}, false // a user discarded the work
	}
	return work, true
}

// stillFailing asks the agent once, in its session, whether tests that also fail on the base belong to the task.
func stillFailing(f Facts) Decision {
	a, _ := f.result()
	if !f.asksAboutFailures(a) {
		return Decision{}
	}
	why := fmt.Sprintf("attempt %d: %s; the agent is asked once whether fixing that is part of the task", a.N, a.VerifiedWords(""))
	return again(RuleStillFailing, why).on(a.Backend, 0)
}

// asksAboutFailures reports whether to ask about tests that fail as on the base: once per feedback, unless the agent
// has fixed one of them.
func (f Facts) asksAboutFailures(a Attempt) bool {
	if !a.endedWell() || a.Verification() != AsBefore {
		return false
	}
	if len(a.Fixed()) > 0 {
		return false
	}
	return !slices.ContainsFunc(f.ladderAttempts(), func(b Attempt) bool { return b.Decision.Rule == RuleStillFailing })
}

// needsPerson stops after a rejected login or a wrong configuration, unless another account is free.
func needsPerson(f Facts) Decision {
	var rule Rule
	var what, hint string
	a, _ := f.last()
	switch a.Outcome {
	case WasAuth:
		rule = RuleAuth
		what = "rejected its login"
		hint = "The operator must renew the login of this backend; then comment /pawl retry."
	case WasConfig:
		rule = RuleMisconfigured
		what = "is misconfigured"
		hint = "The operator must correct the configuration of this backend; then comment /pawl retry."
	default:
		return Decision{}
	}
	if b, ok := f.other(a); ok {
		return again(rule, fmt.Sprintf("backend %s ended %s; %s is next", a.Backend, a.Outcome.Words(), b.after(a))).with(b)
	}
	if f.forced() || f.command("solve") {
		return Decision{}
	}
	return stop(rule, hint, fmt.Sprintf("backend %s %s%s", a.Backend, what, a.detail()))
}

// usageLimit continues on another backend, waits for a known reset, or stops and reports the reset.
func usageLimit(f Facts) Decision {
	a, _ := f.last()
	if a.Outcome != WasUsageLimit {
		return Decision{}
	}
	if b, ok := f.other(a); ok {
		return again(RuleUsageLimit, fmt.Sprintf("account %s hit its usage limit; %s is next", a.Account, b.after(a))).with(b)
	}
	reset := a.reset()
	waits := f.Limits.UsageLimit.AutoContinue && !reset.IsZero()
	if waits && !f.Now.Before(reset) {
		return Decision{
			Action:  DoAttempt,
			Rule:    RuleLimitReset,
			Reasons: Reasons{{RuleLimitReset, "the usage limit of account " + a.Account + " was reset at", reset}},
		}
	}
	if d := f.breakerStop(f.backendOf(a)); d.Action != "" {
		return d
	}
	if f.forced() {
		return Decision{}
	}
	why := fmt.Sprintf("account %s hit its usage limit%s; %s", a.Account, a.detail(), resets(reset))
	d := Decision{
		Action:  DoStop,
		Rule:    RuleUsageLimit,
		Reasons: Reasons{{RuleUsageLimit, why, reset}},
		Hint:    "Comment /pawl resume to try again.",
	}
	if waits {
		d.Action = DoWait
		d.Until = reset
		d.Hint = "Comment /pawl resume to try before that."
		return f.orEarlier(d, a.Account)
	}
	return d
}

// orEarlier ends a wait for an account's reset when another account becomes free before it.
func (f Facts) orEarlier(wait Decision, account string) Decision {
	for _, b := range f.Backends {
		usable := f.Pinned == "" || f.Pinned == b.Name
		if !usable || b.Account == account {
			continue
		}
		h := f.held(b)
		if h == nil || h.rule == "" {
			continue
		}
		if f.nextLook(h.until).Before(f.nextLook(wait.Until)) {
			wait.Until, wait.Rule = h.until, h.rule
			wait.Reasons = append(slices.Clone(wait.Reasons), h.why)
		}
	}
	return wait
}

// editLoop continues after an edit loop with progress. Its backend is in cooldown; admit chooses the next one.
func editLoop(f Facts) Decision {
	a, _ := f.result()
	if a.Outcome != EditLoop || !a.Progress() {
		return Decision{}
	}
	v := f.Limits.Severity.Loop(a.Receipt)
	reasons := []string{fmt.Sprintf("attempt %d was a %s edit loop: %s", a.N, v.Class, strings.Join(v.Reasons, "; "))}
	if a.Kept != "" {
		reasons = append(reasons, "its work is kept on branch "+a.Kept+" and not part of the pull request")
	}
	return again(RuleEditLoop, reasons...)
}

// noProgress stops after a failure without a change.
func noProgress(f Facts) Decision {
	a, ok := f.result()
	if !ok || a.Progress() || a.Outcome == Interrupted {
		return Decision{}
	}
	if a.Paused && !f.pausedBefore() {
		return Decision{}
	}
	_, kept := f.KeptWork()
	failed := a.failedVerification()
	switch {
	case failed && kept:
		return Decision{} // the ladder continues
	case !failed && slices.ContainsFunc(f.ladderAttempts(), Attempt.failedVerification):
		return f.verifyFailed(a)
	}
	return a.noProgress()
}

func (a Attempt) failedVerification() bool { return a.Outcome == VerifyFailed }

// pausedBefore reports whether a daily budget also ended the run's second-last attempt.
func (f Facts) pausedBefore() bool {
	run := f.run()
	return len(run) > 1 && run[len(run)-2].Paused
}

func (a Attempt) noProgress() Decision {
	switch a.Outcome {
	case HasSecret:
		return stop(
			RuleSecret,
			"Have it taken out; where it is not a secret, list its fingerprint under allow_secrets in .github/pawl.yml. Then comment /pawl retry.",
			fmt.Sprintf("attempt %d was not committed: %s", a.N, Named(a.Leaks)),
		)
	case HasConflict:
		return stop(
			RuleConflict,
			"Merge the base yourself, or comment /pawl update and how to resolve the conflict.",
			fmt.Sprintf("attempt %d left conflict markers in %s, and its merge was not pushed", a.N, few(a.Conflicts)),
		)
	case OnlyLeftOut:
		return stop(
			RuleLeftOut,
			"Make that change yourself, or say what else to do; the operator and .github/pawl.yml name what is protected.",
			fmt.Sprintf("attempt %d changed nothing but %s", a.N, few(a.LeftOut)),
		)
	case NoChange:
		return stop(
			RuleNoChange,
			"Say what is missing in a comment, or close the thread.",
			fmt.Sprintf("attempt %d ended completed and changed nothing", a.N),
		)
	default:
		return stop(
			RuleNoProgress,
			"Look at the failure; /pawl retry tries once more.",
			fmt.Sprintf("attempt %d failed (%s) and brought no change%s", a.N, a.Outcome.Words(), a.detail()),
		)
	}
}

// feedback starts an attempt for open requests.
func feedback(f Facts) Decision {
	if len(f.Fresh) == 0 {
		return Decision{}
	}
	if d := f.gather(); d.Action != "" {
		return d
	}
	d := again(RuleFeedback, Plural(len(f.Fresh), "remark")+" that no attempt has taken yet")
	if f.command("escalate") {
		d = d.on("", RungEffort)
	}
	return d
}

// gather waits for the rest of a review. A command does not wait.
func (f Facts) gather() Decision {
	most := f.Fresh[0].At.Add(gatherMost)
	commanded := slices.ContainsFunc(f.Fresh, func(r Request) bool { return IsCommand(r.Command) })
	if !f.Now.Before(most) || commanded {
		return Decision{}
	}
	for _, t := range f.Fresh {
		// Another node's clock may be slightly ahead. Pawl does not wait for a remark dated far ahead.
		if !t.inReview() || f.Now.Sub(t.At).Abs() >= gatherReview {
			continue
		}
		return Decision{
			Action:  DoWait,
			Rule:    RuleGather,
			Until:   t.At.Add(min(gatherReview, most.Sub(t.At))),
			Reasons: Because(RuleGather, "a review comes in several parts; the rest of it is awaited"),
		}
	}
	return Decision{}
}

func (r Request) inReview() bool {
	if r.Standing {
		return false
	}
	return r.Source == FromReview || r.Source == FromReviewComment
}

const (
	// gatherReview is the wait for the rest of a review. GitHub sends a review and its line comments as separate
	// events in any order.
	gatherReview = 3 * time.Second
	// gatherMost limits the total wait since the first fresh remark.
	gatherMost = 30 * time.Second
)

func (a Attempt) detail() string {
	if a.Detail == "" {
		return ""
	}
	return ": " + a.Detail
}

func resets(at time.Time) string {
	if at.IsZero() {
		return "when it resets is unknown"
	}
	return "it resets at"
}

// Transient configures waits after temporary refusals: short limits, overloads and lost connections.
type Transient struct {
	// MaxConsecutive such attempts in a row stop the run. 5 attempts wait 7.5 minutes in total, longer than most
	// short incidents (our choice).
	MaxConsecutive int `yaml:"max_consecutive"`
	// BackoffStart is the first wait, doubled each time. A later reset from the provider takes precedence.
	BackoffStart time.Duration `yaml:"backoff_start"`
	BackoffCap   time.Duration `yaml:"backoff_cap"`
}

func (t Transient) backoff(n int) time.Duration {
	return Retry(n, t.BackoffStart, t.BackoffCap, 1)
}

func (a Attempt) refused() bool { return a.Outcome.Passes() }

// transient continues on an account outside the current row of refusals, or waits.
func transient(f Facts) Decision {
	a, _ := f.last()
	if !a.refused() || f.forced() {
		return Decision{}
	}
	limits := f.Limits.Transient
	row := inARow(f.Attempts, Attempt.refused)
	n := len(row)
	why := fmt.Sprintf("attempt %d ended %s, which is not a failure of the agent%s", a.N, a.Outcome.Words(), a.detail())
	if n >= limits.MaxConsecutive {
		return stop(
			RuleTransient,
			"Comment /pawl resume to try again.",
			why,
			fmt.Sprintf("%s ended so, and none between them came to its own end; the limit is %d", Plural(n, "attempt"), limits.MaxConsecutive),
		)
	}
	if b, ok := f.other(row...); ok {
		return again(RuleTransient, why+"; "+b.after(a)+" is next").like(a).with(b)
	}
	until := Later(a.EndedAt.Add(limits.backoff(n)), a.reset())
	if f.Now.Before(until) {
		return Decision{
			Action:  DoWait,
			Rule:    RuleTransient,
			Until:   until,
			Reasons: Because(RuleTransient, why),
			Hint:    "Comment /pawl resume to try before that.",
		}
	}
	return again(RuleTransient, why).like(a)
}

func (a Attempt) isKept() bool {
	if a.Pushed {
		return true
	}
	if a.Ending == Killed || a.Outcome.BrokenOff() {
		return false
	}
	return a.Progress()
}

// KeptWork returns the newest attempt with kept work since the last request for something new.
func (f Facts) KeptWork() (Attempt, bool) {
	for _, a := range slices.Backward(f.attempts()) {
		if a.isKept() {
			return a, true
		}
		if a.NewInput && !a.GoesOn {
			break
		}
	}
	return Attempt{}, false
}
