package policy

import (
	"errors"
	"time"
)

// Breaker counts the failures of one backend account, for all threads and nodes. The zero value is closed.
type Breaker struct {
	Kind Ending `json:"kind,omitempty"` // usage_limit or auth
	// Consecutive counts failures of Kind since the last success.
	Consecutive int `json:"consecutive"`
	// ResetsAt is the provider's reset time; zero if unknown, or if only a user can fix the account (auth).
	ResetsAt time.Time `json:"resets_at,omitzero"`
	At       time.Time `json:"at,omitzero"` // when the last failure ended
	// Claim is an unconfirmed limit that one thread's agents reported.
	Claim Claim `json:"claim,omitzero"`
	// Damage is why the stored breaker cannot be read. It holds the account until an attempt succeeds, a provider
	// reports a limit, or an operator closes the breaker.
	Damage string `json:"damage,omitempty"`
}

// Check returns why a stored breaker is invalid, or nil.
func (b Breaker) Check() error {
	if min(b.Consecutive, b.Claim.Consecutive) < 0 {
		return errors.New("it counts fewer than no failures")
	}
	return nil
}

// Claim is a limit that an agent's output reports. Pawl did not see the provider's answer.
type Claim struct {
	Thread      string    `json:"thread"`
	Kind        Ending    `json:"kind"`
	Consecutive int       `json:"consecutive"` // as in Breaker
	ResetsAt    time.Time `json:"resets_at,omitzero"`
	At          time.Time `json:"at,omitzero"`
}

// AfterReported returns the breaker after an attempt whose limit only the agent's output reports. The limit counts for
// that thread. It counts for all threads if a second thread hits it before the reset, or within a day if no reset is
// known.
func (b Breaker) AfterReported(thread string, ending Ending, resetsAt, began, at time.Time) Breaker {
	c := b.Claim
	confirmed := c.confirmedBy(thread, ending, at)
	if confirmed && b.Consecutive == 0 {
		b = b.For(c.Thread) // count both attempts
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

// confirmedBy reports whether an attempt on another thread hit the same limit before the claim expired.
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

// For returns the breaker as a thread sees it, including its own agents' claim.
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

// After returns the breaker after an attempt. Usage limits and rejected logins count as failures. A success closes
// the breaker if its attempt began after the last failure. Other endings change nothing.
func (b Breaker) After(ending Ending, resetsAt, began, at time.Time) Breaker {
	switch ending {
	case UsageLimit, Auth:
		if b.Kind != ending {
			b = Breaker{Kind: ending}
		}
		if !resetsAt.After(at) {
			// An earlier failure's reset still applies.
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

// Limited reports whether the account is limited now, and until when. Zero means until a user acts.
func (b Breaker) Limited(now time.Time) (until time.Time, limited bool) {
	if b.Damage != "" {
		return time.Time{}, true
	}
	wasReset := !b.ResetsAt.IsZero() && !now.Before(b.ResetsAt)
	if wasReset || b.Consecutive == 0 {
		return time.Time{}, false
	}
	return b.ResetsAt, true
}

// Open reports whether the account failed `most` times in a row and is still limited. Its time has the same meaning as
// Limited's.
func (b Breaker) Open(now time.Time, most int) (until time.Time, open bool) {
	until, limited := b.Limited(now)
	if b.Damage != "" {
		return until, true
	}
	return until, limited && b.Consecutive >= most
}

// Backoff returns the wait before restart n (from 1): 0 up to `after`, then 2^(n-after) seconds, at most `longest`.
func Backoff(n, after int, longest time.Duration) time.Duration {
	k := n - after
	if k <= 0 {
		return 0
	}
	return Retry(k+1, time.Second, longest, 1)
}

// Retry returns the wait before repetition n (from 1) of a failed call: base, doubled each time, at most longest.
// chance (0..1) scales the wait: full jitter.
func Retry(n int, base, longest time.Duration, chance float64) time.Duration {
	wait := longest
	// More than 30 doublings would overflow.
	if k := max(0, n-1); k <= 30 && base <= longest>>k {
		wait = base << k
	}
	return wait - time.Duration(float64(wait)*(1-chance)) // exact for 1
}
