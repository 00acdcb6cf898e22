package policy

import (
	"slices"
	"strings"
)

// Outcome is an attempt's result, listed in docs/verdicts.md; empty while the attempt runs.
type Outcome string

// Outcomes of attempts that keep their work or have none.
const (
	WorkVerified   Outcome = "verified"      // see Verification.Verifies
	WorkUnverified Outcome = "unverified"    // nothing failed that passed on the base, but the work is not verified
	VerifyFailed   Outcome = "verify_failed" // a verify command failed or cannot work
	NoChange       Outcome = "no_change"
	Answered       Outcome = "answered"
	Planned        Outcome = "planned"
	Asked          Outcome = "asked"
	Declined       Outcome = "declined"
)

// Outcomes of discarded work, and of attempts that a user, Pawl or the provider ended.
const (
	HasSecret     Outcome = "secret"
	HasConflict   Outcome = "conflict"
	OnlyLeftOut   Outcome = "left_out"  // the attempt changed only files that stay out of commits
	EditLoop      Outcome = "edit_loop" // see SeverityLimits.Loop
	OutOfBudget   Outcome = "budget"    // the attempt's own or a daily budget ended it
	NotPermitted  Outcome = "revoked"   // the users who asked lost their write permission
	Interrupted   Outcome = "interrupted"
	Cancelled     Outcome = "cancelled"
	FellSilent    Outcome = "silent"
	SelfStopped   Outcome = "self_stopped" // the CLI or Pawl ended repeated calls, or the CLI reached its turn limit
	WasUsageLimit Outcome = Outcome(UsageLimit)
	WasAuth       Outcome = Outcome(Auth)
	WasConfig     Outcome = Outcome(Misconfigured)
	WasRate       Outcome = Outcome(RateLimited)
	WasOverload   Outcome = Outcome(Overloaded)
	WasLost       Outcome = Outcome(Disconnected)
	GaveNoAnswer  Outcome = Outcome(NoAnswer)
	WasCutOff     Outcome = Outcome(CutOff)
	WasOverflow   Outcome = Outcome(ContextOverflow)
	WasTimedOut   Outcome = Outcome(TimedOut)
	WasKilled     Outcome = Outcome(Killed)
	HasCrashed    Outcome = Outcome(Crashed)
	NotKnown      Outcome = Outcome(Unknown) // only in recorded input
)

var endedAs = map[Ending]Outcome{
	NoAnswer:        GaveNoAnswer,
	CutOff:          WasCutOff,
	UsageLimit:      WasUsageLimit,
	RateLimited:     WasRate,
	Overloaded:      WasOverload,
	Disconnected:    WasLost,
	Auth:            WasAuth,
	Misconfigured:   WasConfig,
	ContextOverflow: WasOverflow,
	TurnLimit:       SelfStopped,
	SelfLoop:        SelfStopped,
	TimedOut:        WasTimedOut,
	Killed:          WasKilled,
	Crashed:         HasCrashed,
	Unknown:         NotKnown,
}

