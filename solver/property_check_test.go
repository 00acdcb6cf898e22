package solver_test

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// grace allows for decisions on stale facts: each call between reading the facts and the attempt takes some
// milliseconds.
const grace = 2 * time.Second

// books holds the test's own record of accounts and threads, independent of the program's.
type books struct {
	mu       sync.Mutex
	accounts map[string]*ledger
	calls    map[thread.ID]call      // running attempts
	steps    map[stepOf]int          // number of running steps
	changed  map[thread.ID]time.Time // when the thread was closed or opened last
}

// ledger holds an account's answers: consecutive failures of one kind.
type ledger struct {
	kind  policy.Ending
	n     int
	reset time.Time
	at    time.Time
	// first is the thread whose agent reported the first failure. confirmed means that another thread's agent
	// reported the same while it applied.
	first     thread.ID
	confirmed bool
}

// stepOf is a node's step on a thread.
type stepOf struct {
	node   *node
	thread thread.ID
}

// call is a running attempt.
type call struct {
	node     *node
	account  string
	began    time.Time
	worked   time.Time    // the agent's end or the last push; zero before
	report   agent.Report // the agent's report
	reported bool         // the breaker has the report
}

func newBooks() books {
	return books{accounts: map[string]*ledger{}, calls: map[thread.ID]call{}, steps: map[stepOf]int{}, changed: map[thread.ID]time.Time{}}
}

func (b *books) account(name string) *ledger {
	if b.accounts[name] == nil {
		b.accounts[name] = &ledger{}
	}
	return b.accounts[name]
}

// appended checks a step's batch.
func (w *world) appended(n *node, t thread.ID, b thread.Batch) {
	if b.Breaker != nil && len(b.Events) == 0 {
		w.markReported(t)
	}
	for _, e := range b.Events {
		switch d := e.Data.(type) {
		case thread.Decided:
			w.note("%s: %s decides %s by %s until %s %q", n.name, t, d.Action, d.Rule, d.Until.Format(time.RFC3339), d.Reasons)
			w.checkWait(t, d)
		case thread.Started:
			w.note("%s: %s starts attempt %d on %s (%s) by %s", n.name, t, d.N, d.Backend, d.Account, d.Decision.Rule)
			w.checkStart(n, t, d)
		case policy.Receipt:
			w.note("%s: %s ends attempt %d: %s %s %s", n.name, t, d.N, d.Ending, d.Outcome, d.Detail)
			w.checkEnd(n, t, d)
		}
	}
}

func (w *world) checkWait(t thread.ID, d thread.Decided) {
	switch {
	case d.Action != policy.DoWait:
	case d.Until.IsZero() && !slices.Contains(solver.ProbeRules(), d.Rule):
		w.fail("%s waits by %s without an end", t, d.Rule)
	case time.Until(d.Until) > 8*24*time.Hour:
		w.fail("%s waits by %s for %v", t, d.Rule, time.Until(d.Until))
	}
}

// typedFor returns the attempts that took newly typed words.
func typedFor(s thread.State) map[int]bool {
	typed, said := map[int]bool{}, map[string]bool{}
	for _, r := range s.Feedback {
		words := r.Command + " " + r.Text
		if r.Withdrawn == "" && !said[words] && r.By.Type == "User" && (strings.HasPrefix(string(r.Source), "comment") || strings.HasPrefix(string(r.Source), "review") || r.Source == policy.FromButton) {
			typed[r.Taken] = true
		}
		said[words] = true
	}
	return typed
}

func (w *world) checkStart(n *node, t thread.ID, a thread.Started) {
	s, now := w.fold(t), time.Now()
	alone, unattended, today, typed := 0, 0, 0, typedFor(s)
	for i, b := range s.Attempts {
		alone++
		if typed[b.N] {
			alone, unattended = 1, 0
		} else if slices.ContainsFunc(s.Feedback, func(f thread.Request) bool { return f.Taken == b.N }) {
			unattended++
		}
		if now.Sub(b.At) < 24*time.Hour {
			today++
		}
		if b.N != i+1 || i < len(s.Attempts)-1 && b.EndedAt.IsZero() {
			w.fail("%s: attempt %d starts, and number %d is %d and ended at %v", t, a.N, i+1, b.N, b.EndedAt)
		}
	}
	w.checkRepository(now)
	limits := w.config.Policy
	if unattended > limits.Unattended.MaxAttempts {
		w.fail("%s: events began %d attempts in a row without a person's new words; at most %d are allowed", t, unattended, limits.Unattended.MaxAttempts)
	}
	if alone > limits.Restarts.Max+1 || today > limits.Restarts.MaxPerThreadPerDay {
		w.fail("%s: %d attempts without a person's new words and %d in 24 hours; at most %d and %d are allowed", t, alone, today, limits.Restarts.Max+1, limits.Restarts.MaxPerThreadPerDay)
	}
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	defer func() { w.books.calls[t] = call{node: n, account: a.Account, began: now} }()
	if n.stoodStillAfter(now.Add(-grace)) {
		return // its facts were true when the node froze; the lease limits their age
	}
	if s.Stopped != "" && now.Sub(s.Stop.At) > grace {
		w.failHeld("%s: an attempt starts, and %s", t, s.Stopped)
	}
	if s.Closed != "" && now.Sub(w.books.changed[t]) > grace {
		w.failHeld("%s: an attempt starts, and %s", t, s.Closed)
	}
	w.checkAccount(s, t, a)
}

