package limit

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// longestPause limits a pause before a request. Providers count requests and tokens by the minute. A longer wait is
// left to the provider's refusal, which names it.
const longestPause = time.Minute

// Pause returns how long to wait before the next request, until the used-up requests or tokens of a minute are
// available again. It is 0 without such headers.
func Pause(h http.Header, received time.Time) (pause time.Duration) {
	for name := range h {
		limited := strings.Contains(name, "Ratelimit-") && strings.Contains(name, "Remaining")
		if !limited || number(h.Get(name)) != 0 {
			continue
		}
		reset := resetAt(h.Get(strings.Replace(name, "Remaining", "Reset", 1)), received)
		if left := reset.Sub(received); left <= longestPause {
			pause = max(pause, left)
		}
	}
	return pause
}

// resetAt parses a time, or a duration that begins at from: 6m0s, or seconds. Zero for anything else.
func resetAt(s string, from time.Time) time.Time {
	if d, err := time.ParseDuration(s); err == nil {
		return from.Add(d)
	}
	at, _ := time.Parse(time.RFC3339, s)
	return cmp.Or(at, unix(s), after(from, number(s)))
}
