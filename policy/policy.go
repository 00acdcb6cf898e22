package policy

import (
	"fmt"
	"slices"
	"time"
)

// Facts are a decision's inputs: one thread's folded log, its backends' shared state, the limits and the time. The
// zero value forbids every attempt.
type Facts struct {
	Now     time.Time
	Purpose Purpose // what is being decided; set by Next
	Limits  Limits
	// Paused is why the operator or the repository forbids work. Closed is why the thread cannot continue. Stopped says
	// who stopped the run after the last request. Each is empty if it does not apply.
	Paused, Closed, Stopped string

	Attempts     []Attempt // the thread's finished attempts, oldest first
	Handover     Handover  // the attempt that was handed over and continues
	Raised       int       // number of attempts before the last /pawl raise; the daily limits ignore them
	Run          int       // the number of the current run
	GlobalLimits []Ledger  // the global levels' ledgers; empty for no limit
	Fresh        []Request // requests since the run's last stop that no attempt has picked up
	SaidAgain    bool      // Fresh repeats earlier feedback
	Review       Review    // review remarks for the next attempt
	Watch        Watch     // the watch of the pull request
	RedTests     []string  // tests that failed in other Apps' checks, for the next attempt
	Backends     []Backend // the repository's backends in order of preference, one entry per account
	Unable       string    // why a verify command cannot work on the base; empty if all can or if unknown
	Pinned       string    // the backend that a user chose; empty for none
	// Choose picks a free backend by rewards; equal options give the same choice. Nil means the configured order.
	Choose func([]Option) Choice
}

// Request is accepted feedback that asks for work. By is its author's login.
type Request struct {
	Seq     int64
	At      time.Time
	Command string // such as solve or retry; empty for a plain remark
	By      string
	Source  Source  // decides how long to wait for more feedback
	Purpose Purpose // of the attempt to start
	// Generation counts the steps of Pawl's own work that led here without a user's comment. Cause names the last
	// step.
	Generation int
	Cause      string
	Typed      bool // a user typed it in words that are new on the thread
	Bot        bool // a bot wrote it; its command overrides fewer holds
	Watched    bool // the request asks for work only because of a watch
	Standing   bool // every part of the request is older than the watch
}

// Attempt is a finished attempt: its decision and its receipt.
type Attempt struct {
	Receipt
	Decision           Decision
	Run                int
	Backend, Account   string
	StartedAt, EndedAt time.Time
	Resumable          bool     // the session and its files are unchanged
	NewInput           bool     // the attempt had new feedback
	Review             Review   // review remarks in the new feedback
	GoesOn             bool     // the feedback only asks to continue
	Typed              bool     // a user typed part of the feedback in new words
	ByUser             bool     // part of the feedback is a user's; see Request.ByUser
	ByChecks           bool     // the feedback is failing checks only
	SaidAgain          bool     // the feedback repeats earlier feedback
	RedTests           []string // tests that failed in the feedback's checks
}

// Backend is a configured backend on one of its accounts, with the limits of both. The zero value means none.
type Backend struct {
	Name, Account string
	CanEscalate   bool
	Day           Ledger // the account's ledger; zero for no limit
	Breaker       Breaker
	Meters        []Meter  // the account's usage windows
	Running       int      // the number of attempts that other threads run on the account now
	Cooldown      Cooldown // the cooldown after an edit loop
	Escalated     Cooldown // the cooldown of the escalated effort
}

type Decision struct {
	Action  Action    `json:"action"`
	Rule    Rule      `json:"rule"`
	Reasons Reasons   `json:"reasons"`
	Until   time.Time `json:"until,omitzero"` // the end of a wait; else zero
	// The fields below describe the next attempt.
	Backend   string  `json:"backend,omitempty"`
	Account   string  `json:"account,omitempty"`
	Rung      int     `json:"rung,omitempty"`
	Escalated bool    `json:"escalated,omitempty"`
	Different bool    `json:"different,omitempty"`
	Lifts     bool    `json:"lifts,omitempty"`  // a user's command ends the cooldown of a runaway backend
	Choice    *Choice `json:"choice,omitempty"` // nil if there was no choice
	Purpose   Purpose `json:"purpose,omitempty"`
	Round     int     `json:"round,omitempty"` // the watch's round since a user last typed something new; 0 without a watch
	Hint      string  `json:"hint,omitempty"`  // what a user can do now
}

