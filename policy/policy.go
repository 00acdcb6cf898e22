package policy

import (
	"slices"
	"time"
)

// Facts is everything that a decision may depend on: the folded log of one thread, its backends' shared state, the
// limits and the time. The zero value forbids every attempt, as the zero Limits do.
type Facts struct {
	Now     time.Time
	Purpose Purpose // what is being decided; set by Next
	Limits  Limits
	// Paused is why the operator or the repository forbids work. Closed is why the thread cannot be worked on any
	// more. Stopped says who asked to stop after the last request. Each is empty if it does not apply.
	Paused, Closed, Stopped string

	Attempts  []Attempt // the thread's finished attempts, oldest first
	Handed    HandOver  // the attempt that was handed over and continues; zero for none
	Raised    int       // the number of attempts before the last /pawl raise, which no longer count toward the daily limit
	Run       int       // the number of the current run
	Above     []Ledger  // the ledgers of the global levels; empty for no limit
	Fresh     []Request // requests that no attempt has taken, after the run's last decision to stop
	SaidAgain bool      // Fresh repeats the feedback before it
	Review    Review    // the review remarks that the next attempt would take
	Backends  []Backend // the repository's backends, in order of preference
	Unable    string    // why a verify command cannot work on the base; empty if all can, or if unknown
	Pinned    string    // the backend that a user chose; empty for none
	// Choose picks one of several free backends by their rewards; the same options give the same choice. Nil
	// takes the configured order.
	Choose func([]Option) Choice
}

// Request is an accepted piece of feedback, as far as decisions need it. By is its author's login.
type Request struct {
	Seq     int64
	At      time.Time
	Command string // solve, retry, resume, escalate, or empty for a plain remark
	By      string
	Source  Source  // where it was written, which decides how long to wait for more
	Purpose Purpose // of the attempt to start
	// Generation counts the pieces of Pawl's own work that led to it without a user's comment. Cause names the last
	// one.
	Generation int
	Cause      string
	Typed      bool // a user typed it, in words that are new on the thread
	Bot        bool // a bot wrote it, and bots may command less
}

// Attempt is a finished attempt: the decision that started it, and its receipt.
type Attempt struct {
	Receipt
	Decision           Decision
	Run                int
	Backend, Account   string
	StartedAt, EndedAt time.Time
	Resumable          bool   // the session can be continued, and the files are as it knows them
	NewInput           bool   // it had feedback that no earlier attempt had
	Review             Review // in that feedback
	GoesOn             bool   // the feedback only asks to go on
	Typed              bool   // a user typed some of it, in new words
	ByChecks           bool   // the feedback is failing checks only
	SaidAgain          bool   // the feedback repeats the feedback before it
}

// Backend is one arm with what holds it back now. The zero value is no backend.
type Backend struct {
	Name, Account string
	CanEscalate   bool
	Day           Ledger // of its account; zero for no limit
	Breaker       Breaker
	Rest          Rest // after an edit loop
	Escalated     Rest // the cooldown of the escalated effort
}

// Decision is what to do next, with its rule and reasons.
type Decision struct {
	Action  Action    `json:"action"`
	Rule    Rule      `json:"rule"`
	Reasons Reasons   `json:"reasons"`
	Until   time.Time `json:"until,omitzero"` // when a wait ends; else zero
	// Backend, Rung, Escalated and Different describe an attempt.
	Backend   string  `json:"backend,omitempty"`
	Rung      int     `json:"rung,omitempty"`
	Escalated bool    `json:"escalated,omitempty"`
	Different bool    `json:"different,omitempty"`
	Lifts     bool    `json:"lifts,omitempty"`  // a user's command ends the cooldown of a backend that ran away
	Choice    *Choice `json:"choice,omitempty"` // nil if there was no choice
	Purpose   Purpose `json:"purpose,omitempty"`
	Hint      string  `json:"hint,omitempty"` // what a user can do now
}

// rule is one policy. The zero Decision means that the rule does not apply.
type rule func(Facts) Decision

func (f Facts) first(rules ...rule) (d Decision) {
	for _, r := range rules {
		if d = r(f); d.Action != "" {
			break
		}
	}
	return d
}

// Next decides. The first rule that applies wins. If it asks for an attempt, admit starts it or turns it into a
// wait or a stop.
//
// Each purpose is decided by its own attempts, the earliest request first. Decisions that continue come before
// decisions that end.
func Next(f Facts) (d Decision) {
	for i, p := range f.purposes() {
		one := f.about(p).next()
		one.Purpose = p
		if one.Action == DoAttempt || one.Action == DoWait {
			return one
		}
		if i > 0 && weights[p] < weights[d.Purpose] {
			continue
		}
		if d.Action == DoStop && d.Rule != one.Rule {
			one.Reasons = append(one.Reasons, d.Reasons...)
		}
		d = one
	}
	return d
}

// weights order the purposes: users see the decision of the finished purpose with the largest weight.
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

// about selects the facts for one purpose. All attempts stay, since the limits count them.
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
		done, // before declined; see endedWell
		declined,
		answered,
		restarts,
		above,
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
	return f.admit(d)
}

// reset is when the limit that ended the attempt ends; zero if unknown, or if it had passed by then.
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

// result is the run's last attempt if no feedback has come since.
func (f Facts) result() (Attempt, bool) {
	if len(f.Fresh) > 0 {
		return Attempt{}, false
	}
	return f.last()
}

// HandOver is an attempt that server shutdowns cut off.
type HandOver struct {
	Times int       // in a row
	At    time.Time // the last time
	Used  Spent     // so far
}

func (f Facts) run() []Attempt {
	all := f.attempts()
	i := len(all)
	for i > 0 && all[i-1].Run == f.Run {
		i--
	}
	return all[i:]
}

// typed reports whether a user typed something new that no attempt has taken.
func (f Facts) typed() bool {
	return slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Typed })
}

// series lists the attempts since a user last typed something new, over runs, with the one that this started.
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

// maxAskers is how many of the users who asked are named.
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

// forced reports whether a request forces an attempt after failures.
func (f Facts) forced() bool { return slices.ContainsFunc(f.Fresh, Request.forced) }

func (r Request) forced() bool { return CommandNamed(r.Command).Forces }

// orders reports whether a user, and not a bot that may ask for work, forces an attempt.
func (f Facts) orders() bool {
	return slices.ContainsFunc(f.Fresh, func(r Request) bool { return !r.Bot && r.forced() })
}

func stop(rule Rule, hint string, reasons ...string) Decision {
	return Decision{Action: DoStop, Rule: rule, Reasons: Because(rule, reasons...), Hint: hint}
}

func again(rule Rule, reasons ...string) Decision {
	return Decision{Action: DoAttempt, Rule: rule, Reasons: Because(rule, reasons...)}
}

// on sets the attempt's backend, empty for any, and its rung.
func (d Decision) on(backend string, rung int) Decision {
	d.Backend, d.Rung, d.Escalated = backend, rung, rung == RungEffort
	return d
}

// Earlier is the earlier of two times.
func Earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

// Later is the later of two times.
func Later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
