package policy

import (
	"fmt"
	"slices"
	"time"
)

// admit turns an attempt that a rule asked for into one that may start now: it picks the backend and keeps
// the breaker, the cooldowns and the backoff. No attempt starts without passing here.
func admit(f Facts, d Decision) Decision {
	if len(f.Backends) == 0 {
		return Decision{Action: DoStop, Rule: RuleNoBackend, Reasons: Because(RuleNoBackend, "no backend is configured for this repository"),
			Hint: "The operator must add a backend, or the repository must allow one."}
	}
	candidates, d := f.choose(f.candidates(d), d)
	for _, b := range candidates {
		if f.held(b) != nil {
			continue
		}
		d.Backend = b.Name
		if d.Escalated && !f.canEscalate(b) {
			d.Escalated, d.Rung = false, 0
			d.Reasons = append(slices.Clone(d.Reasons), noEffort(d.Rule, b))
		}
		rest := b.Rest
		if d.Escalated {
			rest = b.Escalated
		}
		if rest.Class == Runaway {
			d.Lifts = true
			d.Reasons = append(slices.Clone(d.Reasons), Reason{Rule: RuleRunaway, Text: fmt.Sprintf("a person's order ends the rest of backend %s here", b.Name)})
		}
		return backoff(f, d)
	}
	return f.holdBack(candidates, d)
}

// candidates are the backends that an attempt may use, in order: the one that a person pinned, else the
// rule's choice, else the configured order with those last that are known to fail.
func (f Facts) candidates(d Decision) []Backend {
	for _, name := range []string{f.Pinned, d.Backend} {
		if b := f.backend(name); b.Name != "" {
			return []Backend{b}
		}
	}
	var sound, failing []Backend
	for _, b := range f.Backends {
		if _, fails := f.failing(b); fails {
			failing = append(failing, b)
		} else {
			sound = append(sound, b)
		}
	}
	return append(sound, failing...)
}

// failing says why a backend is known not to work as it is: its account hit a
// limit or was rejected, or this run found it misconfigured.
func (f Facts) failing(b Backend) (why Reason, fails bool) {
	if until, limited := b.Breaker.Limited(f.Now); limited {
		rule := RuleUsageLimit
		if b.Breaker.Kind == Auth {
			rule = RuleAuth
		}
		return Reason{rule, fmt.Sprintf("account %s: %d × %s in a row, %s", b.Account, b.Breaker.Consecutive, b.Breaker.Kind, resets(until)), until}, true
	}
	tried := slices.DeleteFunc(slices.Clone(f.run()), func(a Attempt) bool { return a.Backend != b.Name })
	if n := len(tried); n > 0 && tried[n-1].Ending == Misconfigured {
		return Reason{Rule: RuleMisconfigured, Text: fmt.Sprintf("backend %s is misconfigured%s", b.Name, detail(tried[n-1]))}, true
	}
	return Reason{}, false
}

// hold is what keeps a backend from starting now: why, and when it is free by itself
// with the rule that it waits by. The rule is empty where only a person can free it:
// after three limits in a row, and for a failure that nothing can be waited for.
type hold struct {
	why   Reason
	until time.Time
	rule  Rule
}

// held says what keeps a backend from starting now; nil when nothing does.
func (f Facts) held(b Backend) *hold {
	reset, limited := b.Breaker.Limited(f.Now)
	_, open := b.Breaker.Open(f.Now, f.Limits.UsageLimit.MaxConsecutive)
	waits := limited && !open && f.Limits.UsageLimit.AutoContinue && b.Breaker.Kind == UsageLimit && !reset.IsZero()
	why, fails := f.failing(b)
	switch full, by := b.Day.Full(); {
	case full != "": // as above the thread: whoever insists, and until when nobody knows
		return &hold{why: Reason{Rule: by, Text: full}, rule: by}
	case open && reset.IsZero() && f.insists():
		// A person may try an account whose reset nobody knows, but never one
		// whose reset is known and has not come.
		return nil
	case waits && !f.insists() && reset.After(b.Rest.Until):
		return &hold{why, reset, RuleUsageLimit}
	case waits && !f.insists():
		return &hold{why, b.Rest.Until, RuleCooldown}
	case open, fails && len(f.Fresh) == 0:
		// Nobody asked for another try of what is known to fail.
		return &hold{why: why}
	case b.Rest.Class == Runaway && !f.orders():
		return &hold{why: Reason{Rule: RuleRunaway, Text: fmt.Sprintf("%s: %d severe edit loops on this repository within a week", b.Name, maxSevere)}}
	case f.Now.Before(b.Rest.Until) && !f.insists():
		why = Reason{RuleCooldown, fmt.Sprintf("%s: %s edit loop, cooling down until", b.Name, b.Rest.Class), b.Rest.Until}
		return &hold{why, b.Rest.Until, RuleCooldown}
	}
	return nil
}

