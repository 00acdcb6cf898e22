package limit

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// HeaderReset returns the reset in an answer's headers; zero for none. The order is: Claude's plan, Codex's used-up
// windows, general headers, exhausted windows, then the only window of routers and the IETF's draft.
func HeaderReset(h http.Header, received time.Time) time.Time {
	var plan, window time.Time
	if h.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" {
		plan = unix(h.Get("Anthropic-Ratelimit-Unified-Reset"))
	}
	for _, name := range []string{"Primary", "Secondary"} {
		if number(h.Get("X-Codex-"+name+"-Used-Percent")) >= 100 {
			window = policy.Later(window, unix(h.Get("X-Codex-"+name+"-Reset-At")))
		}
	}
	wait := h.Get("Retry-After")
	date, _ := http.ParseTime(wait) // zero for none
	return cmp.Or(
		plan,
		window,
		after(received, number(h.Get("Retry-After-Ms"))/1000),
		after(received, number(wait)),
		date.UTC(),
		emptyWindows(h, received),
		onlyWindow(h, received),
	)
}

// onlyWindow parses X-RateLimit-Reset and RateLimit-Reset without a window's name: unix seconds or milliseconds
// (OpenRouter, GitHub), or seconds to wait (IETF draft). A window that is not exhausted does not count.
func onlyWindow(h http.Header, received time.Time) time.Time {
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		left := h.Get(prefix + "Remaining")
		if left != "" && number(left) != 0 {
			continue
		}
		reset := h.Get(prefix + "Reset")
		at := cmp.Or(unix(reset), after(received, number(reset)), lasting(received, reset))
		if !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// emptyWindows returns the latest reset of the exhausted windows. Anthropic gives a time, OpenAI a duration.
func emptyWindows(h http.Header, received time.Time) time.Time {
	var at time.Time
	for name := range h {
		if h.Get(name) != "0" {
			continue
		}
		if m := anthropicWindow.FindStringSubmatch(name); m != nil {
			t, _ := time.Parse(time.RFC3339, h.Get(m[1]+"Reset")) // zero for none
			at = policy.Later(at, t.UTC())
		}
		if window, ok := strings.CutPrefix(name, "X-Ratelimit-Remaining-"); ok {
			at = policy.Later(at, lasting(received, h.Get("X-Ratelimit-Reset-"+window)))
		}
	}
	return at
}

var anthropicWindow = regexp.MustCompile(`^(Anthropic-Ratelimit-.*-)Remaining$`)

func number(s string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return -1
	}
	return n
}

// after returns now plus seconds, at most farthest; zero for a negative number.
func after(now time.Time, seconds float64) time.Time {
	return ahead(now, min(seconds, farthest.Seconds()))
}

func between[T cmp.Ordered](v, least, most T) bool { return v >= least && v <= most }

// unix parses seconds or milliseconds since 1970; zero for other numbers.
func unix(s string) time.Time {
	n := number(s)
	switch {
	case between(n, 1e9, 1e11):
		return time.Unix(int64(n), 0).UTC()
	case between(n, 1e12, 1e14):
		return time.UnixMilli(int64(n)).UTC()
	}
	return time.Time{}
}