// checkAccount checks that the books allow an attempt on its account. The caller holds them.
func (w *world) checkAccount(s thread.State, t thread.ID, a thread.Started) {
	l, now := w.books.account(a.Account), time.Now()
	if l.n == 0 || now.Sub(l.at) <= grace {
		return
	}
	for other, c := range w.books.calls {
		if other != t && c.account == a.Account && c.began.Sub(l.at) > grace && (c.worked.IsZero() || now.Before(c.worked)) && !c.node.isDead() {
			w.failHeld("%s and %s both try account %s, which ended %s", t, other, a.Account, l.kind)
		}
	}
	resetPassed := !l.reset.IsZero() && !now.Before(l.reset)
	if l.n < w.config.Policy.UsageLimit.MaxConsecutive || resetPassed || !l.holdsFor(t) {
		return
	}
	switch {
	case !l.reset.IsZero():
		w.failHeld("%s: account %s is called after %d × %s before it resets at %v", t, a.Account, l.n, l.kind, l.reset)
	case !insists(s, a):
		w.failHeld("%s: account %s is called after %d × %s, and nobody asked to try", t, a.Account, l.n, l.kind)
	}
}

// checkRepository counts a day's attempts of all threads, which are in one repository.
func (w *world) checkRepository(now time.Time) {
	today := 0
	for _, th := range w.threads {
		for _, a := range w.fold(th.ID).Attempts {
			if now.Sub(a.At) < 24*time.Hour {
				today++
			}
		}
	}
	if most := w.config.Policy.Caps.PerRepositoryPerDay; today > most {
		w.fail("%d attempts on the repository in 24 hours; at most %d are allowed", today, most)
	}
}

// insists reports whether the attempt took a user's request to try despite failures.
func insists(s thread.State, a thread.Started) bool {
	return slices.ContainsFunc(s.Feedback, func(f thread.Request) bool {
		return f.Taken == a.N && slices.Contains([]string{"resume", "retry", "escalate"}, f.Command)
	})
}

// failHeld is fail for callers that hold the books.
func (w *world) failHeld(format string, args ...any) {
	w.books.mu.Unlock()
	defer w.books.mu.Lock()
	w.fail(format, args...)
}

func (n *node) stoodStillAfter(at time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.still.After(at)
}

func (w *world) checkEnd(n *node, t thread.ID, r policy.Receipt) {
	now, events, s := time.Now(), w.events(t), w.fold(t)
	a := s.Attempts[r.N-1]
	stop := time.Time{}
	for _, e := range events {
		switch {
		case e.Seq <= a.Seen:
		case s.Stopped != "" && s.Stop.Seq == e.Seq:
			stop = e.At
		}
	}
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	c := w.books.calls[t]
	delete(w.books.calls, t)
	if c.worked.IsZero() || c.worked.After(now) {
		c.worked = now
	}
	if since := n.reachable(); !stop.IsZero() && since.After(stop) {
		stop = since // a node that was cut off sees the stop only then
	}
	if !stop.IsZero() && c.worked.Sub(stop) > 5*time.Second && r.Outcome != policy.Cancelled && r.Outcome != policy.Interrupted {
		w.failHeld("%s: attempt %d ended %s, and worked %v after a stop", t, r.N, r.Outcome, c.worked.Sub(stop))
	}
	if c.reported {
		return
	}
	reset := time.Time{}
	if r.Limit != nil {
		reset = r.Limit.ResetsAt
	}
	w.books.account(a.Account).answer(t, r.Ending, reset, c.began)
}

// markReported marks an agent's ending as known to the breaker while the attempt continues.
func (w *world) markReported(t thread.ID) {
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	c := w.books.calls[t]
	if c.reported {
		return
	}
	c.reported = true
	w.books.calls[t] = c
	reset := time.Time{}
	if l := c.report.Limit; l != nil && !l.ResetsAt.IsZero() {
		reset = l.ResetsAt
	}
	w.books.account(c.account).answer(t, c.report.Ending, reset, c.began)
}

// answer records an account's answer to an attempt that began at a time.
func (l *ledger) answer(t thread.ID, ending policy.Ending, reset, began time.Time) {
	now := time.Now()
	switch ending {
	case policy.UsageLimit, policy.Auth:
		if l.kind != ending || l.isOld(t, now) {
			*l = ledger{kind: ending, first: t}
		}
		l.confirmed = l.confirmed || l.first != t
		l.n, l.at = l.n+1, now
		if reset.After(now) {
			l.reset = reset
		} else if !l.reset.After(now) {
			l.reset = time.Time{}
		}
	case policy.Completed:
		if !began.Before(l.at) {
			*l = ledger{}
		}
	}
}