// holdBack answers when every candidate is held: wait for the first that will be free by itself, else stop.
func (f Facts) holdBack(candidates []Backend, d Decision) Decision {
	// Nobody knows when a day has room again; that is looked at every few minutes.
	at := func(until time.Time) time.Time {
		if until.IsZero() {
			return f.Now.Add(10 * time.Minute)
		}
		return until
	}
	wait := Decision{Action: DoWait, Hint: hintRoom}
	for _, b := range candidates {
		h := f.held(b)
		if h.rule != RuleCap && h.rule != RuleBudget { // which no person passes over
			wait.Hint = "Comment /pawl resume to try before that."
		}
		wait.Reasons = append(wait.Reasons, h.why)
		if h.rule != "" && (wait.Rule == "" || at(h.until).Before(at(wait.Until))) {
			wait.Until, wait.Rule = h.until, h.rule
		}
	}
	wait.Reasons = append(wait.Reasons, d.Reasons...)
	if wait.Rule != "" {
		return wait
	}
	first := candidates[0]
	s := breakerStop(f, first)
	if s.Action == "" && first.Rest.Class == Runaway {
		s = stop(RuleRunaway, "Look at what its attempts did, then comment /pawl resume: that ends the rest. /pawl use takes another backend.")
	} else if s.Action == "" {
		s = stop(RuleNoBackend, "Comment /pawl resume to try again.")
	}
	s.Reasons = wait.Reasons
	return s
}

func breakerStop(f Facts, b Backend) Decision {
	until, open := b.Breaker.Open(f.Now, f.Limits.UsageLimit.MaxConsecutive)
	if !open {
		return Decision{}
	}
	rule, hint := RuleLimitBreaker, "After the reset, comment /pawl resume to try again."
	if b.Breaker.Kind == Auth {
		rule, hint = RuleAuthBreaker, "The operator must renew the login of this backend; then comment /pawl resume."
	} else if until.IsZero() {
		hint = "Comment /pawl resume to try once."
	}
	why := Reason{rule, fmt.Sprintf("%d × %s in a row on account %s; %s", b.Breaker.Consecutive, b.Breaker.Kind, b.Account, resets(until)), until}
	return Decision{Action: DoStop, Rule: rule, Reasons: Reasons{why}, Hint: hint}
}

// canEscalate reports whether a backend has an escalated effort that does not rest, or that a person orders in spite of it.
func (f Facts) canEscalate(b Backend) bool {
	return b.CanEscalate && (!b.Escalated.Holds(f.Now) || f.orders() || f.insists() && b.Escalated.Class != Runaway)
}

// backoff makes a restart wait since the end of the last attempt, or since it was handed over.
func backoff(f Facts, d Decision) Decision {
	since := f.Handed.At
	if n := len(f.Attempts); n > 0 {
		since = Later(since, f.Attempts[n-1].EndedAt)
	}
	n := len(f.series()) + f.Handed.Times
	pause := Backoff(n, f.Limits.Restarts.BackoffAfter, f.Limits.Restarts.BackoffCap)
	until := since.Add(pause)
	if pause == 0 || !f.Now.Before(until) {
		return d
	}
	return Decision{Action: DoWait, Rule: RuleBackoff, Until: until,
		Reasons: append(d.Reasons, Because(RuleBackoff, fmt.Sprintf("restart %d waits %s", n, pause))...)}
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

// another returns a backend that is free now and no attempt's own, one on an account of its own before one that shares it:
// for trying somebody else.
func (f Facts) another(a Attempt) (Backend, bool) {
	if b, ok := f.other(a); ok || f.Pinned != "" {
		return b, ok
	}
	return f.free(func(b Backend) bool { return b.Name != a.Backend })
}

// other returns a backend that is free now and on an account of none of the attempts, for going on after
// their accounts failed. Where a person pinned a backend, no other one will do.
func (f Facts) other(tried ...Attempt) (Backend, bool) {
	return f.free(func(b Backend) bool {
		was := func(a Attempt) bool { return a.Account == b.Account }
		return (f.Pinned == "" || b.Name == f.Pinned) && !slices.ContainsFunc(tried, was)
	})
}

// free is the first backend of a kind that is free now.
func (f Facts) free(kind func(Backend) bool) (Backend, bool) {
	for _, b := range f.Backends {
		if _, fails := f.failing(b); kind(b) && !fails && f.held(b) == nil {
			return b, true
		}
	}
	return Backend{}, false
}
