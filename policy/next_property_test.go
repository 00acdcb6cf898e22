package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy/simhash"
)

// check compares every decision of a simulation with the guarantees. It uses its own ledger of the accounts, not the policy's
// breakers.
func (w *world) check(s *simThread, f Facts, d Decision) {
	w.t.Helper()
	broken := func(what string) {
		w.t.Helper()
		w.t.Fatalf("%s\nat %s, %s\ndecision %+v\nfacts %+v", what, Clock(w.now), s.stands(), d, f)
	}
	if d.Rule == "" || len(d.Reasons) == 0 || slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Text == "" || r.Rule == "" }) {
		broken("a decision without a rule or a reason")
	}
	if words := d.Rule.Words(); d.Action == DoWait && words.Waits == "" || (d.Action == DoStop || d.Action == DoAsk) && words.Stops == "" {
		broken("a rule without the words for its decision")
	}
	if !slices.Contains(d.Rule.Words().Decides, d.Action) {
		broken("a rule decides what its row in docs/verdicts.md does not say")
	}
	before := f
	before.Attempts, before.Fresh, before.Backends = slices.Clone(f.Attempts), slices.Clone(f.Fresh), slices.Clone(f.Backends)
	if diff := cmp.Diff(d, Next(f)); diff != "" {
		broken("the same facts give another decision:\n" + diff)
	}
	if diff := cmp.Diff(before, f); diff != "" {
		broken("deciding changed the facts:\n" + diff)
	}
	switch d.Action {
	case DoAttempt:
		w.checkAttempt(s, f, d, broken)
	case DoWait:
		w.checkWait(f, d, broken)
	case DoStop, DoDone, DoAsk:
	default:
		broken("an unknown action")
	}
	if d.Action != DoWait && !d.Until.IsZero() {
		broken("something other than a wait has an end")
	}
	if d.Action != DoAttempt && d.Backend != "" {
		broken("something other than an attempt has a backend")
	}
}

func (w *world) checkAttempt(s *simThread, f Facts, d Decision, broken func(string)) {
	w.t.Helper()
	if f.Stopped != "" || f.Closed != "" || f.Paused != "" {
		broken("an attempt on a thread that is stopped, closed or paused")
	}
	i := slices.IndexFunc(f.Backends, func(b Backend) bool { return b.Name == d.Backend })
	if i < 0 {
		broken("an attempt on a backend that is not configured")
	}
	b := f.Backends[i]
	if d.Escalated && !b.CanEscalate {
		broken("an escalation that the backend does not have")
	}
	inRun, inDay, alone, byEvents := 0, 0, 0, 0
	for _, a := range f.Attempts {
		if alone++; a.Typed {
			alone, byEvents = 1, 0
		} else if a.NewInput {
			byEvents++
		}
		if a.Run == f.Run {
			inRun++
		}
		if a.StartedAt.After(w.now.Add(-24 * time.Hour)) {
			inDay++
		}
	}
	typed := slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Typed })
	if !typed && alone > f.Limits.Restarts.Max {
		broken("more restarts than there may be since a person typed something new")
	}
	if !typed && len(f.Fresh) > 0 && byEvents >= f.Limits.Unattended.MaxAttempts {
		broken("more attempts than events may begin without a person")
	}
	if inDay >= f.Limits.Restarts.MaxPerThreadPerDay {
		broken("more attempts than a thread may have in a day")
	}
	w.checkAccount(f, b, broken)
	if w.now.Before(b.Cooldown.Until) && !f.forced() {
		broken("an attempt on a backend that cools down")
	}
	if b.Cooldown.Class == Runaway && !f.commanded() {
		broken("an attempt on a backend that ran away, which no person ordered")
	}
	if inRun > 0 {
		if typed {
			alone = 0
		}
		w.checkRestart(f, d, b, alone, broken)
	} else if len(f.Fresh) == 0 {
		broken("a run begins although nobody asked")
	}
}

