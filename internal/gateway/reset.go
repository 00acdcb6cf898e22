package gateway

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// reset finds when the limit is over: a field of the body, a header, and last
// the sentence. The second result is false for a sentence.
func (f failure) reset(now time.Time) (time.Time, bool) {
	for _, at := range []time.Time{
		unix(f.resets), after(now, number(f.wait)), f.detailedReset(now), f.headerReset(now),
	} {
		if !at.IsZero() {
			return at, true
		}
	}
	if m := saidWait.FindStringSubmatch(f.message); m != nil {
		return lasting(now, m[1]), false
	}
	return time.Time{}, false
}

// saidWait reads "Please try again in 20s", "retry in 34.07s", "will reset after 1h0m0s".
var saidWait = regexp.MustCompile(`(?i)(?:try again|retry|resets?)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)`)

// detailedReset reads the details of Google's errors. The time of the quota's
// reset is preferred to the delay.
func (f failure) detailedReset(now time.Time) time.Time {
	var at time.Time
	for _, d := range f.details {
		if t, err := time.Parse(time.RFC3339, d.Metadata.ResetTime); err == nil {
			return t.UTC()
		}
		if t := lasting(now, d.Metadata.ResetDelay); !t.IsZero() {
			return t
		}
		if t := lasting(now, d.RetryDelay); at.IsZero() {
			at = t
		}
	}
	return at
}

// headerReset reads the headers: the one of Claude's plans, Codex's windows that
// are used up, what every HTTP server may say, and the windows that have nothing
// left.
func (f failure) headerReset(now time.Time) time.Time {
	h := f.header
	if h == nil {
		return time.Time{}
	}
	if h.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" {
		if at := unix(h.Get("Anthropic-Ratelimit-Unified-Reset")); !at.IsZero() {
			return at
		}
	}
	var at time.Time
	for _, window := range []string{"Primary", "Secondary"} {
		if number(h.Get("X-Codex-"+window+"-Used-Percent")) >= 100 {
			at = later(at, unix(h.Get("X-Codex-"+window+"-Reset-At")))
		}
	}
	if !at.IsZero() {
		return at
	}
	if at := after(now, number(h.Get("Retry-After-Ms"))/1000); !at.IsZero() {
		return at
	}
	if at := retryAfter(now, h.Get("Retry-After")); !at.IsZero() {
		return at
	}
	return emptyWindows(now, h)
}

// emptyWindows is when the last window with nothing remaining opens again.
// Anthropic gives the time, OpenAI a duration.
func emptyWindows(now time.Time, h http.Header) time.Time {
	var at time.Time
	for name := range h {
		if window, ok := strings.CutPrefix(name, "Anthropic-Ratelimit-"); ok && strings.HasSuffix(window, "-Remaining") && h.Get(name) == "0" {
			t, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+strings.TrimSuffix(window, "-Remaining")+"-Reset"))
			if err == nil {
				at = later(at, t.UTC())
			}
		}
		if window, ok := strings.CutPrefix(name, "X-Ratelimit-Remaining-"); ok && h.Get(name) == "0" {
			at = later(at, lasting(now, h.Get("X-Ratelimit-Reset-"+window)))
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// number reads a number that is not negative, -1 where there is none.
func number(s string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return -1
	}
	return n
}

// farthest bounds the seconds that are turned into a time, so that nothing overflows.
const farthest = 400 * 24 * 3600

func after(now time.Time, seconds float64) time.Time {
	if seconds < 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(min(seconds, farthest) * float64(time.Second)))
}

// unix reads seconds since 1970; a number that is too small for one is none.
func unix(s string) time.Time {
	n := number(s)
	if n < 1e9 || n > 1e11 {
		return time.Time{}
	}
	return time.Unix(int64(n), 0).UTC()
}

func retryAfter(now time.Time, s string) time.Time {
	if n := number(s); n >= 0 {
		return after(now, n)
	}
	if t, err := http.ParseTime(s); err == nil {
		return t.UTC()
	}
	return time.Time{}
}

// lasting reads a duration such as 3600s, 1h0m0s, 6m0s or 2d.
func lasting(now time.Time, s string) time.Time {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n := number(days); n >= 0 {
			return after(now, n*24*3600)
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return time.Time{}
	}
	return after(now, d.Seconds())
}
