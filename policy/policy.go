package policy

import (
	"slices"
	"time"
)

// Facts is everything a decision may depend on: the folded log of one thread, what the shared tables say of
// its backends, the limits and the time. The zero value forbids every attempt, as the zero Limits do.
type Facts struct {
	Now     time.Time
	Purpose Purpose // what is being decided; set by Next
	Limits  Limits
	// Paused is why the operator or the repository forbids work, Closed why the thread cannot be worked on any more, and
	// Stopped who asked to stop and how, after the last request; each is empty where that is not so.
	Paused, Closed, Stopped string

	Attempts  []Attempt // of the thread that have ended, oldest first
	Handed    HandOver  // the attempt that was handed over and goes on; zero for none
	Raised    int       // the number of attempts before the last /pawl raise, which no longer count toward the daily limit
	Run       int       // the number of the current run
	Above     []Ledger  // what the levels above the thread have used; none bounds nothing
	Fresh     []Request // that no attempt has taken and that came after the run's last decision to stop
	SaidAgain bool      // Fresh says what the feedback before it said
	Review    Review    // of what the next attempt would take
	Backends  []Backend // that the repository may use, in order of preference
	Unable    string    // why a verify command cannot work on the base; empty where all can, or that is not known
	Pinned    string    // the backend that a person chose; empty for none
	// Choose chooses one of several backends that are free, by what was learned of them; the same options give the same
	// choice. Nil takes the configured order.
	Choose func([]Option) Choice
}

// Request is one accepted piece of feedback as far as decisions need it; By is the login of whoever gave it.
type Request struct {
	Seq     int64
	At      time.Time
	Command string // solve, retry, resume, escalate, or empty for a plain remark
	By      string
	Source  Source  // where it was said, which tells how long more of the same is awaited
	Purpose Purpose // of the attempt that it asks for
	// Generation counts the pieces of Pawl's own work that led to it without a person
	// who asked in a comment; Cause says what the last of them was.
	Generation int
	Cause      string
	Typed      bool // a person typed it, in words that were not said on the thread before
	Bot        bool // it is by a bot, which may order less
}

// Attempt is an attempt that has ended: the decision that it was started by and its receipt.
type Attempt struct {
	Receipt
	Decision           Decision
	Run                int
	Backend, Account   string
	StartedAt, EndedAt time.Time
	Resumable          bool   // the agent can continue the session, and knows the files as they are
	NewInput           bool   // feedback came that no earlier attempt had
	Review             Review // of that feedback
	GoesOn             bool   // that feedback only asks to go on
	Typed              bool   // some of that feedback a person typed, in new words
	ByChecks           bool   // that feedback was failing checks of others and nothing else
	SaidAgain          bool   // that feedback says what the feedback before it said
}

// Backend is one arm with what is held against it at the moment. The zero value is no backend.
type Backend struct {
	Name, Account string
	CanEscalate   bool   // it has an escalated effort
	Day           Ledger // of its account; none bounds nothing
	Breaker       Breaker
	Rest          Rest // after an edit loop
	Escalated     Rest // of the backend with its escalated effort
}

// Decision is what to do next, with the rule that spoke and its reasons.
type Decision struct {
	Action  Action    `json:"action"`
	Rule    Rule      `json:"rule"`
	Reasons Reasons   `json:"reasons"`
	Until   time.Time `json:"until,omitzero"` // when a wait ends; zero for every other action
	// Backend, Rung, Escalated and Different describe an attempt.
	Backend   string  `json:"backend,omitempty"`
	Rung      int     `json:"rung,omitempty"`
	Escalated bool    `json:"escalated,omitempty"`
	Different bool    `json:"different,omitempty"`
	Lifts     bool    `json:"lifts,omitempty"`  // a person's order ends the rest of the backend, which ran away
	Choice    *Choice `json:"choice,omitempty"` // how the backend was chosen; nil where there was no choice
	Purpose   Purpose `json:"purpose,omitempty"`
	Hint      string  `json:"hint,omitempty"` // what a person can do now
}

