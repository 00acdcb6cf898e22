package limit

import (
	"regexp"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Bounds of a reset time from now. No plan's window exceeds a week: a later time is a misreading, or a monthly cap
// that a user may lift.
const (
	Soonest = time.Minute
	Latest  = 8 * 24 * time.Hour
)

// farthest limits parsed waits, so that no time overflows.
const farthest = 400 * 24 * time.Hour

// Bound keeps a reset time between soonest and Latest. The reason describes a correction; it is empty without one.
func Bound(at, now time.Time, soonest time.Duration) (bounded time.Time, reason string) {
	at = at.UTC()
	switch {
	case at.Before(now.Add(soonest)):
		return now.Add(soonest).UTC(), "the reset time " + at.Format(time.RFC3339) + " is past or too near; the earliest used is one minute from now"
	case at.After(now.Add(Latest)):
		return now.Add(Latest).UTC(), "the reset time " + at.Format(time.RFC3339) + " is more than eight days away; eight days are used"
	}
	return at, ""
}

// longWait separates a rate limit from a usage limit if the wording does not. Per-minute limits end within minutes,
// plans' limits after hours (Copilot's "rate limit … try again in 58 hours").
const longWait = 10 * time.Minute

var (
	// perDay matches long windows worded as rate limits ("free-models-per-day"), and Google's names for them.
	perDay = regexp.MustCompile(`(?i)\bper[ _-]?(?:day|week|month)\b|PerDay|\b(?:daily|weekly|monthly)\b|\((?:RPD|TPD)\)`)
	// quota matches words for a limit whose window may have any length.
	quota = regexp.MustCompile(`(?i)\bquota\b|exhausted your capacity`)
)

// weigh corrects a limit's kind by its length; resets is zero if unknown. hurried means that an error's name means a
// rate limit. The reason is empty without a correction.
func weigh(kind policy.Ending, message string, hurried bool, resets, now time.Time) (weighed policy.Ending, reason string) {
	long := resets.Sub(now) > longWait
	daily := perDay.MatchString(message)
	switch kind {
	case policy.RateLimited:
		if long {
			return policy.UsageLimit, "the wait is longer than a short rate limit lasts, so it counts as a usage limit"
		}
		if daily {
			return policy.UsageLimit, "the limit's window is a day or longer, so it counts as a usage limit"
		}
	case policy.UsageLimit:
		soon := !resets.IsZero() && !long
		elastic := hurried || quota.MatchString(message)
		if soon && !daily && elastic {
			return policy.RateLimited, "the provider asks to come back within minutes, so it counts as a short rate limit"
		}
	default: // other kinds have no length
	}
	return kind, ""
}