// checkAccount checks the guarantee about usage limits.
func (w *world) checkAccount(f Facts, b Backend, broken func(string)) {
	w.t.Helper()
	l := w.accounts[b.Account]
	ahead := w.now.Before(l.reset)
	switch {
	case l.limits >= f.Limits.UsageLimit.MaxConsecutive && ahead:
		broken("a call after too many usage limits in a row, before the known reset")
	case l.limits >= f.Limits.UsageLimit.MaxConsecutive && l.reset.IsZero() && !f.forced():
		broken("a call after too many usage limits in a row that no person asked for")
	case l.limits > 0 && ahead && f.Limits.UsageLimit.AutoContinue && !f.forced():
		broken("a call before a reset that can be waited for")
	case l.limits > 0 && ahead && len(f.Fresh) == 0:
		broken("a call before the reset that nobody asked for")
	}
}

// checkRestart checks the guarantee about restarts.
func (w *world) checkRestart(f Facts, d Decision, b Backend, n int, broken func(string)) {
	w.t.Helper()
	last := f.Attempts[len(f.Attempts)-1]
	if w.now.Sub(last.EndedAt) < Backoff(n, f.Limits.Restarts.BackoffAfter, f.Limits.Restarts.BackoffCap) {
		broken("a restart before its backoff is over")
	}
	if last.Progress() || len(f.Fresh) > 0 {
		return
	}
	switch {
	case last.Outcome == Interrupted:
	case d.Rule == "limit_reset" && last.Ending == UsageLimit && !w.now.Before(last.Limit.Usable()):
	case d.Different && !last.Decision.Different:
	case d.Rule == RuleStillFailing && last.Decision.Rule != RuleStillFailing:
	case d.Rule == "silent" && last.wentSilent() && len(inARow(f.run(), Attempt.wentSilent)) < maxSilences:
	case d.Rule == "transient" && last.Outcome.Passes() && refusals(f) < f.Limits.Transient.MaxConsecutive:
	case d.Rule == "escalate_effort" && d.Escalated && !last.Decision.Escalated:
	case d.Rung == RungAnswer && last.Ending == NoAnswer && !slices.ContainsFunc(f.run(), func(a Attempt) bool { return a.Decision.Rung == RungAnswer }):
	case b.Account != last.Account && (last.Ending == UsageLimit || last.Ending == Auth || last.Ending == Misconfigured):
	default:
		broken("a restart without progress, without feedback and on the same terms")
	}
}

