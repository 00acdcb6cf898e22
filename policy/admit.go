package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// admit picks the backend for an attempt and applies all holds and the backoff. Every attempt passes through it.
func (f Facts) admit(d Decision) Decision {
	if len(f.Backends) == 0 {
		return Decision{
			Action:  DoStop,
			Rule:    RuleNoBackend,
			Reasons: Because(RuleNoBackend, "no backend is configured for this repository"),
			Hint:    "The operator must add a backend, or the repository must allow one.",
		}
	}
	candidates, d := f.choose(f.candidates(d), d)
	for _, b := range candidates {
		if f.held(b) == nil {
			return f.backoff(f.startOn(b, d))
		}
	}
	return f.holdBack(candidates, d)
}

func (f Facts) startOn(b Backend, d Decision) Decision {
	d = d.with(b)
	if d.Escalated && !f.canEscalate(b) {
		d.Escalated = false
		d.Rung = 0
		d.Reasons = append(slices.Clone(d.Reasons), b.noEffort(d.Rule))
	}
	cooldown := b.Cooldown
	if d.Escalated {
		cooldown = b.Escalated
	}
	if cooldown.Class == Runaway {
		d.Lifts = true
		why := fmt.Sprintf("a user's command ends the cooldown of backend %s here", b.Name)
		d.Reasons = append(slices.Clone(d.Reasons), Reason{Rule: RuleRunaway, Text: why})
	}
	return d
}

// candidates lists the pinned backend, else the rule's choice, else all in configured order. It sorts each backend's
// accounts by headroom, and puts failing backends last.
func (f Facts) candidates(d Decision) []Backend {
	all := f.byHeadroom()
	for _, name := range []string{f.Pinned, d.Backend} {
		if f.backend(name).Name != "" {
			all = slices.DeleteFunc(all, func(b Backend) bool { return b.Name != name })
			break
		}
	}
	all = front(all, func(b Backend) bool { return b.Account == d.Account })
	var sound, failing []Backend
	for _, b := range all {
		if _, fails := f.failing(b); fails {
			failing = append(failing, b)
		} else {
			sound = append(sound, b)
		}
	}
	return append(sound, failing...)
}

// failing reports why a backend fails: a damaged breaker, a limit, a rejected login or a misconfiguration.
func (f Facts) failing(b Backend) (why Reason, fails bool) {
	if b.Breaker.Damage != "" {
		return b.damaged(), true
	}
	if until, limited := b.Breaker.Limited(f.Now); limited {
		rule := RuleUsageLimit
		if b.Breaker.Kind == Auth {
			rule = RuleAuth
		}
		text := fmt.Sprintf("account %s: %d × %s in a row, %s", b.Account, b.Breaker.Consecutive, b.Breaker.Kind, resets(until))
		return Reason{rule, text, until}, true
	}
	for _, a := range slices.Backward(f.run()) {
		if a.Backend != b.Name || a.Account != b.Account {
			continue
		}
		if a.Outcome != WasConfig {
			break
		}
		return Reason{Rule: RuleMisconfigured, Text: fmt.Sprintf("backend %s is misconfigured%s", b.Name, a.detail())}, true
	}
	return Reason{}, false
}

// hold is a reason why a backend cannot start now, with its end and its rule. A hold without a rule has no end
// to wait for. No command overrides a firm hold.
type hold struct {
	why   Reason
	until time.Time
	rule  Rule
	firm  bool
}

func (f Facts) held(b Backend) *hold {
	if full, by := b.Day.Full(); full != "" { // it is unknown when the account has room again
		return &hold{why: Reason{Rule: by, Text: full}, rule: by, firm: true}
	}
	if h := f.heldByHeadroom(b); h != nil {
		return h
	}
	if f.mayProbe(b) {
		return nil
	}
	if h := f.heldByFailure(b); h != nil {
		return h
	}
	return f.heldByCooldown(b)
}

// mayProbe reports whether a command lets an attempt try an account with an open breaker and an unknown reset.
func (f Facts) mayProbe(b Backend) bool {
	reset, open := f.breaker(b)
	return open && reset.IsZero() && f.forced()
}

