package policy

import "time"

// Breaker is what is known of one backend account, shared by every thread and
// node. The zero value is an account that nothing is held against.
type Breaker struct {
	Kind Ending `json:"kind,omitempty"` // what the failures were: usage_limit or auth
	// Consecutive counts failures of that kind since the last success.
	Consecutive int `json:"consecutive"`
	// ResetsAt is when the provider said that the account works again; zero
	// when unknown or, for auth, when only a person can tell.
	ResetsAt time.Time `json:"resets_at,omitzero"`
	At       time.Time `json:"at,omitzero"` // when the last failure ended
	// Claim is what the output of one thread's attempts says of the account, unconfirmed; zero for none.
	Claim Claim `json:"claim,omitzero"`
}

// Claim is a limit of which only an agent's output tells: nobody else saw the provider's answer.
type Claim struct {
	Thread      string    `json:"thread"`
	Kind        Ending    `json:"kind"`
	Consecutive int       `json:"consecutive"` // as in Breaker
	ResetsAt    time.Time `json:"resets_at,omitzero"`
	At          time.Time `json:"at,omitzero"`
}

// Told returns the breaker after an attempt whose agent alone says how it stands with the account. A limit is
// believed for the thread of the attempt; for all it is one when a second thread's attempt met it, too, before
// the reset that the first was told, or within a day where it was told none.
func (b Breaker) Told(thread string, ending Ending, resetsAt, began, at time.Time) Breaker {
	c := b.Claim
	confirmed := c.confirmedBy(thread, ending, at)
	if confirmed && b.Consecutive == 0 {
		b = b.For(c.Thread) // both count
	}
	believed := confirmed || b.Consecutive > 0
	if believed || !ending.closesAccount() {
		return b.After(ending, resetsAt, began, at)
	}
	own := b.For(thread)
	if c.Thread != thread {
		own = Breaker{}
	}
	own = own.After(ending, resetsAt, began, at)
	b.Claim = Claim{
		Thread:      thread,
		Kind:        own.Kind,
		Consecutive: own.Consecutive,
		ResetsAt:    own.ResetsAt,
		At:          own.At,
	}
	return b
}

// confirmedBy reports whether an attempt on another thread met the same limit while the claim holds.
func (c Claim) confirmedBy(thread string, ending Ending, at time.Time) bool {
	if c.Kind != ending || c.Thread == thread {
		return false
	}
	until := c.ResetsAt
	if until.IsZero() {
		until = c.At.Add(Day)
	}
	return at.Before(until)
}

// closesAccount reports whether an ending says that the account does not work.
func (e Ending) closesAccount() bool { return e == UsageLimit || e == Auth }

// For is the breaker as a thread believes it, with what its own agents told.
func (b Breaker) For(thread string) Breaker {
	c := b.Claim
	if b.Consecutive != 0 || c.Thread != thread {
		return b
	}
	if c.Consecutive <= 0 {
		return b
	}
	return Breaker{Kind: c.Kind, Consecutive: c.Consecutive, ResetsAt: c.ResetsAt, At: c.At}
}

// After returns the breaker after an attempt that began and ended so at the given times. Only a usage limit
// and a rejected login count; only a success closes it, and only that of an attempt that began after the last
// failure: one that was under way may have got its last answer before. An ending that says nothing about the
// account leaves it as it is.
func (b Breaker) After(ending Ending, resetsAt, began, at time.Time) Breaker {
	switch ending {
	case UsageLimit, Auth:
		if b.Kind != ending {
			b = Breaker{Kind: ending}
		}
		if !resetsAt.After(at) {
			// It says nothing, or something that is past: what an earlier
			// failure told about the time to come still holds.
			resetsAt = time.Time{}
			if b.ResetsAt.After(at) {
				resetsAt = b.ResetsAt
			}
		}
		return Breaker{Kind: ending, Consecutive: b.Consecutive + 1, ResetsAt: resetsAt, At: at}
	case Completed:
		if !began.Before(Later(b.At, b.Claim.At)) {
			return Breaker{}
		}
	default: // it says nothing about the account
	}
	return b
}

// Limited reports whether the account is known not to work at now, and until
// when; a zero time means until a person says otherwise.
func (b Breaker) Limited(now time.Time) (until time.Time, limited bool) {
	wasReset := !b.ResetsAt.IsZero() && !now.Before(b.ResetsAt)
	if wasReset || b.Consecutive == 0 {
		return time.Time{}, false
	}
	return b.ResetsAt, true
}

// Open reports whether the account must not be called at now, because it failed `most` times in a row and its
// reset has not come. The time is as for Limited.
func (b Breaker) Open(now time.Time, most int) (until time.Time, open bool) {
	until, limited := b.Limited(now)
	return until, limited && b.Consecutive >= most
}

// Backoff is the wait before restart n of a run (n counts from 1, the first
// attempt being no restart): nothing up to `after`, then 2^(n-after) seconds,
// at most `longest`. The formula is the incident's fourth remedy.
func Backoff(n, after int, longest time.Duration) time.Duration {
	k := n - after
	if k <= 0 {
		return 0
	}
	return Retry(k+1, time.Second, longest, 1)
}

// Retry is the wait before the n-th repetition of something that failed (n counts from 1): base, doubled for
// each repetition before it, at most longest. chance, between 0 and 1, is the part of it that is waited, so
// that what failed together does not return together ("full jitter"); 1 waits all of it.
func Retry(n int, base, longest time.Duration, chance float64) time.Duration {
	wait := longest
	// Beyond 30 doublings only the longest wait can answer, and shifting further would overflow.
	if k := max(0, n-1); k <= 30 && base <= longest>>k {
		wait = base << k
	}
	return wait - time.Duration(float64(wait)*(1-chance)) // exact for all of it
}