// rule is one policy. The zero Decision is that of a rule that has nothing to say.
type rule func(Facts) Decision

// first is what the first of some rules says that has something to say.
func (f Facts) first(rules ...rule) (d Decision) {
	for _, r := range rules {
		if d = r(f); d.Action != "" {
			break
		}
	}
	return d
}

// Next decides. The first rule that speaks wins; an attempt that a rule asks
// for is then admitted or turned into a wait or a stop.
//
// What was asked for one purpose does not end what was asked for another: each is decided by its own attempts, the one
// that somebody asked for first, and what goes on comes before what ends.
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

// weights tell which of several purposes that came to their ends is the one that people are told of.
var weights = map[Purpose]int{ToAnswer: 0, ToPlan: 1, ToChange: 2}

// purposes are those of the fresh requests, oldest first, and of the run's attempts, newest first.
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

// about are the facts for one purpose. All attempts stay, since the bounds count them.
func (f Facts) about(p Purpose) Facts {
	f.Purpose = p
	f.Fresh = slices.DeleteFunc(slices.Clone(f.Fresh), func(r Request) bool { return r.Purpose != p })
	if p != ToChange {
		f.Review, f.SaidAgain = Review{}, false
	}
	return f
}

// attempts are those of the purpose.
func (f Facts) attempts() []Attempt {
	return slices.DeleteFunc(slices.Clone(f.Attempts), func(a Attempt) bool { return a.Decision.Purpose != f.Purpose })
}

func (f Facts) next() Decision {
	d := f.first(
		stopped,
		done, // before declined, see endedWell
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

// reset is when the limit that ended the attempt ends; zero when unknown. A time
// that had passed when the attempt ended says nothing.
func (a Attempt) reset() time.Time {
	if at := a.Limit.Usable(); at.After(a.EndedAt) {
		return at
	}
	return time.Time{}
}

// last is the last attempt of the run; the zero Attempt where there is none.
func (f Facts) last() (Attempt, bool) {
	run := f.run()
	if len(run) == 0 {
		return Attempt{}, false
	}
	return run[len(run)-1], true
}

// result is the last attempt of the run, where no feedback has come since; else the zero Attempt.
func (f Facts) result() (Attempt, bool) {
	if len(f.Fresh) > 0 {
		return Attempt{}, false
	}
	return f.last()
}

// HandOver is an attempt that orderly stops of its server cut off.
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

// typed reports whether a person typed something new that no attempt has taken yet.
func (f Facts) typed() bool {
	return slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Typed })
}

// series are the attempts since a person last typed something new, over runs, with the one that this began.
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

// maxAskers is how many of those who asked are named.
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

// insists reports whether a person asked to try in spite of what failed before.
func (f Facts) insists() bool { return slices.ContainsFunc(f.Fresh, Request.insists) }

func (r Request) insists() bool { return CommandNamed(r.Command).Insists }

// orders reports whether a person, and not a bot that may ask for work, insists.
func (f Facts) orders() bool {
	return slices.ContainsFunc(f.Fresh, func(r Request) bool { return !r.Bot && r.insists() })
}

func stop(rule Rule, hint string, reasons ...string) Decision {
	return Decision{Action: DoStop, Rule: rule, Reasons: Because(rule, reasons...), Hint: hint}
}

func again(rule Rule, reasons ...string) Decision {
	return Decision{Action: DoAttempt, Rule: rule, Reasons: Because(rule, reasons...)}
}

// on is the attempt by a backend, any where that is empty, on a rung of the ladder.
func (d Decision) on(backend string, rung int) Decision {
	d.Backend, d.Rung, d.Escalated = backend, rung, rung == RungEffort
	return d
}

// Earlier is the one of two times that comes first.
func Earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

// Later is the one of two times that comes last.
func Later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