type rule func(Facts) Decision

func (f Facts) first(rules ...rule) (d Decision) {
	for _, r := range rules {
		if d = r(f); d.Action != "" {
			break
		}
	}
	return d
}

// Next returns the decision of the first rule that applies. If the rule asks for an attempt, admit starts it, delays
// it or stops.
//
// Next decides each purpose separately, starting with the oldest request's. An attempt or a wait wins over an end. A
// wait for headroom depends on who asks, so Next still considers later purposes.
func Next(f Facts) (d Decision) {
	var held []Decision
	for i, p := range f.purposes() {
		one := f.about(p).next()
		one.Purpose = p
		switch {
		case one.Action == DoAttempt:
			return one
		case one.Action == DoWait && one.Rule == RuleHeadroom:
			held = append(held, one)
			continue
		case one.Action == DoWait:
			return f.soonest(append(held, one))
		case i > 0 && weights[p] < weights[d.Purpose]:
			continue
		}
		if d.Action == DoStop && d.Rule != one.Rule {
			one.Reasons = append(one.Reasons, d.Reasons...)
		}
		d = one
	}
	if len(held) > 0 {
		return f.soonest(held)
	}
	return d
}

// soonest returns the wait that Pawl checks again first.
func (f Facts) soonest(waits []Decision) Decision {
	return slices.MinFunc(waits, func(a, b Decision) int { return f.nextLook(a.Until).Compare(f.nextLook(b.Until)) })
}

// weights order the purposes. Users see the decision of the heaviest finished purpose.
var weights = map[Purpose]int{ToAnswer: 0, ToPlan: 1, ToChange: 2}

// purposes lists the purposes of the fresh requests, oldest first, then of the run's attempts, newest first.
func (f Facts) purposes() (all []Purpose) {
	add := func(p Purpose) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, t := range f.Fresh {
		add(t.Purpose)
	}
	for _, a := range slices.Backward(f.Attempts) {
		if a.Run == f.Run {
			add(a.Decision.Purpose)
		}
	}
	if len(all) == 0 {
		add(ToChange)
	}
	return all
}

// about selects the facts for one purpose, but keeps all attempts: the limits count them.
func (f Facts) about(p Purpose) Facts {
	f.Purpose = p
	f.Fresh = slices.DeleteFunc(slices.Clone(f.Fresh), func(r Request) bool { return r.Purpose != p })
	if p != ToChange {
		f.Review, f.SaidAgain = Review{}, false
	}
	return f
}

func (f Facts) attempts() []Attempt {
	return slices.DeleteFunc(slices.Clone(f.Attempts), func(a Attempt) bool { return a.Decision.Purpose != f.Purpose })
}

func (f Facts) next() Decision {
	d := f.first(
		stopped,
		done, // must precede declined; see endedWell
		unwatched,
		declined,
		answered,
		watching,
		restarts,
		globalLimits,
		failedChecks,
		budget,
		twoDays,
		day,
		generations,
		unattended,
		convergence,
		needsPerson,
		usageLimit,
		transient,
		silence,
		editLoop,
		stagnation,
		noAnswer,
		noProgress,
		stillFailing,
		ladder,
		feedback,
	)
	if d.Action == "" {
		return Decision{Action: DoDone, Rule: RuleNothingLeft, Reasons: Because(RuleNothingLeft, "nothing is asked for")}
	}
	if d.Action != DoAttempt {
		return d
	}
	if stop := f.unable(); stop.Action != "" {
		return stop
	}
	d.Reasons = append(d.Reasons, Because(RuleFeedback, f.askers()...)...)
	if d.Round = f.round(); d.Round > 0 {
		d.Reasons = append(d.Reasons, Because(RuleWatch, fmt.Sprintf("round %d of %d of the watch", d.Round, f.Watch.Rounds))...)
	}
	return f.admit(d)
}

