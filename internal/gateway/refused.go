package gateway

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// maxMessage bounds the message of a limit in bytes.
const maxMessage = 1 << 10

// failure is an error of a provider, whichever protocol it came in.
type failure struct {
	status  int // of HTTP; 0 within a stream, until the body names one
	header  http.Header
	words   []string // type, code and status of the error, in lower case
	message string
	resets  string // body's resets_at, in unix seconds
	wait    string // body's resets_in_seconds
	details []geminiDetail
}

// geminiDetail is one of the details of Google's errors.
type geminiDetail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
	Violations []struct {
		QuotaID string `json:"quotaId"`
	} `json:"violations"`
	Metadata struct {
		ResetDelay string `json:"quotaResetDelay"`
		ResetTime  string `json:"quotaResetTimeStamp"`
	} `json:"metadata"`
}

type wireError struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Resets  json.Number     `json:"resets_at"`
	Wait    json.Number     `json:"resets_in_seconds"`
	Details []geminiDetail  `json:"details"`
}

// readFailure reads an error body, or the error of a stream (status 0, no header).
func readFailure(status int, header http.Header, body []byte) failure {
	f := failure{status: status, header: header}
	var outer struct {
		Error json.RawMessage `json:"error"`
		wireError
	}
	if list := []json.RawMessage(nil); json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0] // Google wraps errors of some streams in a list
	}
	if json.Unmarshal(body, &outer) != nil {
		f.message = plainText(body)
		return f
	}
	e := outer.wireError
	if len(outer.Error) > 0 && string(outer.Error) != "null" {
		e = wireError{}
		if json.Unmarshal(outer.Error, &e) != nil {
			json.Unmarshal(outer.Error, &e.Message) // some servers say only a sentence
		}
	}
	code := strings.Trim(string(e.Code), `"`)
	for _, w := range []string{e.Type, code, e.Status} {
		if w != "" && w != "null" {
			f.words = append(f.words, strings.ToLower(w))
		}
	}
	if n := number(code); f.status == 0 && n >= 400 && n < 600 {
		f.status = int(n)
	}
	f.message, f.resets, f.wait, f.details = e.Message, e.Resets.String(), e.Wait.String(), e.Details
	for _, d := range e.Details {
		if d.Reason != "" {
			f.words = append(f.words, strings.ToLower(d.Reason))
		}
	}
	return f
}

// plainText is what can be shown of a body that is not the API's.
func plainText(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), maxMessage)]), ""))
	if strings.HasPrefix(text, "<") {
		return "an answer that is not the API's (HTML)"
	}
	return text
}

// Words by which providers name their errors: OpenAI's type and code, Codex's
// usage errors, Anthropic's type, Google's status and reason.
var (
	usageNames = map[string]bool{
		"usage_limit_reached": true, "usage_limit_exceeded": true, "usage_not_included": true, "insufficient_quota": true,
		"billing_error": true, "billing_hard_limit_reached": true, "quota_exhausted": true, "credits_exhausted": true,
	}
	// accountNames are those of usageNames that hold for every model of the account.
	accountNames = map[string]bool{
		"usage_limit_reached": true, "usage_limit_exceeded": true, "insufficient_quota": true,
		"billing_error": true, "billing_hard_limit_reached": true, "credits_exhausted": true,
	}
	rateNames = map[string]bool{
		"rate_limit_exceeded": true, "rate_limit_error": true, "rate_limit_reached": true, "resource_exhausted": true, "too_many_requests": true,
	}
	overloadNames = map[string]bool{
		"overloaded_error": true, "overloaded": true, "server_is_overloaded": true, "service_unavailable_error": true, "slow_down": true,
		"unavailable": true, "internal": true, "api_error": true, "server_error": true, "internal_error": true,
	}
	// keyNames are of the key itself, permissionNames of what it may do, which
	// may be a matter of one file or one model.
	keyNames = map[string]bool{
		"authentication_error": true, "invalid_api_key": true, "api_key_invalid": true, "unauthenticated": true, "account_deactivated": true,
	}
	permissionNames = map[string]bool{"permission_error": true, "permission_denied": true}
	requestNames    = map[string]bool{"invalid_request_error": true}

	usageText = regexp.MustCompile(`(?i)credit balance is too low|credits? (?:are|is) (?:depleted|exhausted)|insufficient (?:balance|funds|credits)|usage limit (?:has been |is )?(?:reached|exceeded)|you(?:['’]ve| have) (?:hit|reached|exceeded|exhausted) your [\w .\-]{0,40}(?:limit|quota|capacity)|you exceeded your current quota`)
	// ofOneThing matches a permission that is missing for something that the
	// request names and not for the account.
	ofOneThing = regexp.MustCompile(`(?i)\b(?:files?|caches?|cached ?contents?|models?|tuned ?models?|corpus|corpora|containers?|skills?|beta|feature)\b|cachedContent`)
	// keyLike matches a key, also one that the provider has masked in part.
	keyLike = regexp.MustCompile(`\S*\*{2,}\S*|\b(?:(?:sk|pk|rk)[-_]|AIza)[\w-]{6,}`)
	// perDay names a window that is not over within minutes.
	perDay = regexp.MustCompile(`(?i)\bper[ _-]?(?:day|week|month)\b|PerDay|\b(?:daily|weekly|monthly)\b|\((?:RPD|TPD)\)`)
)