func (f Facts) breaker(b Backend) (reset time.Time, open bool) {
	return b.Breaker.Open(f.Now, f.Limits.UsageLimit.MaxConsecutive)
}

func (f Facts) heldByFailure(b Backend) *hold {
	why, fails := f.failing(b)
	reset, waits := f.awaited(b)
	_, open := f.breaker(b)
	switch {
	case waits && reset.After(b.Cooldown.Until):
		return &hold{why: why, until: reset, rule: RuleUsageLimit}
	case waits:
		return &hold{why: why, until: b.Cooldown.Until, rule: RuleCooldown}
	case open:
		return &hold{why: why}
	case fails && len(f.Fresh) == 0:
		return &hold{why: why} // no user asked for another try
	}
	return nil
}

// awaited returns the known reset of a backend's usage limit if the run waits for it.
func (f Facts) awaited(b Backend) (reset time.Time, waits bool) {
	reset, _ = b.Breaker.Limited(f.Now)
	if reset.IsZero() || b.Breaker.Kind != UsageLimit {
		return time.Time{}, false
	}
	if _, open := f.breaker(b); open {
		return time.Time{}, false
	}
	return reset, f.Limits.UsageLimit.AutoContinue && !f.forced()
}

func (f Facts) heldByCooldown(b Backend) *hold {
	cooldown := b.Cooldown
	switch {
	case cooldown.Class == Runaway && !f.commanded():
		return &hold{why: b.ranAway()}
	case f.Now.Before(cooldown.Until) && !f.forced():
		why := fmt.Sprintf("%s: %s edit loop, cooling down until", b.Name, cooldown.Class)
		return &hold{why: Reason{RuleCooldown, why, cooldown.Until}, until: cooldown.Until, rule: RuleCooldown}
	}
	return nil
}

func (b Backend) ranAway() Reason {
	if b.Cooldown.Damage != "" {
		return Reason{Rule: RuleNoBackend, Text: fmt.Sprintf("%s: %s", b.Name, b.Cooldown.Damage)}
	}
	why := fmt.Sprintf("%s: %d severe edit loops on this repository within a week", b.Name, maxSevere)
	return Reason{Rule: RuleRunaway, Text: why}
}

// damaged names the account, not the backend: the backend's other accounts may have readable breakers.
func (b Backend) damaged() Reason {
	return Reason{Rule: RuleNoBackend, Text: fmt.Sprintf("account %s: %s", b.Account, b.Breaker.Damage)}
}

// holdBack waits for the first candidate that becomes free, or stops if all need a user.
func (f Facts) holdBack(candidates []Backend, d Decision) Decision {
	wait := Decision{Action: DoWait, Hint: hintRoom}
	for _, b := range candidates {
		h := f.held(b)
		switch {
		case !h.firm:
			wait.Hint = "Comment /pawl resume to try before that."
		case h.rule == RuleHeadroom && wait.Hint == hintRoom:
			wait.Hint = hintHeadroom
		}
		wait.Reasons = append(wait.Reasons, h.why)
		if h.rule == "" {
			continue
		}
		if wait.Rule == "" || f.nextLook(h.until).Before(f.nextLook(wait.Until)) {
			wait.Until, wait.Rule = h.until, h.rule
		}
	}
	wait.Reasons = append(wait.Reasons, d.Reasons...)
	if wait.Rule != "" {
		return wait
	}
	first := candidates[0]
	s := f.breakerStop(first)
	switch {
	case s.Action != "":
	case first.Cooldown.Class == Runaway && first.Cooldown.Damage == "":
		s = stop(RuleRunaway, "Look at the backend's attempts, then comment /pawl resume to end the cooldown. /pawl use takes another backend.")
	default:
		s = stop(RuleNoBackend, "Comment /pawl resume to try again.")
	}
	s.Reasons = wait.Reasons
	return s
}

// nextLook returns when the thread checks a hold again. A daily limit's end is unknown: check every ten minutes.
func (f Facts) nextLook(until time.Time) time.Time {
	if until.IsZero() {
		return f.Now.Add(10 * time.Minute)
	}
	return until
}

