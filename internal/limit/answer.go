package limit

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// maxMessage bounds the message of a limit in characters.
const maxMessage = 1 << 10

// Answer is an error of a provider, whichever protocol it came in.
type Answer struct {
	Status  int // of HTTP; 0 within a stream, until the body names one
	Header  http.Header
	Message string

	foreign bool         // it is no answer of the API, but a page of something before it
	names   []string     // type, code, status and reasons of the error, in lower case
	body    gjson.Result // the error, which exists where the body is JSON
}

// Read reads an error body, or the error of a stream (status 0, no header).
func Read(status int, header http.Header, body []byte) Answer {
	a := Answer{Status: status, Header: header}
	if !gjson.ValidBytes(body) {
		a.Message = render.Block(string(body), maxMessage)
		a.foreign = strings.HasPrefix(a.Message, "<")
		if a.foreign {
			a.Message = "an answer that is not the API's (HTML)"
		}
		return a
	}
	e := errorOf(gjson.ParseBytes(body))
	if e.Type == gjson.String { // some servers say only a sentence
		a.Message = e.String()
		return a
	}
	a.body = e
	a.Message = e.Get("message").String()
	a.Status = cmp.Or(a.Status, statusOf(e))
	a.names = namesOf(e)
	return a
}

// errorOf finds the error in a body. Google wraps those of some streams in a list.
func errorOf(e gjson.Result) gjson.Result {
	if e.IsArray() {
		e = e.Get("0")
	}
	if inner := e.Get("error"); inner.Type != gjson.Null {
		return inner
	}
	return e
}

// statusOf is the status of HTTP that an error names as its code, 0 for none.
func statusOf(e gjson.Result) int {
	n, _ := strconv.Atoi(e.Get("code").String()) // 0 for words
	switch n / 100 {
	case 4, 5:
		return n
	}
	return 0
}

func namesOf(e gjson.Result) (names []string) {
	reasons := e.Get("details.#.reason").Array()
	for _, name := range append(reasons, e.Get("type"), e.Get("code"), e.Get("status")) {
		if name.String() != "" {
			names = append(names, strings.ToLower(name.String()))
		}
	}
	return names
}

// Foreign reports whether a page came in place of the API's answer: a proxy's sign-in, a CDN's challenge, a dead
// gateway's error. It tells that the provider is out of reach, and nothing of the account or its load.
func (a Answer) Foreign() bool { return a.foreign && a.Status != http.StatusTooManyRequests }

type meaning struct {
	kind policy.Ending
	// ofAccount says that it holds for every model of the account.
	ofAccount bool
	names     []string
}

// meanings are the names of refusals: OpenAI's type and code, Codex's usage errors, Anthropic's type, Google's
// status and reason, opencode's gateway's types.
var meanings = []meaning{
	{policy.UsageLimit, true, []string{
		"usage_limit_reached", "usage_limit_exceeded",
		"insufficient_quota", "insufficient_credits",
		"billing_error", "billing_hard_limit_reached",
		"credits_exhausted", "creditserror",
	}},
	{policy.UsageLimit, false, []string{"usage_not_included", "quota_exhausted"}},
	{policy.RateLimited, false, []string{
		"rate_limit_exceeded", "rate_limit_error", "rate_limit_reached",
		"resource_exhausted", "too_many_requests",
	}},
	{policy.Overloaded, false, []string{
		"overloaded_error", "overloaded", "server_is_overloaded",
		"service_unavailable_error", "unavailable", "slow_down",
		"internal", "internal_error", "api_error", "server_error",
	}},
	{policy.Auth, true, []string{
		"authentication_error", "unauthenticated",
		"invalid_api_key", "api_key_invalid",
		"account_deactivated",
	}},
}

// usageName matches other names of used-up plans, such as FreeUsageLimitError.
var usageName = regexp.MustCompile(`usage_?limit|monthlylimit`)

func meaningOf(name string) meaning {
	for _, m := range meanings {
		if slices.Contains(m.names, name) {
			return m
		}
	}
	if usageName.MatchString(name) {
		return meaning{kind: policy.UsageLimit}
	}
	return meaning{}
}