// reset returns when the attempt's limit ends; zero if unknown, or if it passed before the attempt ended.
func (a Attempt) reset() time.Time {
	if at := a.Limit.Usable(); at.After(a.EndedAt) {
		return at
	}
	return time.Time{}
}

func (f Facts) last() (Attempt, bool) {
	run := f.run()
	if len(run) == 0 {
		return Attempt{}, false
	}
	return run[len(run)-1], true
}

// result returns the run's last attempt if no feedback followed.
func (f Facts) result() (Attempt, bool) {
	if len(f.Fresh) > 0 {
		return Attempt{}, false
	}
	return f.last()
}

// Handover counts a run's attempts that server shutdowns cut off.
type Handover struct {
	Times int       // consecutive handovers
	At    time.Time // the last handover
	Used  Spent     // the attempt's use so far
	// Backend and Account name the session to continue; empty without one.
	Backend, Account string
}

func (f Facts) run() []Attempt {
	all := f.attempts()
	i := len(all)
	for i > 0 && all[i-1].Run == f.Run {
		i--
	}
	return all[i:]
}

// typed reports whether a user typed something new that no attempt has picked up.
func (f Facts) typed() bool {
	return slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Typed })
}

// series lists the attempts since a user last typed something new, across runs.
func (f Facts) series() []Attempt {
	if f.typed() {
		return nil
	}
	for i, a := range slices.Backward(f.Attempts) {
		if a.Typed {
			return f.Attempts[i:]
		}
	}
	return f.Attempts
}

func (f Facts) command(name string) bool {
	return slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Command == name })
}

// maxAskers limits the requesters that the reasons name.
const maxAskers = 5

func (f Facts) askers() []string {
	var all []string
	for _, t := range f.Fresh {
		if t.By == "" {
			continue
		}
		who := "a remark by " + t.By
		switch {
		case t.Source == FromBase:
			who = "the base moved"
		case t.Command == "ask":
			who = "a question by " + t.By
		case t.Command != "":
			who = t.By + " asked to " + t.Command
		}
		if !slices.Contains(all, who) && len(all) < maxAskers {
			all = append(all, who)
		}
	}
	return all
}

func (f Facts) forced() bool { return slices.ContainsFunc(f.Fresh, Request.forced) }

func (r Request) forced() bool { return CommandNamed(r.Command).Forces }

// commanded reports whether a user, not a bot, forces an attempt.
func (f Facts) commanded() bool {
	return slices.ContainsFunc(f.Fresh, func(r Request) bool { return !r.Bot && r.forced() })
}

func stop(rule Rule, hint string, reasons ...string) Decision {
	return Decision{Action: DoStop, Rule: rule, Reasons: Because(rule, reasons...), Hint: hint}
}

func again(rule Rule, reasons ...string) Decision {
	return Decision{Action: DoAttempt, Rule: rule, Reasons: Because(rule, reasons...)}
}

// on sets the attempt's backend and rung. An empty backend means any.
func (d Decision) on(backend string, rung int) Decision {
	d.Backend, d.Rung, d.Escalated = backend, rung, rung == RungEffort
	return d
}

// with sets the attempt's backend and account.
func (d Decision) with(b Backend) Decision {
	d.Backend, d.Account = b.Name, b.Account
	return d
}

// after names a backend that follows an attempt, with its account if only the account changes.
func (b Backend) after(a Attempt) string {
	if b.Name == a.Backend {
		return b.Name + " on account " + b.Account
	}
	return b.Name
}

func Earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func Later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
