package agent

import (
	"regexp"
	"time"
)

// longWait separates a short rate limit from a usage limit where the wording
// says only "rate limit": providers' per-minute limits end within minutes,
// plan limits take hours (Copilot's "rate limit … try again in 58 hours").
const longWait = 10 * time.Minute

var (
	// perDay matches limits of a long window that are worded as rate limits
	// ("Rate limit exceeded: free-models-per-day").
	perDay = regexp.MustCompile(`(?i)\bper[ _-]?(?:day|week|month)\b|\bPerDay|\b(?:daily|weekly|monthly)\b|\(RPD\)|\(TPD\)`)
	// perMinute matches Gemini's limits of a minute, which are worded like the
	// quota of a plan and tell to come back within a minute.
	perMinute = regexp.MustCompile(`(?is)exceeded your current quota.{0,600}retry (?:in|after)\b`)
)

// weigh corrects the class of a limit by how long it lasts.
func (t *tally) weigh(message string, resets *time.Time, now time.Time) {
	r := &t.rep
	long := resets != nil && resets.Sub(now) > longWait
	switch {
	case r.Ending == RateLimited && long:
		r.Ending = UsageLimit
		r.because("the wait is longer than a short rate limit lasts, so it counts as a usage limit")
	case r.Ending == RateLimited && resets == nil && perDay.MatchString(message):
		r.Ending = UsageLimit
		r.because("the limit is that of a day or longer, so it counts as a usage limit")
	case r.Ending == UsageLimit && resets != nil && !long && perMinute.MatchString(message) && !perDay.MatchString(message):
		r.Ending = RateLimited
		r.because("the provider asks to come back within minutes, so it counts as a short rate limit")
	}
}

// reset finds the time of the reset: a field of the stream, else the message.
func (t *tally) reset(message string, now time.Time, zone *time.Location) (*time.Time, string) {
	if t.resets != nil {
		return t.resets, SourceStructured
	}
	if at, ok := ResetTime(message, now, zone); ok {
		return &at, SourceText
	}
	return nil, SourceNone
}
