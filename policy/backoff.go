package policy

import "time"

// Backoff is the wait before restart n of a run (n counts from 1, the first
// attempt being no restart): nothing up to `after`, then 2^(n-after) seconds,
// at most `longest`. The formula is the incident's fourth remedy.
func Backoff(n, after int, longest time.Duration) time.Duration {
	k := n - after
	if k <= 0 {
		return 0
	}
	// 2^30 s is 34 years: beyond it only the longest wait can answer, and
	// shifting further would overflow.
	if k > 30 {
		return longest
	}
	return min(longest, time.Second<<k)
}
