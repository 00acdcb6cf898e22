package policy

import "time"

// Breaker is the state of one backend account, shared by every thread and node. The zero value is a closed breaker.
type Breaker struct {
	Kind Ending `json:"kind,omitempty"` // of the failures: usage_limit or auth
	// Consecutive counts failures of Kind since the last success.
	Consecutive int `json:"consecutive"`
	// ResetsAt is when the provider said that the account works again; zero if unknown, or if only a user can fix it
	// (auth).
	ResetsAt time.Time `json:"resets_at,omitzero"`
	At       time.Time `json:"at,omitzero"` // when the last failure ended
	// Claim is an unconfirmed limit that one thread's agents reported; zero for none.
	Claim Claim `json:"claim,omitzero"`
}

// Claim is a limit that only an agent's output reports: Pawl did not see the provider's answer.
type Claim struct {
	Thread      string    `json:"thread"`
	Kind        Ending    `json:"kind"`
	Consecutive int       `json:"consecutive"` // as in Breaker
	ResetsAt    time.Time `json:"resets_at,omitzero"`
	At          time.Time `json:"at,omitzero"`
}

// Told returns the breaker after an attempt whose limit only the agent's output reports. The limit counts for the
// attempt's thread. It counts for all threads once an attempt on a second thread met it before the first one's
// reset, or within a day if no reset is known.
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

func (e Ending) closesAccount() bool { return e == UsageLimit || e == Auth }

// For is the breaker that holds for a thread: with the claims of its own agents.
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

// After returns the breaker after an attempt. Only usage limits and rejected logins count as failures. A success
// closes the breaker if its attempt began after the last failure: an earlier attempt may have got its last answer
// before. Other endings leave the breaker as it is.
func (b Breaker) After(ending Ending, resetsAt, began, at time.Time) Breaker {
	switch ending {
	case UsageLimit, Auth:
		if b.Kind != ending {
			b = Breaker{Kind: ending}
		}
		if !resetsAt.After(at) {
			// The reset is unknown or past, so an earlier failure's reset still holds.
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
	default:
	}
	return b
}

// Limited reports whether the account is known not to work at now, and until when; zero means until a user acts.
func (b Breaker) Limited(now time.Time) (until time.Time, limited bool) {
	wasReset := !b.ResetsAt.IsZero() && !now.Before(b.ResetsAt)
	if wasReset || b.Consecutive == 0 {
		return time.Time{}, false
	}
	return b.ResetsAt, true
}

// Open reports whether the account must not be called at now: it failed `most` times in a row and its reset has not
// come. The time is as for Limited.
func (b Breaker) Open(now time.Time, most int) (until time.Time, open bool) {
	until, limited := b.Limited(now)
	return until, limited && b.Consecutive >= most
}

// Backoff is the wait before restart n of a run, counted from 1: nothing up to `after`, then 2^(n-after) seconds,
// at most `longest`. The formula is the incident's fourth remedy.
func Backoff(n, after int, longest time.Duration) time.Duration {
	k := n - after
	if k <= 0 {
		return 0
	}
	return Retry(k+1, time.Second, longest, 1)
}

// Retry is the wait before the n-th repetition of a failed call, counted from 1: base, doubled for each repetition,
// at most longest. chance (0..1) scales the wait, so that calls that failed together do not return together ("full
// jitter"); 1 waits all of it.
func Retry(n int, base, longest time.Duration, chance float64) time.Duration {
	wait := longest
	// Beyond 30 doublings the longest wait applies, and shifting further would overflow.
	if k := max(0, n-1); k <= 30 && base <= longest>>k {
		wait = base << k
	}
	return wait - time.Duration(float64(wait)*(1-chance)) // exact for 1
}
