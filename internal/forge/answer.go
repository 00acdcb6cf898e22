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

// maxAnswer limits an answer in bytes. Payloads reach 25 MB; a page may have 100 comments of 65,536 characters.
const maxAnswer = 32 << 20

// answer holds the result of one try.
type answer struct {
	path      string
	sent      bool // false if the request was never sent
	status    int  // zero without an answer
	header    http.Header
	message   string
	secondary bool  // GitHub's message names a secondary limit
	limit     bool  // the message is about a limit
	blocked   bool  // GitHub blocked the repository for legal reasons or by its terms of service
	err       error // why the answer is unusable
}

// read reads an answer. broken is a read error. A success must have the JSON fields in holds.
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
		a.blocked = failed.Block != nil
		a.message = secret.Redact(clip(message, 1000))
	}
}

// usable returns an error unless the answer is JSON with the required fields.
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

// limitWords match messages and page addresses about limits, from old and new GitHub versions.
var limitWords = regexp.MustCompile(`(?i)rate[ -]limit|abuse detection|submitted too quickly`)

// fullMessage joins GitHub's message and the details of a 422.
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
	// Done, or a redirect that may be followed.
	done class = iota
	// Refused for good.
	refused
	// Not done; retry after a wait.
	limited
	// Perhaps done.
	unknown
)

// class interprets an answer. After a broken 2xx, GitHub may have done the work.
func (a answer) class() class {
	switch {
	case a.status == 0, a.err != nil, a.status >= 500, a.status == http.StatusRequestTimeout:
		return unknown
	case a.status < 400:
		return done
	case a.isForeign() && !a.showsLimit():
		return unknown
	case a.isLimit():
		return limited
	default:
		return refused
	}
}

// isLimit distinguishes a limit from a missing permission, since GitHub uses 403 for both. A 403 without a reason
// counts as a limit.
func (a answer) isLimit() bool {
	switch {
	case a.status == http.StatusTooManyRequests:
		return true
	case a.status != http.StatusForbidden:
		return false
	case a.limit, a.message == "", a.showsLimit():
		return true
	default:
		return strings.EqualFold(a.message, http.StatusText(a.status))
	}
}

// isForeign reports whether a refusal comes from a proxy or firewall. Such an answer is an HTML page, or it lacks the
// message that each of GitHub's refusals has.
func (a answer) isForeign() bool {
	switch {
	case a.status/100 != 4:
		return false
	case strings.HasPrefix(a.header.Get("Content-Type"), "text/html"):
		return true
	case a.status == http.StatusForbidden, a.status == http.StatusTooManyRequests: // see isLimit
		return false
	default:
		return a.message == ""
	}
}

// showsLimit reports whether status or headers show a limit.
func (a answer) showsLimit() bool {
	if a.status == http.StatusTooManyRequests {
		return true
	}
	if a.header.Get("Retry-After") != "" {
		return true
	}
	return exhausted(a.header)
}

// wantsPause reports whether GitHub wants no requests: after a limit, the hour's last request, or an outage with a
// retry-after.
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
	_, named := retryAfter(a.header, now)
	return named
}

func (a answer) mentions(words string) bool {
	return strings.Contains(strings.ToLower(a.message), words)
}

func exhausted(h http.Header) bool { return h.Get("X-Ratelimit-Remaining") == "0" }

// exhaustedUntil returns the reset of an exhausted hourly limit.
func exhaustedUntil(h http.Header) (reset time.Time, ok bool) {
	if !exhausted(h) {
		return time.Time{}, false
	}
	return resetTime(h)
}

// unspecifiedWait applies if GitHub names no time ("at least one minute", REST best practices). Refusals double it.
const unspecifiedWait = time.Minute

// longestWait limits a requested wait to the hourly window; later times come from a wrong clock.
const longestWait = time.Hour

// limitEnds returns when to ask again. GitHub documents the order: retry-after, hourly reset, doubling minutes.
// secondary is false for the hourly limit; named means that GitHub gave a time.
func limitEnds(a answer, now time.Time, strikes int) (until time.Time, secondary, named bool) {
	if after, ok := retryAfter(a.header, now); ok {
		return now.Add(min(max(after, time.Second), longestWait)), a.secondary || !exhausted(a.header), true
	}
	if reset, ok := exhaustedUntil(a.header); ok {
		// The reset is in whole seconds, so add one.
		return now.Add(min(max(reset.Sub(now)+time.Second, time.Second), longestWait)), false, true
	}
	return now.Add(policy.Retry(strikes+1, unspecifiedWait, longestWait, 1)), true, false
}

// retryAfter parses seconds, or a date (RFC 9110, 10.2.3) as proxies send it.
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