func (a Answer) Named(kind policy.Ending) bool {
	return slices.ContainsFunc(a.names, func(name string) bool { return meaningOf(name).kind == kind })
}

func (a Answer) is(names ...string) bool {
	return slices.ContainsFunc(a.names, func(name string) bool { return slices.Contains(names, name) })
}

// OfAccount reports whether a refusal holds for the account, whichever model was asked for.
func (a Answer) OfAccount() bool {
	if a.Status == http.StatusUnauthorized || a.planRejected() || a.usedUp() {
		return true
	}
	return slices.ContainsFunc(a.names, func(name string) bool { return meaningOf(name).ofAccount })
}

var (
	// ofOneThing matches a permission that is missing for a thing of the request and not for the account.
	ofOneThing = regexp.MustCompile(`(?i)\b(?:files?|caches?|cached ?contents?|models?|tuned ?models?|corpus|corpora|containers?|skills?|beta|feature)\b|cachedContent`)
	// keyLike matches a key, also one that the provider has masked in part.
	keyLike = regexp.MustCompile(`\S*\*{2,}\S*|\b(?:(?:sk|pk|rk)[-_]|AIza)[\w-]{6,}`)
	// vague is Google's sentence for every resource_exhausted, that of a minute as
	// well. It tells of a used-up quota only once a CLI has given up.
	vague = regexp.MustCompile(`(?i)resource has been exhausted`)
)

// kind is what the error refuses, "" for an error of the request itself, such as an unknown model. The message,
// which may repeat the request, counts only where the rest tells of a limit.
func (a Answer) kind() policy.Ending {
	switch {
	case a.Foreign():
		return ""
	case a.Named(policy.UsageLimit), a.Status == http.StatusPaymentRequired, a.usedUp():
		return policy.UsageLimit
	case a.Status == http.StatusUnauthorized, a.Named(policy.Auth), a.forbidden():
		return policy.Auth
	case a.planRejected():
		return policy.UsageLimit
	case a.Status == http.StatusTooManyRequests, a.Named(policy.RateLimited):
		return a.rate()
	case a.Status >= 500:
		return policy.Overloaded
	case a.Status == 0 && a.Named(policy.Overloaded):
		return policy.Overloaded
	}
	return ""
}

// forbidden reports whether the account lacks a permission.
func (a Answer) forbidden() bool {
	if a.Status != http.StatusForbidden || ofOneThing.MatchString(a.Message) {
		return false
	}
	return a.is("permission_error", "permission_denied")
}

// rate tells a refusal that is named as one of a rate from a used-up plan, by its message.
func (a Answer) rate() policy.Ending {
	said, _ := Classify(a.Message)
	if said != policy.UsageLimit {
		return policy.RateLimited
	}
	if vague.MatchString(a.Message) || a.is("rate_limit_error", "rate_limit_exceeded") {
		return policy.RateLimited
	}
	return policy.UsageLimit
}

func (a Answer) planRejected() bool {
	return a.Header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" && a.Status == http.StatusTooManyRequests
}

// usedUp reads the usage limits of Anthropic that come as errors of the request, which may repeat the words: of prepaid
// credit, and of the spend that an organisation allows itself.
func (a Answer) usedUp() bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	default:
		return false
	}
	return a.is("invalid_request_error") && spent.MatchString(a.Message)
}

var spent = regexp.MustCompile(`^(?:Your credit balance is too low|You have reached your specified API usage limits)`)

func (a Answer) Limit(now time.Time) (policy.Limit, bool) {
	l := policy.Limit{
		Kind:      a.kind(),
		Message:   shortened(a.Message),
		Source:    policy.SourceNone,
		Certainty: policy.Certain,
	}
	if l.Kind == "" {
		return policy.Limit{}, false
	}
	if l.Kind == policy.Auth {
		l.Message = shortened(keyLike.ReplaceAllString(a.Message, "…"))
		return l, true
	}
	at, source := a.reset(now)
	quotas := a.body.Get("details.#.violations.#.quotaId").Raw // that are used up, as Google tells them
	if perDay.MatchString(quotas) && at.Sub(now) <= longWait {
		// Gemini tells of a day's quota how soon its client may ask again.
		at = time.Time{}
	}
	if !a.Named(policy.UsageLimit) && !a.planRejected() {
		l.Kind, _ = Weigh(l.Kind, a.Message+" "+quotas, at, now)
	}
	if at.IsZero() {
		return l, true
	}
	soonest := time.Duration(0) // those of a minute pass sooner
	if l.Kind == policy.UsageLimit {
		soonest = Soonest
	}
	l.Source = source
	l.ResetsAt, _ = Bound(at, now, soonest)
	return l, true
}

