package policy

import (
	"fmt"
	"time"
)

// admit turns an attempt that a rule asked for into one that may start now: it
// picks the backend and keeps the breaker, the cooldowns and the backoff. No
// attempt starts without passing here.
func admit(f Facts, d Decision) Decision {
	if len(f.Backends) == 0 {
		return Decision{Action: DoStop, Rule: "no_backend", Reasons: []string{"no backend is configured for this repository"},
			Hint: "The operator must add a backend, or the repository must allow one."}
	}
	candidates := f.candidates(d)
	for _, b := range candidates {
		if f.held(b) == "" {
			d.Backend = b.Name
			d.Escalated = d.Escalated && b.CanEscalate
			return backoff(f, d)
		}
	}
	return f.holdBack(candidates, d)
}

// candidates are the backends that an attempt may use, in order: the rule's
// choice, else the one that a person pinned, else the configured order.
func (f Facts) candidates(d Decision) []Backend {
	for _, name := range []string{d.Backend, f.Pinned} {
		if b := f.backend(name); name != "" && b.Name != "" {
			return []Backend{b}
		}
	}
	return f.Backends
}

// held says why a backend may not start now; empty when it may.
func (f Facts) held(b Backend) string {
	until, limited := b.Breaker.Limited(f.Now)
	_, resume := f.command("resume", "retry", "escalate")
	switch {
	case limited && b.Breaker.Consecutive >= f.Limits.MaxConsecutiveLimits:
		// A person may try an account whose reset nobody knows, but never one
		// whose reset is known and has not come.
		if until.IsZero() && resume {
			return ""
		}
		return fmt.Sprintf("account %s: %d × %s in a row, %s", b.Account, b.Breaker.Consecutive, b.Breaker.Kind, resets(until))
	case limited && b.Breaker.Kind == UsageLimit && f.Limits.AutoContinue && !until.IsZero() && !resume:
		return fmt.Sprintf("account %s hit its usage limit, %s", b.Account, resets(until))
	case f.Now.Before(b.CooldownUntil) && !resume:
		return fmt.Sprintf("%s: %s edit loop, cooling down until %s", b.Name, b.Cooldown, clock(b.CooldownUntil))
	}
	return ""
}

// holdBack answers when every candidate is held: wait for the first that will
// be free by itself, else stop.
func (f Facts) holdBack(candidates []Backend, d Decision) Decision {
	var reasons []string
	var first time.Time
	rule := "cooldown"
	for _, b := range candidates {
		reasons = append(reasons, f.held(b))
		until, waits := f.free(b)
		if waits && (first.IsZero() || until.Before(first)) {
			first = until
			if _, limited := b.Breaker.Limited(f.Now); limited {
				rule = "usage_limit"
			}
		}
	}
	reasons = append(reasons, d.Reasons...)
	if !first.IsZero() {
		return Decision{Action: DoWait, Rule: rule, Until: first, Reasons: reasons, Hint: "Comment /pawl resume to try before that."}
	}
	if s, open := breakerStop(f, candidates[0]); open {
		s.Reasons = reasons
		return s
	}
	return Decision{Action: DoStop, Rule: "no_backend", Reasons: reasons, Hint: "Comment /pawl resume to try again."}
}

// free says when a held backend is free by itself. A breaker that is open frees
// nothing by itself: after three limits a person decides.
func (f Facts) free(b Backend) (time.Time, bool) {
	until, limited := b.Breaker.Limited(f.Now)
	if limited && b.Breaker.Consecutive >= f.Limits.MaxConsecutiveLimits {
		return time.Time{}, false
	}
	if limited && f.Limits.AutoContinue && !until.IsZero() {
		return later(until, b.CooldownUntil), true
	}
	return b.CooldownUntil, true
}

// breakerStop is the stop of an open breaker.
func breakerStop(f Facts, b Backend) (Decision, bool) {
	until, open := b.Breaker.Open(f.Now, f.Limits.MaxConsecutiveLimits)
	if !open {
		return silent()
	}
	rule, hint := "usage_limit_breaker", "After the reset, comment /pawl resume to try again."
	if b.Breaker.Kind == Auth {
		rule, hint = "auth_breaker", "The operator must renew the login of this backend; then comment /pawl resume."
	} else if until.IsZero() {
		hint = "Comment /pawl resume to try once."
	}
	return stop(rule, hint, fmt.Sprintf("%d × %s in a row on account %s; %s", b.Breaker.Consecutive, b.Breaker.Kind, b.Account, resets(until)))
}

// backoff makes a restart wait since the end of the last attempt.
func backoff(f Facts, d Decision) Decision {
	a, ok := f.last()
	if !ok {
		return d
	}
	n := len(f.run())
	pause := Backoff(n, f.Limits.BackoffAfter, f.Limits.BackoffCap)
	until := a.EndedAt.Add(pause)
	if pause == 0 || !f.Now.Before(until) {
		return d
	}
	return Decision{Action: DoWait, Rule: "backoff", Until: until,
		Reasons: append(d.Reasons, fmt.Sprintf("restart %d waits %s", n, pause))}
}

// backend returns the backend of that name; the zero Backend when there is none.
func (f Facts) backend(name string) Backend {
	for _, b := range f.Backends {
		if b.Name == name {
			return b
		}
	}
	return Backend{}
}

// other returns a backend on another account that is free now, for going on
// after a failure of this one's account. A pinned backend has no other.
func (f Facts) other(a Attempt) (Backend, bool) {
	if f.Pinned != "" {
		return Backend{}, false
	}
	for _, b := range f.Backends {
		if _, limited := b.Breaker.Limited(f.Now); b.Account != a.Account && !limited && f.held(b) == "" {
			return b, true
		}
	}
	return Backend{}, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