// refusals counts the temporary refusals in a row directly before the last attempt.
func refusals(f Facts) (n int) {
	for i := len(f.Attempts) - 2; i >= 0 && f.Attempts[i].refused(); i-- {
		n++
	}
	return n
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (w *world) checkWait(f Facts, d Decision, broken func(string)) {
	w.t.Helper()
	if !d.Until.After(w.now) {
		broken("a wait that is over already")
	}
	var known time.Time
	for _, l := range w.accounts {
		if l.reset.After(known) {
			known = l.reset
		}
	}
	for _, a := range f.Attempts {
		if a.Limit.Usable().After(known) {
			known = a.Limit.Usable()
		}
	}
	most := map[Rule]time.Time{
		"backoff":     w.now.Add(f.Limits.Restarts.BackoffCap),
		"cooldown":    w.now.Add(f.Limits.Severity.SevereCooldown),
		"usage_limit": known,
		"gather":      w.now.Add(gatherReview),
		"daily_cap":   w.now.Add(Day),
		"budget":      w.now.Add(Day),
		"transient":   later(w.now.Add(f.Limits.Transient.BackoffCap), known),
		"interrupted": w.now.Add(longestHeldBack),
	}[d.Rule]
	if d.Until.After(most) {
		broken("a wait longer than its cap")
	}
}

// anyLimits draws the default limits, or small limits, which are reached more often.
func anyLimits(t *rapid.T) Limits {
	l := Defaults()
	if rapid.Bool().Draw(t, "small limits") {
		l.Restarts.Max = rapid.IntRange(0, 6).Draw(t, "max restarts")
		l.Restarts.MaxPerThreadPerDay = rapid.IntRange(0, 20).Draw(t, "max per day")
		l.Unattended.MaxAttempts = rapid.IntRange(0, 6).Draw(t, "max unattended")
		l.Restarts.BackoffAfter = rapid.IntRange(0, 3).Draw(t, "backoff after")
		l.UsageLimit.MaxConsecutive = rapid.IntRange(1, 4).Draw(t, "max limits")
		l.Stagnation.EscalateAfter = rapid.IntRange(1, 2).Draw(t, "escalate after")
		l.Ladder.VerifyRetries = rapid.IntRange(0, 2).Draw(t, "verify retries")
		l.Ladder.EscalateEffort = rapid.Bool().Draw(t, "escalate effort")
	}
	l.UsageLimit.AutoContinue = rapid.Bool().Draw(t, "auto continue")
	return l
}

// anyBackends draws up to three backends. Some share an account.
func anyBackends(t *rapid.T) []Backend {
	var all []Backend
	for _, name := range []string{"codex", "claude", "gemini"}[:rapid.IntRange(1, 3).Draw(t, "backends")] {
		all = append(all, Backend{Name: name, Account: rapid.SampledFrom([]string{"main", "spare", "third"}).Draw(t, "account of "+name),
			CanEscalate: rapid.Bool().Draw(t, name+" can escalate")})
	}
	return all
}

// anyMood draws the ending that is most frequent in a simulation; nil for none.
func anyMood(t *rapid.T) *Attempt {
	stuck := unverified()
	stuck.Evidence = far
	mood := rapid.SampledFrom([]Attempt{{}, {}, {}, unverified(), stuck, timedOut(), looping(), interruptedAttempt(), staleBase(), hung(), {Receipt: Receipt{Ending: Overloaded}}}).Draw(t, "mood")
	if mood.Ending == "" {
		return nil
	}
	return &mood
}

// anyEnd draws an attempt's ending. It is often a usage limit, because the incident began with one.
func anyEnd(t *rapid.T, now time.Time, mood *Attempt) Attempt {
	if mood != nil && rapid.IntRange(0, 3).Draw(t, "in the mood") > 0 {
		return *mood
	}
	a := Attempt{Receipt: Receipt{
		Ending: rapid.SampledFrom([]Ending{
			UsageLimit, UsageLimit, UsageLimit, Completed, Completed, NoAnswer, CutOff, RateLimited, Overloaded, Disconnected,
			Auth, Misconfigured, ContextOverflow, TurnLimit, SelfLoop, TimedOut, TimedOut, Killed, Crashed, "",
		}).Draw(t, "ending"),
		StartTree: "before", EndTree: map[bool]string{true: moved, false: "before"}[rapid.Bool().Draw(t, "progress")],
		Evidence: rapid.SampledFrom([]simhash.Print{0, 1, 0xff, far}).Draw(t, "evidence"),
		Change:   rapid.SampledFrom([]simhash.Print{0, 1, 0xff, far}).Draw(t, "change"),
	}}
	if a.Ending == TimedOut && rapid.Bool().Draw(t, "silent") {
		a.Silent = "15m"
	}
	switch {
	case a.Ending == "":
		a.Outcome, a.EndTree = Interrupted, a.StartTree
	case rapid.IntRange(0, 5).Draw(t, "edit loop") == 0:
		a.Edits = Edits{Operations: rapid.IntRange(40, 120).Draw(t, "edits"), MaxRepeat: rapid.IntRange(8, 30).Draw(t, "repeats")}
	case a.Ending == Completed:
		if !a.Progress() && rapid.Bool().Draw(t, "declined") {
			a.Declined = "it contradicts itself"
		}
		if a.Progress() && rapid.Bool().Draw(t, "failing") {
			a.Verify = []Verified{{}}
		}
		if a.Progress() && rapid.Bool().Draw(t, "failing as before") {
			a.Verify = []Verified{{Passed: true, Exit: 1, Known: []string{"TestX"}}}
		}
	case rapid.IntRange(0, 9).Draw(t, "cut short by Pawl") == 0:
		a.Outcome = Interrupted
	}
	if a.Ending == UsageLimit && rapid.IntRange(0, 3).Draw(t, "reset known") > 0 {
		a.Limit = &Limit{ResetsAt: now.Add(time.Duration(rapid.IntRange(-60, 8*24*60).Draw(t, "reset in minutes")) * time.Minute)}
	}
	return a
}

func TestPawlCannotRunAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { simulate(t) })
}

