package forge

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// answer is what one try came to: GitHub's answer, or that none arrived.
type answer struct {
	status    int // zero: no answer arrived
	header    http.Header
	message   string
	secondary bool // GitHub called it a secondary limit
	limit     bool // GitHub's words are those of a limit
	err       error
}

// newAnswer reads what the wire and go-github saw of one try.
func newAnswer(w *wire, err error) answer {
	a := answer{status: w.status, header: w.header, err: err}
	var failed *github.ErrorResponse
	var hourly *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	var otp *github.TwoFactorAuthError
	switch {
	case errors.As(err, &failed):
		a.message = fullMessage(failed)
		a.secondary = strings.Contains(strings.ToLower(a.message), "secondary rate limit")
		a.limit = namesLimit(a.message) || namesLimit(failed.DocumentationURL)
	case errors.As(err, &hourly):
		a.message = hourly.Message
	case errors.As(err, &abuse):
		a.message, a.secondary = abuse.Message, true
	case errors.As(err, &otp):
		a.message = otp.Message
	}
	a.message = Redact(Clip(a.message, 1000))
	return a
}

// namesLimit says that a refusal is a limit by its words: GitHub's messages, those
// of its older versions ("abuse detection mechanism"), and the addresses of the
// pages about limits.
func namesLimit(words string) bool {
	words = strings.ToLower(words)
	for _, limit := range []string{"rate limit", "rate-limit", "abuse detection", "submitted too quickly"} {
		if strings.Contains(words, limit) {
			return true
		}
	}
	return false
}

// fullMessage joins GitHub's message with the details it gives for 422, which
// hold the part that says what is wrong.
func fullMessage(e *github.ErrorResponse) string {
	parts := []string{e.Message}
	for _, detail := range e.Errors {
		switch {
		case detail.Message != "":
			parts = append(parts, detail.Message)
		case detail.Code != "":
			parts = append(parts, detail.Resource+"."+detail.Field+" "+detail.Code)
		}
	}
	return strings.Join(parts, ": ")
}

// verdict is what an answer means for the call.
type verdict int

const (
	// fine: done.
	fine verdict = iota
	// refused: GitHub said no, and will again.
	refused
	// unauthorized: the token is not valid, or no longer.
	unauthorized
	// limited: not done; ask again after a wait.
	limited
	// unknown: perhaps done, perhaps not.
	unknown
)

// judge decides what an answer means. A 2xx with an error is an answer that
// broke off or cannot be read: GitHub may well have done the work.
func judge(a answer) verdict {
	switch {
	case a.err == nil:
		return fine
	case a.status < 300, a.status >= 500, a.status == http.StatusRequestTimeout:
		return unknown
	case isPage(a) && !saysWhen(a):
		return unknown
	case a.status == http.StatusUnauthorized:
		return unauthorized
	case isLimit(a):
		return limited
	default:
		return refused
	}
}

// isPage says that a refusal is a page for people, which a proxy or a firewall
// gives; GitHub's API answers in JSON.
func isPage(a answer) bool {
	return a.status >= 400 && a.status < 500 && strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
}

// isLimit tells a limit from a missing permission; GitHub uses 403 for both, and
// says why. A 403 that gives no reason is waited out like a limit.
func isLimit(a answer) bool {
	if a.status == http.StatusTooManyRequests {
		return true
	}
	silent := a.message == "" || strings.EqualFold(a.message, http.StatusText(http.StatusForbidden))
	return a.status == http.StatusForbidden && (a.secondary || a.limit || silent || saysWhen(a))
}

// saysWhen says that the status or the headers make an answer a limit, whatever its
// body is.
func saysWhen(a answer) bool {
	return a.status == http.StatusTooManyRequests || a.header.Get("Retry-After") != "" || exhausted(a.header)
}

// exhausted says that the hourly limit is used up.
func exhausted(h http.Header) bool { return h.Get("X-Ratelimit-Remaining") == "0" }

// unspecifiedWait is what GitHub asks for when it names no time ("wait for at
// least one minute before retrying", best practices for the REST API); it asks
// for "an exponentially increasing amount of time" after that.
const unspecifiedWait = time.Minute

// longestWait bounds what an answer can ask for. The hourly limit's window is
// one hour, so a later time means that a clock is wrong; asking once more
// after an hour costs one request.
const longestWait = time.Hour

// limitEnds says until when GitHub wants no request, in the order GitHub
// documents: retry-after, then the reset of an exhausted hourly limit, then
// one minute, doubled for each refusal without a time before. secondary is true
// unless it is the hourly limit; named says that GitHub gave a time.
func limitEnds(a answer, now time.Time, strikes int) (until time.Time, secondary, named bool) {
	if after, ok := retryAfter(a.header, now); ok {
		return now.Add(min(max(after, time.Second), longestWait)), a.secondary || !exhausted(a.header), true
	}
	if reset, ok := resetTime(a.header); ok && exhausted(a.header) {
		// The reset is given in whole seconds; one more avoids coming too early.
		return now.Add(min(max(reset.Sub(now)+time.Second, time.Second), longestWait)), false, true
	}
	return now.Add(min(unspecifiedWait<<min(strikes, 6), longestWait)), true, false
}

// retryAfter is what the header asks for: seconds, as GitHub gives them, or a date
// (RFC 9110, 10.2.3), as proxies do.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

func resetTime(h http.Header) (time.Time, bool) {
	unix, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64)
	if err != nil || unix <= 0 {
		return time.Time{}, false
	}
	return time.Unix(unix, 0), true
}
