package forge

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/policy"
)

// maxAnswer limits one answer in bytes. The largest are a payload of 25 MB and a page of 100 comments of at most
// 65,536 characters, four bytes each.
const maxAnswer = 32 << 20

// answer is the result of one try: GitHub's answer, or that none arrived.
type answer struct {
	path      string
	sent      bool // false if the fence or the clock kept it back
	status    int  // zero: no answer arrived
	header    http.Header
	message   string
	secondary bool  // GitHub called it a secondary limit
	limit     bool  // GitHub's message is about a limit
	err       error // why there is no usable answer
}

// read reads an answer; broken is why it could not be read whole. A success must have some fields.
func (a *answer) read(resp *http.Response, body []byte, broken error, holds []string) {
	a.status, a.header = resp.StatusCode, resp.Header
	switch {
	case a.status < 300:
		a.err = broken
		if broken == nil {
			a.err = usable(body, holds)
		}
	case a.status >= 400:
		var failed github.ErrorResponse
		if json.Unmarshal(body, &failed) != nil {
			return
		}
		message := fullMessage(failed)
		a.secondary = strings.Contains(strings.ToLower(message), "secondary rate limit")
		a.limit = limitWords.MatchString(message) || limitWords.MatchString(failed.DocumentationURL)
		a.message = secret.Redact(clip(message, 1000))
	}
}

// usable says why an answer is unusable: it must be JSON with the expected fields.
func usable(body []byte, holds []string) error {
	if len(holds) == 0 {
		return json.Unmarshal(body, new(json.RawMessage))
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(body, &got); err != nil {
		return err
	}
	for _, name := range holds {
		switch string(got[name]) {
		case "", "0", `""`, "null":
			return errors.New("the answer holds no " + name)
		}
	}
	return nil
}

// limitWords are words about limits in GitHub's messages, in its older versions', and in the addresses of its pages
// about limits.
var limitWords = regexp.MustCompile(`(?i)rate[ -]limit|abuse detection|submitted too quickly`)

// fullMessage joins GitHub's message with the details of a 422, which say what is wrong.
func fullMessage(e github.ErrorResponse) string {
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

type class int

const (
	// done, or a redirect that may be followed.
	done class = iota
	// refused: GitHub said no, and will again.
	refused
	// limited: not done; ask again after a wait.
	limited
	// unknown: perhaps done, perhaps not.
	unknown
)

// class decides what an answer means. After a 2xx that broke off GitHub may well have done the work.
func (a answer) class() class {
	switch {
	case a.status == 0, a.err != nil, a.status >= 500, a.status == http.StatusRequestTimeout:
		return unknown
	case a.status < 400:
		return done
	case a.isPage() && !a.saysWhen():
		return unknown
	case a.isLimit():
		return limited
	default:
		return refused
	}
}

// isLimit separates a limit from a refusal. GitHub uses 403 for a limit and for a missing permission. A 403 without
// a reason is waited out.
func (a answer) isLimit() bool {
	switch {
	case a.status == http.StatusTooManyRequests:
		return true
	case a.status != http.StatusForbidden:
		return false
	case a.limit, a.message == "", a.saysWhen():
		return true
	default:
		return strings.EqualFold(a.message, http.StatusText(a.status))
	}
}

// isPage says that a refusal is a page for people, from a proxy or a firewall; GitHub's API answers in JSON.
func (a answer) isPage() bool {
	if a.status/100 != 4 {
		return false
	}
	return strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
}

// saysWhen says that the status or the headers make an answer a limit, whatever its body is.
func (a answer) saysWhen() bool {
	if a.status == http.StatusTooManyRequests {
		return true
	}
	if a.header.Get("Retry-After") != "" {
		return true
	}
	return exhausted(a.header)
}

// wantsPause says that GitHub wants no request for a time: after a limit, after the hour's last request, or during
// an outage of known length.
func (a answer) wantsPause(now time.Time) bool {
	if a.class() == limited {
		return true
	}
	reset, _ := exhaustedUntil(a.header)
	if reset.After(now) {
		return true
	}
	if a.status < 500 {
		return false
	}
	_, says := retryAfter(a.header, now)
	return says
}

// says looks for lower-case words in GitHub's message.
func (a answer) says(words string) bool {
	return strings.Contains(strings.ToLower(a.message), words)
}

func exhausted(h http.Header) bool { return h.Get("X-Ratelimit-Remaining") == "0" }

// exhaustedUntil is the reset of a used-up hourly limit.
func exhaustedUntil(h http.Header) (reset time.Time, ok bool) {
	if !exhausted(h) {
		return time.Time{}, false
	}
	return resetTime(h)
}

// unspecifiedWait is GitHub's rule if it names no time ("wait for at least one minute", best practices for the REST
// API), and "an exponentially increasing amount of time" after that.
const unspecifiedWait = time.Minute

// longestWait limits the wait that an answer can ask for: the window of the hourly limit. A later time comes from a
// wrong clock.
const longestWait = time.Hour

// limitEnds says until when GitHub wants no request, in its documented order: retry-after, the reset of an
// exhausted hourly limit, one minute that doubles. secondary is true except for the hourly limit; named says that
// GitHub gave a time.
func limitEnds(a answer, now time.Time, strikes int) (until time.Time, secondary, named bool) {
	if after, ok := retryAfter(a.header, now); ok {
		return now.Add(min(max(after, time.Second), longestWait)), a.secondary || !exhausted(a.header), true
	}
	if reset, ok := exhaustedUntil(a.header); ok {
		// The reset is in whole seconds; one more avoids an early request.
		return now.Add(min(max(reset.Sub(now)+time.Second, time.Second), longestWait)), false, true
	}
	return now.Add(policy.Retry(strikes+1, unspecifiedWait, longestWait, 1)), true, false
}

// retryAfter is in seconds, as GitHub gives it, or a date (RFC 9110, 10.2.3), as proxies do.
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