func shortened(message string) string {
	return render.Short(strings.ToValidUTF8(message, ""), maxMessage)
}

// reset finds when the limit is over, and in what: a field of the body, a header, last the sentence.
func (a Answer) reset(now time.Time) (time.Time, string) {
	routed := http.Header{} // OpenRouter repeats a provider's headers in the body
	a.body.Get("metadata.headers").ForEach(func(name, v gjson.Result) bool {
		routed.Set(name.String(), v.String())
		return true
	})
	at := cmp.Or(
		unix(a.body.Get("resets_at").String()),
		after(now, number(a.body.Get("resets_in_seconds").String())),
		a.detailedReset(now),
		HeaderReset(a.Header, now),
		HeaderReset(routed, now),
	)
	if !at.IsZero() {
		return at, policy.SourceStructured
	}
	at, _ = ResetTime(a.Message, now, nil)
	return at, policy.SourceText
}

// detailedReset reads the details of Google's errors, the quota's reset before the delay.
func (a Answer) detailedReset(now time.Time) time.Time {
	detail := func(field string) string { return a.body.Get("details.#." + field + "|0").String() }
	at, _ := time.Parse(time.RFC3339, detail("metadata.quotaResetTimeStamp")) // zero where there is none
	return cmp.Or(
		at.UTC(),
		lasting(now, detail("metadata.quotaResetDelay")),
		lasting(now, detail("retryDelay")),
	)
}

// HeaderReset reads the headers of an answer received at a time: Claude's plan, Codex's used-up windows, what
// every server may say, windows with nothing left, the one window of routers and of IETF's draft. Zero where they tell nothing.
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
	date, _ := http.ParseTime(wait) // zero where it is none
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

// onlyWindow reads X-RateLimit-Reset and RateLimit-Reset without a window's name: a unix time in seconds or
// milliseconds (OpenRouter, GitHub), or seconds to wait (the IETF's draft). A window that has something left is none.
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

// emptyWindows is when the last window with nothing remaining opens: Anthropic gives a time, OpenAI a duration.
func emptyWindows(h http.Header, received time.Time) time.Time {
	var at time.Time
	for name := range h {
		if h.Get(name) != "0" {
			continue
		}
		if m := anthropicWindow.FindStringSubmatch(name); m != nil {
			t, _ := time.Parse(time.RFC3339, h.Get(m[1]+"Reset")) // zero where it is none
			at = policy.Later(at, t.UTC())
		}
		if window, ok := strings.CutPrefix(name, "X-Ratelimit-Remaining-"); ok {
			at = policy.Later(at, lasting(received, h.Get("X-Ratelimit-Reset-"+window)))
		}
	}
	return at
}

var anthropicWindow = regexp.MustCompile(`^(Anthropic-Ratelimit-.*-)Remaining$`)

// number reads a number that is not negative, -1 where there is none.
func number(s string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return -1
	}
	return n
}

// after is so many seconds from now, the farthest for more; zero for a negative number.
func after(now time.Time, seconds float64) time.Time {
	return ahead(now, min(seconds, farthest.Seconds()))
}

// unix reads seconds since 1970, or milliseconds, whose numbers are a thousand times as large; one that is too small for
// either is none.
func unix(s string) time.Time {
	n := number(s)
	switch {
	case n >= 1e9 && n <= 1e11:
		return time.Unix(int64(n), 0).UTC()
	case n >= 1e12 && n <= 1e14:
		return time.UnixMilli(int64(n)).UTC()
	}
	return time.Time{}
}