func (f failure) named(names map[string]bool) bool {
	for _, w := range f.words {
		if names[w] {
			return true
		}
	}
	return false
}

// longWait separates a short rate limit from a usage limit where the provider
// says only that it is too much: limits of a minute end within minutes, those of
// a plan take hours.
const longWait = 10 * time.Minute

// limit tells whether the error is a limit, and of which kind. An error of the
// request itself (no such model, context too long) is none.
func (f failure) limit(now time.Time) (Limit, bool) {
	kind, worded := f.kind()
	l := Limit{Message: shortened(f.message), At: now, Kind: kind}
	if kind == Auth {
		l.Message = shortened(keyLike.ReplaceAllString(f.message, "…"))
	}
	if l.Kind == "" {
		return Limit{}, false
	}
	if l.Kind != Auth {
		l.ResetsAt, l.Exact = f.reset(now)
	}
	long := l.ResetsAt.Sub(now) > longWait
	daily := perDay.MatchString(f.message) || f.dailyQuota()
	if f.dailyQuota() && !long {
		// Gemini tells of a day's quota how soon its client may ask again.
		l.ResetsAt, l.Exact = time.Time{}, false
	}
	switch {
	case l.Kind == RateLimited && (long || daily):
		l.Kind = UsageLimit
	case worded && !l.ResetsAt.IsZero() && !long && !daily:
		l.Kind = RateLimited // Gemini's limits of a minute are worded like a plan's
	}
	l.clamp(now)
	return l, true
}

// kind is "" for an error that is no limit. The second result is true where only
// the wording of the message tells that a quota is used up.
func (f failure) kind() (kind string, worded bool) {
	switch {
	case f.named(usageNames) || f.status == http.StatusPaymentRequired || f.creditIsLow():
		return UsageLimit, false
	case f.keyRefused() || f.status == http.StatusForbidden && f.named(permissionNames) && !ofOneThing.MatchString(f.message):
		return Auth, false
	case f.planRejected():
		return UsageLimit, false
	case f.status == http.StatusTooManyRequests || f.named(rateNames):
		if usageText.MatchString(f.message) {
			return UsageLimit, true
		}
		return RateLimited, false
	case f.status >= 500 || f.status == 0 && f.named(overloadNames):
		return Overloaded, false
	}
	return "", false
}

// ofAccount reports whether a refusal holds for the account whichever model was
// asked for; the others may be those of one model.
func (f failure) ofAccount() bool {
	return f.named(accountNames) || f.keyRefused() || f.planRejected() || f.creditIsLow()
}

func (f failure) keyRefused() bool {
	return f.status == http.StatusUnauthorized || f.named(keyNames)
}

func (f failure) planRejected() bool {
	return f.header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" && f.status == http.StatusTooManyRequests
}

// creditIsLow reads the one usage limit that comes as an error of the request. A
// message that merely contains the words may repeat them from the request.
func (f failure) creditIsLow() bool {
	ofRequest := f.status == http.StatusBadRequest || f.status == http.StatusUnprocessableEntity
	return ofRequest && f.named(requestNames) && strings.HasPrefix(f.message, "Your credit balance is too low")
}

func (f failure) dailyQuota() bool {
	for _, d := range f.details {
		for _, v := range d.Violations {
			if perDay.MatchString(v.QuotaID) {
				return true
			}
		}
	}
	return false
}

// The bounds of a reset that is believed. One that is later than a plan's week
// is a misreading; one that is nearer than a minute would be tried in vain.
const (
	soonest = 60 * time.Second
	latest  = 8 * 24 * time.Hour
)

func (l *Limit) clamp(now time.Time) {
	if l.ResetsAt.IsZero() {
		return
	}
	low := now
	if l.Kind == UsageLimit {
		low = now.Add(soonest)
	}
	if high := now.Add(latest); l.ResetsAt.After(high) {
		l.ResetsAt, l.Exact = high, false
	}
	if l.ResetsAt.Before(low) {
		l.ResetsAt, l.Exact = low, false
	}
}

func shortened(text string) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}
