package policy

import (
	"slices"
	"time"
)

// maxAhead is the longest time that anything is waited for: eight days, the
// longest reset that is believed, and the longest cooldown of the configuration.
const maxAhead = 8 * 24 * time.Hour

// settled are the facts without what only a wrong clock can have written: a machine whose clock was a year
// ahead must not keep everybody waiting for a year after it was set right. What lies in the future ended now,
// and what is to be waited for longer than anything may be waited for is over.
func (f Facts) settled() Facts {
	f.Attempts, f.Backends = slices.Clone(f.Attempts), slices.Clone(f.Backends)
	f.Handed.At = Earlier(f.Handed.At, f.Now)
	latest := f.Now.Add(maxAhead)
	for i := range f.Attempts {
		a := &f.Attempts[i]
		a.StartedAt, a.EndedAt = Earlier(a.StartedAt, f.Now), Earlier(a.EndedAt, f.Now)
		if a.Limit.Usable().After(latest) {
			a.Limit = &Limit{ResetsAt: f.Now}
		}
	}
	for i := range f.Backends {
		b := &f.Backends[i]
		if b.Breaker.ResetsAt.After(latest) {
			b.Breaker.ResetsAt = f.Now
		}
		for _, r := range []*Rest{&b.Rest, &b.Escalated} {
			if r.Until.After(latest) {
				r.Until = time.Time{}
			}
		}
	}
	return f
}

// Earlier is the one of two times that comes first.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later is the one of two times that comes last.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
