package gateway

import "time"

// The kinds of limits. The words are those of the glossary's endings.
const (
	UsageLimit  = "usage_limit"  // what the account may use is used up
	RateLimited = "rate_limited" // too fast; over within minutes
	Overloaded  = "overloaded"   // the provider cannot now
	Auth        = "auth"         // the key is refused; needs a person
)

// Limit is a provider's refusal.
type Limit struct {
	Kind    string
	Message string
	// ResetsAt is zero where the provider did not tell.
	ResetsAt time.Time
	// At is when the refusal was seen.
	At time.Time
	// Exact is true where ResetsAt comes from a field or header, false where it
	// was read from a sentence or had to be corrected.
	Exact bool
}