func (f Facts) breakerStop(b Backend) Decision {
	until, open := f.breaker(b)
	if !open {
		return Decision{}
	}
	if b.Breaker.Damage != "" {
		return Decision{
			Action:  DoStop,
			Rule:    RuleNoBackend,
			Reasons: Reasons{b.damaged()},
			Hint:    "The operator can run pawl close-breaker; /pawl resume tries once.",
		}
	}
	rule := RuleLimitBreaker
	hint := "After the reset, comment /pawl resume to try again."
	switch {
	case b.Breaker.Kind == Auth:
		rule = RuleAuthBreaker
		hint = "The operator must renew the login of this backend; then comment /pawl resume."
	case until.IsZero():
		hint = "Comment /pawl resume to try once."
	}
	why := fmt.Sprintf("%d × %s in a row on account %s; %s", b.Breaker.Consecutive, b.Breaker.Kind, b.Account, resets(until))
	return Decision{
		Action:  DoStop,
		Rule:    rule,
		Reasons: Reasons{{rule, why, until}},
		Hint:    hint,
	}
}

// canEscalate reports whether the backend has an escalated effort whose cooldown is over or is overridden by a command.
func (f Facts) canEscalate(b Backend) bool {
	if !b.CanEscalate {
		return false
	}
	if !b.Escalated.Holds(f.Now) {
		return true
	}
	if f.commanded() {
		return true
	}
	return f.forced() && b.Escalated.Class != Runaway
}

// backoff delays a restart. The delay starts at the end or handover of the last attempt.
func (f Facts) backoff(d Decision) Decision {
	since := f.Handover.At
	if n := len(f.Attempts); n > 0 {
		since = Later(since, f.Attempts[n-1].EndedAt)
	}
	n := len(f.series()) + f.Handover.Times
	pause := Backoff(n, f.Limits.Restarts.BackoffAfter, f.Limits.Restarts.BackoffCap)
	until := since.Add(pause)
	if pause == 0 || !f.Now.Before(until) {
		return d
	}
	why := fmt.Sprintf("restart %d waits %s", n, pause)
	return Decision{
		Action:  DoWait,
		Rule:    RuleBackoff,
		Until:   until,
		Reasons: append(d.Reasons, Because(RuleBackoff, why)...),
	}
}

func (f Facts) backend(name string) Backend {
	for _, b := range f.Backends {
		if b.Name == name {
			return b
		}
	}
	return Backend{}
}

// backendOf returns an attempt's backend on its account, or the zero value.
func (f Facts) backendOf(a Attempt) Backend {
	for _, b := range f.Backends {
		if b.Name == a.Backend && b.Account == a.Account {
			return b
		}
	}
	return Backend{}
}

// another returns a free backend other than the attempt's, preferably on another account. A pinned backend has no
// substitute.
func (f Facts) another(a Attempt) (Backend, bool) {
	if f.Pinned != "" {
		return Backend{}, false
	}
	differs := func(b Backend) bool { return b.Name != a.Backend }
	if b, ok := f.free(func(b Backend) bool { return differs(b) && b.Account != a.Account }); ok {
		return b, true
	}
	return f.free(differs)
}

// other returns a free backend on an account that none of the attempts used, preferably another account of the first
// attempt's backend. A pinned backend has no substitute.
func (f Facts) other(tried ...Attempt) (Backend, bool) {
	fresh := func(b Backend) bool {
		return !slices.ContainsFunc(tried, func(a Attempt) bool { return a.Account == b.Account })
	}
	preferred := cmp.Or(f.Pinned, tried[0].Backend)
	b, ok := f.free(func(b Backend) bool { return b.Name == preferred && fresh(b) })
	if ok || f.Pinned != "" {
		return b, ok
	}
	return f.free(fresh)
}

func (f Facts) free(kind func(Backend) bool) (Backend, bool) {
	for _, b := range f.byHeadroom() {
		if kind(b) && f.works(b) {
			return b, true
		}
	}
	return Backend{}, false
}

func (f Facts) works(b Backend) bool {
	_, fails := f.failing(b)
	return !fails && f.held(b) == nil
}
