package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// world simulates the parts of the real solver that decisions depend on, without effects: the log's fold, the wake-ups and
// the shared tables of threads that share backends. It checks every decision (see world.check).
type world struct {
	t         failer
	now       time.Time
	limits    Limits
	backends  []Backend // the configured backends; their state is in the other fields
	breakers  map[string]Breaker
	cooldowns map[string]Cooldown
	accounts  map[string]*ledger
	threads   []*simThread
	parts     bool // whether some remarks arrive in parts, like reviews
}

// failer is the part of *testing.T and *rapid.T that the simulation needs.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

var _ failer = (*testing.T)(nil)

// ledger is the test's own record of an account, independent of the policy's breaker.
type ledger struct {
	limits int       // usage limits since the last success or rejected login
	at     time.Time // the time of the last of these limits
	reset  time.Time // the last reported reset that was in the future when it was reported
}

// simThread is the fold of one thread.
type simThread struct {
	seq      int64
	run      int
	open     bool
	seen     int64 // the newest request that the last ending decision took into account
	feedback []simFeedback
	stopped  string
	closed   string
	paused   string
	pinned   string
	attempts []Attempt // the last one may be running
	last     Decision
	began    []start
}

type simFeedback struct {
	Request
	taken bool
}

// start is the state at the start of an attempt, for later checks.
type start struct {
	Decision
	at  time.Time
	run int
}

func newWorld(t failer, l Limits, threads int, backends ...Backend) *world {
	w := &world{t: t, now: noon, limits: l, backends: backends,
		breakers: map[string]Breaker{}, cooldowns: map[string]Cooldown{}, accounts: map[string]*ledger{}}
	for _, b := range backends {
		w.accounts[b.Account] = &ledger{}
	}
	for range threads {
		w.threads = append(w.threads, &simThread{})
	}
	return w
}

// say adds a user's comment. Sometimes its words are not new.
func (w *world) say(s *simThread, command string) {
	if !s.open {
		s.run++
		s.open = true
	}
	s.seq++
	s.stopped = ""
	source := FromComment
	if w.parts && command == "" {
		source = []Source{FromComment, FromComment, FromReview, FromComment, FromCheckRun}[s.seq%5]
	}
	s.feedback = append(s.feedback, simFeedback{Request: Request{Seq: s.seq, At: w.now, Command: command, By: "alice", Source: source,
		Typed: source != FromCheckRun && s.seq%4 != 3}})
	w.step(s)
}

// stop and close also end the running attempt, like the solver.
func (w *world) stop(s *simThread) {
	s.stopped = "bob asked to stop"
	w.end(s, Attempt{Receipt: Receipt{Ending: Killed, Outcome: Cancelled}})
}

func (w *world) close(s *simThread) {
	s.closed = "the thread was closed by bob"
	w.end(s, Attempt{Receipt: Receipt{Ending: Killed, Outcome: Cancelled}})
}

// pass lets time pass and wakes all threads, because wake-ups may come early.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, s := range w.threads {
		w.step(s)
	}
}

func (s *simThread) running() bool {
	n := len(s.attempts)
	return n > 0 && s.attempts[n-1].EndedAt.IsZero()
}

// end ends the running attempt, if there is one, and takes the next step.
func (w *world) end(s *simThread, how Attempt) {
	if s.running() {
		a := &s.attempts[len(s.attempts)-1]
		how.N = a.N
		a.EndedAt, a.Receipt = w.now, how.apart().Receipt
		if a.Outcome == "" {
			a.Outcome = a.Came(a.Decision.Purpose, w.limits.Severity)
		}
		w.breakers[a.Account] = w.breakers[a.Account].After(a.Ending, a.Limit.Usable(), a.StartedAt, w.now)
		w.accounts[a.Account].note(*a, w.now)
		if a.Outcome == EditLoop {
			v := w.limits.Severity.Judge(a.Edits)
			w.cooldowns[a.Backend] = Cooldown{Class: v.Class, At: w.now, Until: w.now.Add(v.Cooldown)}.After(w.cooldowns[a.Backend])
		}
	}
	w.step(s)
}

func (l *ledger) note(a Attempt, now time.Time) {
	switch a.Ending {
	case UsageLimit:
		l.limits++
		l.at = now
		if at := a.Limit.Usable(); at.After(now) {
			l.reset = at
		}
	case Completed, Auth:
		if a.Ending == Completed && a.StartedAt.Before(l.at) {
			return // the attempt may have received its last answer before the limit
		}
		*l = ledger{}
	}
}

func (s *simThread) fresh() []Request {
	var fresh []Request
	for _, f := range s.feedback {
		if !f.taken && f.Seq > s.seen {
			fresh = append(fresh, f.Request)
		}
	}
	return fresh
}

func (w *world) facts(s *simThread) Facts {
	f := Facts{Now: w.now, Limits: w.limits, Paused: s.paused, Closed: s.closed, Stopped: s.stopped,
		Attempts: slices.Clone(s.attempts), Run: s.run, Fresh: s.fresh(), Pinned: s.pinned}
	for _, b := range w.backends {
		b.Breaker = w.breakers[b.Account]
		b.Cooldown.Until, b.Cooldown.Class = w.cooldowns[b.Name].Until, w.cooldowns[b.Name].Class
		f.Backends = append(f.Backends, b)
	}
	return f
}

// step takes the next decision, unless an attempt runs or there is no request.
func (w *world) step(s *simThread) {
	if s.running() || !s.open {
		return
	}
	f := w.facts(s)
	d := Next(f)
	w.check(s, f, d)
	s.last = d
	switch d.Action {
	case DoAttempt:
		i := slices.IndexFunc(w.backends, func(b Backend) bool { return b.Name == d.Backend })
		s.attempts = append(s.attempts, Attempt{NewInput: len(f.Fresh) > 0, Typed: slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Typed }), Receipt: Receipt{N: len(s.attempts) + 1}, Decision: d, Run: s.run, Backend: d.Backend, Account: w.backends[i].Account, StartedAt: w.now})
		if d.Lifts {
			w.cooldowns[d.Backend] = Lifted(w.now)
		}
		s.began = append(s.began, start{Decision: d, at: w.now, run: s.run})
		for i := range s.feedback {
			s.feedback[i].taken = true
		}
	case DoStop, DoDone, DoAsk:
		s.open, s.seen = false, s.seq
	}
}

// until lets time pass until the thread's wait has ended.
func (w *world) until(s *simThread) {
	w.t.Helper()
	if s.last.Action != DoWait || !s.last.Until.After(w.now) {
		w.t.Fatalf("the thread does not wait: %+v", s.last)
	}
	w.pass(s.last.Until.Sub(w.now))
}

// stands describes a thread's state in messages.
func (s *simThread) stands() string {
	return fmt.Sprintf("run %d, open %t, %d attempts, last decision %s by %s: %q", s.run, s.open, len(s.attempts), s.last.Action, s.last.Rule, s.last.Reasons)
}