func Outcomes() []Outcome {
	all := []Outcome{
		WorkVerified, WorkUnverified, VerifyFailed, NoChange, Answered, Planned, Asked, Declined,
		HasSecret, HasConflict, OnlyLeftOut, EditLoop, OutOfBudget, NotPermitted, Interrupted, Cancelled, FellSilent,
	}
	for _, o := range endedAs {
		all = append(all, o)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Meaning describes an outcome and the rules that follow, for docs/verdicts.md.
type Meaning struct{ Means, Follows string }

func (o Outcome) Meaning() Meaning { return meanings[o] }

var meanings = map[Outcome]Meaning{
	WorkVerified:   {"tests were counted and pass", "`done`"},
	WorkUnverified: {"nothing failed that passed on the base, but the work is not verified", "`done`, or once `still_failing`"},
	VerifyFailed:   {"a verify command failed", "`verify_failed`, `escalate_effort`, `stagnation` or `verify_broken`"},
	NoChange:       {"it ended well and changed nothing", "`done` if earlier work is kept, else `no_change`"},
	Answered:       {"a question was answered", "`answered`"},
	Planned:        {"a plan was made", "`planned`"},
	Asked:          {"the agent asked something and changed nothing", "`question`"},
	Declined:       {"the agent declined the task and changed nothing", "`declined`"},
	HasSecret:      {"the change holds what looks like a secret; nothing was committed", "`secret`"},
	HasConflict:    {"conflict markers of the base are left; nothing was pushed", "`conflict`"},
	OnlyLeftOut:    {"the only changed files stay out of commits", "`done` if earlier work is kept, else `left_out`"},
	EditLoop:       {"the edits went in circles", "`edit_loop`, without a change `no_progress`"},
	OutOfBudget:    {"a budget ended it", "`budget`"},
	NotPermitted:   {"no requester may write any more; nothing was pushed", "`revoked`"},
	Interrupted:    {"Pawl or its machine interrupted it", "`interrupted`"},
	Cancelled:      {"a user stopped it or closed the thread", "`cancelled` or `closed`"},
	FellSilent:     {"the agent showed no sign of life", "`silent`"},
	SelfStopped:    {"it repeated a call, or reached its CLI's limit of turns", unfinished},
	WasUsageLimit:  {"money, plan or quota is used up", "`usage_limit`"},
	WasAuth:        {"the login was refused", "`auth`: another account, else stop"},
	WasConfig:      {"it cannot work as configured, such as with an unknown model", "`misconfigured`: another account, else stop"},
	WasRate:        {"too many requests at once", "`transient`"},
	WasOverload:    {"the provider is busy", "`transient`"},
	WasLost:        {"the connection to the provider failed", "`transient`"},
	GaveNoAnswer:   {"the model answered nothing, or nothing but prose", "`no_answer`, then `progress` or `no_progress`"},
	WasCutOff:      {"the output stops in the middle of the work", unfinished},
	WasOverflow:    {"the context was too long for the model", unfinished},
	WasTimedOut:    {"its time ran out", unfinished},
	WasKilled:      {"a signal ended it", unfinished},
	HasCrashed:     {"any other failure", unfinished},
	NotKnown:       {"a recording does not show the outcome", "nothing; only recordings have it"},
}

const unfinished = "`progress` or `no_progress`"

// BrokenOff reports whether Pawl or a user ended the attempt early.
func (o Outcome) BrokenOff() bool {
	return slices.Contains([]Outcome{Interrupted, Cancelled, NotPermitted}, o)
}

// Words formats the outcome for a sentence.
func (o Outcome) Words() string { return strings.ReplaceAll(string(o), "_", " ") }

// Passes reports whether the outcome is a provider's temporary refusal.
func (o Outcome) Passes() bool { return slices.Contains([]Outcome{WasRate, WasOverload, WasLost}, o) }

// Work reports whether the attempt left work and broke no command that passed before.
func (o Outcome) Work() bool { return o == WorkVerified || o == WorkUnverified }

// Stored translates a stored outcome into today's words. Until November 2026 "edited" meant all kept work. "loop"
// included loops that the CLI ended, "answered" included plans, and "timed_out" included silence.
func (r Receipt) Stored(p Purpose) Outcome {
	switch {
	case r.Outcome == "edited":
		return r.work()
	case r.Outcome == "loop" && r.Ending == SelfLoop, r.Outcome == "turn_limit":
		return r.ownEnd()
	case r.Outcome == "loop":
		return EditLoop
	case r.Outcome == Answered && p == ToPlan:
		return Planned
	case r.Outcome == WasTimedOut && r.Silent != "":
		return FellSilent
	}
	return r.Outcome
}

func (r Receipt) ownEnd() Outcome {
	if r.Paused || r.Budget != "" {
		return OutOfBudget
	}
	return SelfStopped
}

// Came computes the outcome from the receipt. The first case that applies wins.
func (r Receipt) Came(p Purpose, l SeverityLimits) Outcome {
	if o, ok := r.refusedAccount(); ok {
		return o
	}
	if o, ok := r.answers(p); ok {
		return o
	}
	switch {
	case len(r.Leaks) > 0:
		return HasSecret
	case len(r.Conflicts) > 0:
		return HasConflict
	case l.Loop(r).Class != None:
		return EditLoop
	case r.Paused, r.Budget != "":
		return OutOfBudget
	case r.Silent != "" && r.Ending == TimedOut:
		return FellSilent
	case r.Ending != Completed && !r.finishedWork():
		return endedAs[r.Ending]
	case r.Failing():
		return VerifyFailed
	case r.Progress():
		return r.work()
	case len(r.LeftOut) > 0:
		return OnlyLeftOut
	}
	return NoChange
}

func (r Receipt) refusedAccount() (o Outcome, known bool) {
	switch r.Ending {
	case UsageLimit, Auth, Misconfigured:
		return endedAs[r.Ending], true
	default:
		return "", false
	}
}

func (r Receipt) answers(p Purpose) (o Outcome, known bool) {
	switch {
	case r.Ending != Completed:
		return "", false
	case p == ToAnswer:
		return Answered, true
	case p == ToPlan:
		return Planned, true
	case r.Progress() || len(r.LeftOut) > 0:
		return "", false
	case r.Declined != "":
		return Declined, true
	case r.Question != "":
		return Asked, true
	}
	return "", false
}

// finishedWork reports whether the work verifies although the CLI crashed. Verify commands outrank the exit code.
func (r Receipt) finishedWork() bool { return r.Ending == Crashed && r.verifiedWork() }

func (r Receipt) work() Outcome {
	if r.Verification().Verifies() {
		return WorkVerified
	}
	return WorkUnverified
}