// simulate plays random events and counts the resulting decisions.
func simulate(t *rapid.T) map[string]int {
	decided := map[string]int{}
	w := newWorld(t, anyLimits(t), rapid.IntRange(1, 3).Draw(t, "threads"), anyBackends(t)...)
	w.parts = true
	mood := anyMood(t)
	for range rapid.IntRange(1, 120).Draw(t, "happenings") {
		s := w.threads[rapid.IntRange(0, len(w.threads)-1).Draw(t, "thread")]
		happen(t, w, s, mood)
		decided[string(s.last.Action)+" "+string(s.last.Rule)]++
	}
	return decided
}

// The guarantees mean little unless the simulations lead to every kind of decision. The seeds are fixed.
func TestSimulationReachesEveryRule(t *testing.T) {
	if testing.Short() {
		t.Skip("volume: make test runs it")
	}
	decided := map[string]int{}
	simulation := rapid.Custom(simulate)
	for seed := range 1500 {
		for d, n := range simulation.Example(seed) {
			decided[d] += n
		}
	}
	for _, d := range []string{
		"stop paused", "stop closed", "stop cancelled", "done done", "stop restart_limit", "wait daily_cap", "stop unattended", "attempt transient", "wait transient", "stop transient", "attempt silent", "stop silent",
		"attempt auth", "stop auth", "attempt misconfigured", "stop misconfigured", "stop auth_breaker",
		"attempt usage_limit", "attempt limit_reset", "wait usage_limit", "stop usage_limit", "stop usage_limit_breaker",
		"attempt edit_loop", "wait cooldown", "attempt stagnation", "stop stagnation", "stop no_progress", "stop no_change", "ask declined",
		"attempt progress", "attempt interrupted", "stop interrupted", "attempt verify_failed", "attempt escalate_effort", "stop verify_failed",
		"attempt feedback", "wait gather", "wait backoff", "stop no_backend",
	} {
		if decided[d] == 0 {
			t.Errorf("no simulation reached %q; they reached %v", d, decided)
		}
	}
}

// happen plays one event: usually the end of the running attempt or the passing of time, otherwise a user's comment.
func happen(t *rapid.T, w *world, s *simThread, mood *Attempt) {
	if s.closed+s.paused != "" && rapid.Bool().Draw(t, "lift") {
		s.closed, s.paused = "", ""
	}
	switch what := rapid.IntRange(0, 11).Draw(t, "what"); {
	case what <= 4 && s.running():
		w.end(s, anyEnd(t, w.now, mood))
	case what <= 6 && s.last.Action == DoWait && s.last.Until.After(w.now) && s.open:
		w.until(s)
	case what <= 7:
		w.pass(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600, 6 * 3600, 86400}).Draw(t, "seconds")) * time.Second)
	case what <= 9:
		w.say(s, rapid.SampledFrom([]string{"", "", "solve", "retry", "resume", "escalate"}).Draw(t, "command"))
	case what == 10:
		s.pinned = rapid.SampledFrom([]string{"", "codex", "claude", "gemini", "gone"}).Draw(t, "use")
		w.step(s)
	default:
		switch rapid.SampledFrom([]string{"stop", "close", "pause"}).Draw(t, "end") {
		case "stop":
			w.stop(s)
		case "close":
			w.close(s)
		case "pause":
			s.paused = "policy.paused"
			w.step(s)
		}
	}
}

// No thread continues forever without users: with one request and any endings, a run is done, or ends after at most
// Restarts.Max restarts.
func TestRunEndsWithoutUsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, anyLimits(t), 1, anyBackends(t)...)
		s, mood := w.threads[0], anyMood(t)
		w.say(s, "solve")
		// Before each attempt there is at most one wait for each backend and one backoff.
		for range 4 * 5 * (w.limits.Restarts.Max + 2) {
			switch {
			case !s.open:
				return
			case s.running():
				w.pass(time.Second)
				w.end(s, anyEnd(t, w.now, mood))
			default:
				w.until(s)
			}
		}
		t.Fatalf("the run does not end: %s", s.stands())
	})
}

// Finished work stays finished unless a user asks for more, independent of earlier events.
func TestSuccessfulAttemptIsNotRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Attempt
		for range rapid.IntRange(0, 60).Draw(t, "attempts before") {
			all = append(all, anyEnd(t, noon, nil))
		}
		f := given(append(all, finished())...)
		f.Limits = anyLimits(t)
		if d := Next(f); d.Action != DoDone || d.Reasons.String() == "" {
			t.Fatalf("decision %+v", d)
		}
	})
}