// holdsFor reports whether the failures apply to a thread: its own agents reported them, or two threads' agents did.
func (l *ledger) holdsFor(t thread.ID) bool { return l.confirmed || l.first == t }

// isOld reports whether only one thread reported the failures and they have expired, so that they do not apply to
// others.
func (l *ledger) isOld(other thread.ID, now time.Time) bool {
	if l.holdsFor(other) {
		return false
	}
	until := l.reset
	if until.IsZero() {
		until = l.at.Add(policy.Day)
	}
	return !now.Before(until)
}

// worked records work for a thread's current attempt.
func (w *world) worked(t thread.ID) {
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	if c, runs := w.books.calls[t]; runs {
		c.worked = time.Now()
		w.books.calls[t] = c
	}
}

// stepping records the start of a node's step. After the last step on a thread has ended (hungUp), nothing of the
// thread runs on the node.
func (w *world) stepping(n *node, t thread.ID) (hungUp func()) {
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	at := stepOf{n, t}
	w.books.steps[at]++
	return func() {
		w.books.mu.Lock()
		defer w.books.mu.Unlock()
		if w.books.steps[at]--; w.books.steps[at] == 0 && w.books.calls[t].node == n {
			delete(w.books.calls, t)
		}
	}
}

func (w *world) events(t thread.ID) []thread.Event {
	events, err := w.store.Events(w.t.Context(), t, 0)
	if err != nil {
		w.fail("read the log of %s: %v", t, err)
	}
	return events
}

func (w *world) fold(t thread.ID) thread.State {
	s, err := thread.Fold(w.events(t))
	if err != nil {
		w.fail("fold %s: %v", t, err)
	}
	return s
}

// checkRest checks everything after the work has ended: only a user could start more.
func (w *world) checkRest() {
	for _, what := range w.github.twice() {
		w.fail("%s", what)
	}
	for _, th := range w.threads {
		w.checkThread(th.ID)
	}
}

func (w *world) checkThread(t thread.ID) {
	s := w.fold(t)
	started, ended, accepted := map[int]int{}, map[int]int{}, 0
	for i, e := range w.events(t) {
		if e.Seq != int64(i+1) {
			w.fail("%s: event %d has seq %d", t, i+1, e.Seq)
		}
		if e.Kind == thread.KindFeedback {
			accepted++
		}
	}
	for _, a := range s.Attempts {
		started[a.N]++
		if !a.EndedAt.IsZero() {
			ended[a.N]++
		}
	}
	for n := range started {
		if started[n] != 1 || ended[n] != 1 {
			w.fail("%s: attempt %d started %d times and ended %d times", t, n, started[n], ended[n])
		}
	}
	if s.Run > accepted {
		w.fail("%s: %d runs of %d accepted remarks", t, s.Run, accepted)
	}
	if !s.Tracked() {
		return
	}
	gone := strings.Contains(s.Closed, "uninstalled")
	switch {
	case s.Open():
		w.fail("%s is open and waits for nothing: %+v", t, s.Decision)
	case len(s.Fresh()) > 0:
		w.fail("%s: %d remarks were never looked at", t, len(s.Fresh()))
	case !gone && len(s.Questions) > 0:
		w.fail("%s: %d questions were not answered", t, len(s.Questions))
	case s.Closed == "" && s.Head != "" && s.Pull == 0:
		w.fail("%s: what was pushed has no pull request", t)
	}
	if gone {
		return
	}
	w.checkShown(t, s)
}

// checkShown compares what GitHub shows with the log.
func (w *world) checkShown(t thread.ID, s thread.State) {
	reader := &solver.Solver{Env: attempt.Env{Store: w.store, Config: w.config, Now: time.Now}}
	f, err := reader.View(w.t.Context(), t)
	if err != nil {
		w.fail("%s: %v", t, err)
		return
	}
	f.Now = s.At
	w.github.mu.Lock()
	defer w.github.mu.Unlock()
	for _, c := range w.github.checks {
		if !strings.Contains(c.ExternalID, t.String()) {
			continue
		}
		if c.Status != "completed" {
			w.fail("%s: check run %s on %.10s is left %s", t, c.Name, c.HeadSHA, c.Status)
		}
		for _, want := range checkrun.Checks(f) {
			if c.Name == want.Name && c.HeadSHA == s.Snapshot.HeadSHA && c.Conclusion != want.Conclusion {
				w.fail("%s: check run %s on %.10s concludes %s, want %s", t, c.Name, c.HeadSHA, c.Conclusion, want.Conclusion)
			}
		}
	}
	i := slices.IndexFunc(w.github.comments, func(c *comment) bool {
		return c.number == t.Number && strings.Contains(c.body, checkrun.StatusMarker(t.String()))
	})
	switch {
	case i < 0:
		w.fail("%s has no status comment", t)
	case f.Limit == nil && !strings.Contains(w.github.comments[i].body, checkrun.Comment(f)):
		// A limit's text counts the account's failures, which other threads change.
		w.fail("%s: the status comment is old:\n%s\nwant\n%s", t, w.github.comments[i].body, checkrun.Comment(f))
	}
}
