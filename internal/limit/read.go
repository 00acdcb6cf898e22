package limit

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

const (
	// maxMessage limits a limit's message in characters.
	maxMessage = 1 << 10
	// maxFailureText limits the parsed part of an error message in bytes.
	maxFailureText = 8 << 10
)

type Reading struct {
	// Kind is the run's ending; empty if unknown.
	Kind     policy.Ending
	ResetsAt time.Time // zero if unknown
	Source   string    // of ResetsAt, as in policy.Limit
	// Certainty is Certain from a field, Likely from words.
	Certainty string
	// OfAccount means that all models of the account are refused.
	OfAccount bool
	Message   string
	// Reasons describe corrections of the kind and the reset.
	Reasons []string
}

// Read classifies a refusal. The same refusal gives the same kind from any source.
func Read(e Evidence) Reading {
	if e.Seen == Plain && !e.isLine() {
		return Reading{}
	}
	e = e.unwrapped()
	r := Reading{
		Kind:      e.outranked(e.kind()),
		Source:    policy.SourceNone,
		Certainty: policy.Likely,
		Message:   e.shown(),
	}
	if e.field {
		r.Certainty = policy.Certain
	}
	if r.Kind.IsLimit() {
		r.OfAccount = e.ofAccount(r.Kind)
	}
	e.time(&r)
	return r
}

// Limit returns a reading as a limit; false for other kinds.
func (r Reading) Limit() (policy.Limit, bool) {
	if !r.Kind.IsLimit() {
		return policy.Limit{}, false
	}
	return policy.Limit{
		Kind:      r.Kind,
		ResetsAt:  r.ResetsAt,
		Source:    r.Source,
		Certainty: r.Certainty,
		Message:   r.Message,
	}, true
}

// keyLike matches a key, even if partly masked.
var keyLike = regexp.MustCompile(`\S*\*{2,}\S*|\b(?:(?:sk|pk|rk)[-_]|AIza)[\w-]{6,}`)

func (e Evidence) shown() string {
	message := e.Message
	if e.Seen == Gateway {
		message = keyLike.ReplaceAllString(message, "…")
	}
	return render.Short(strings.ToValidUTF8(message, ""), maxMessage)
}

// time corrects the kind by the limit's length, and bounds its reset.
func (e Evidence) time(r *Reading) {
	switch r.Kind {
	case policy.UsageLimit, policy.RateLimited, policy.Overloaded:
	default:
		return
	}
	at, source := e.reset()
	quotas := e.body.Get("details.#.violations.#.quotaId").Raw // Google's used-up quotas
	if perDay.MatchString(quotas) && at.Sub(e.Now) <= longWait {
		at = time.Time{} // Gemini sends a client's retry delay with a daily quota
	}
	why := ""
	if !e.fixed() {
		r.Kind, why = weigh(r.Kind, e.own+" "+quotas, e.hasteNamed(), at, e.Now)
	}
	if why != "" {
		r.Reasons = append(r.Reasons, why)
	}
	if at.IsZero() {
		return
	}
	if source == policy.SourceStructured {
		r.Certainty = policy.Certain
	}
	soonest := time.Duration(0)
	if r.Kind == policy.UsageLimit || e.Seen != Gateway {
		soonest = Soonest
	}
	r.Source = source
	r.ResetsAt, why = Bound(at, e.Now, soonest)
	if why != "" {
		r.Reasons = append(r.Reasons, why)
	}
}

// fixed reports whether a field names the kind, so the wait's length does not change it.
func (e Evidence) fixed() bool { return e.planRejected() || e.named(sentence.outspent) && e.field }

// outranked returns the field's kind, unless the words mean a used-up plan.
func (e Evidence) outranked(kind policy.Ending) policy.Ending {
	if e.Kind.IsLimit() && kind == policy.UsageLimit {
		return kind
	}
	return cmp.Or(e.Kind, kind)
}

func (e Evidence) kind() policy.Ending {
	if e.page() {
		return policy.Disconnected
	}
	own := plainWords(class.ReplaceAllString(e.own, ""))
	said := e.byMessage(own)
	if said == policy.UsageLimit && e.lacks(own) {
		return policy.UsageLimit
	}
	if ending := ofRun(e.names()); ending != "" {
		return ending
	}
	if e.planRejected() {
		return policy.UsageLimit
	}
	if e.namedUsage(said) {
		return policy.UsageLimit
	}
	if ending := ofRun(e.own + e.names()); ending != "" {
		return ending
	}
	if tooLarge(own) {
		return policy.Misconfigured
	}
	return cmp.Or(e.refusal(said), e.byWords(own))
}

func (e Evidence) refusal(kind policy.Ending) policy.Ending {
	switch {
	case e.Status >= 500, e.named(sentence.crowded):
		return policy.Overloaded
	case kind == policy.UsageLimit, e.Status == http.StatusPaymentRequired:
		return policy.UsageLimit
	case e.nameMatches(authName):
		return e.login()
	case kind != "":
		return kind
	case e.hasteNamed(), e.Status == http.StatusTooManyRequests:
		return policy.RateLimited
	}
	return e.login()
}

// login returns Auth if the account or its key is refused.
func (e Evidence) login() policy.Ending {
	switch {
	case e.Status == http.StatusForbidden && ofOneThing.MatchString(e.own):
		return policy.Misconfigured
	case e.Status == http.StatusForbidden, e.Status == http.StatusUnauthorized:
		return policy.Auth
	case e.nameMatches(authName):
		return policy.Auth
	case e.Status == 0 && e.nameMatches(serverName):
		return policy.Overloaded
	}
	return ""
}

func (e Evidence) names() string {
	all := ""
	for _, name := range e.Names {
		all += "\n" + name + "\n" + plainWords(name)
	}
	return all
}

func (e Evidence) byWords(own string) policy.Ending {
	ending := worded(e.own + e.names())
	if ending == "" && e.own != e.Message {
		ending = worded(e.Message)
	}
	if ending.IsLimit() && e.echoes(own) {
		ending = ""
	}
	return cmp.Or(ending, statuses[e.Status])
}

// statuses map HTTP statuses to endings if no word decides.
var statuses = map[int]policy.Ending{
	http.StatusNotFound:              policy.Misconfigured,
	http.StatusRequestTimeout:        policy.Disconnected,
	http.StatusRequestEntityTooLarge: policy.ContextOverflow,
}

var (
	authName   = regexp.MustCompile(`(?i)auth|api_?key|permission|forbidden|access_?denied|account_deactivated|login`)
	serverName = regexp.MustCompile(`(?i)^(?:internal|internal_error|api_error|server_error|unavailable)$`)
	// hasteName matches names of rate limits that do not say so: Google's for every quota, and OpenAI's types.
	hasteName   = regexp.MustCompile(`(?i)^(?:resource_?exhausted(?:exception)?|requests|tokens)$`)
	requestName = regexp.MustCompile(`(?i)^invalid|unknown|unsupported|not_?found|malformed|validation`)
	// echoName matches names of errors about a part of the request.
	echoName = regexp.MustCompile(`(?i)^(?:invalid_(?:value|param|type|json|prompt|image|function)|unknown_|unsupported|malformed|missing)|not_?found`)
	// accountName matches names of a login refused for all models.
	accountName = regexp.MustCompile(`(?i)authenti|unauth|api_?key|account`)
	// ofOneThing matches a missing permission for a part of the request.
	ofOneThing = regexp.MustCompile(`(?i)\b(?:files?|caches?|cached ?contents?|models?|tuned ?models?|corpus|corpora|containers?|skills?|beta|feature)\b|cachedContent`)
	// echoed matches words of an error about the request, which may repeat the request.
	echoed = regexp.MustCompile("[\"`“”]|'[^']{3,}'|\\b(?:invalid|unknown|unexpected|unsupported|unrecognized|malformed|expected|must be|parameter|field|values?|headers?|role|property|" +
		"schema|argument|exist|not found|permission|is no)\\b|^[^:]{0,40}\\b(?:model|file|tool|name|message|content)s?\\b[^:]{0,20}:")
)

// page reports whether the answer is not the API's: a sign-in page, a CDN's challenge, a gateway's error. A page with
// status 429 is its sender's limit.
func (e Evidence) page() bool {
	if e.Status == http.StatusTooManyRequests {
		return false
	}
	return e.Foreign() || markup.MatchString(e.Message)
}

var markup = regexp.MustCompile(`(?i)<!doctype html|<html[\s>]|<title>(?:just a moment|attention required|sign in|\d{3} )`)

// planRejected reads the headers of Claude's plans.
func (e Evidence) planRejected() bool {
	if e.Status != http.StatusTooManyRequests {
		return false
	}
	return e.Header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected"
}

func (e Evidence) named(is func(sentence) bool) bool {
	return slices.ContainsFunc(e.Names, func(name string) bool { return is(sentence(plainWords(name))) })
}

func (e Evidence) nameMatches(form *regexp.Regexp) bool {
	return slices.ContainsFunc(e.Names, form.MatchString)
}

// namedUsage reports whether a name means used-up quota or money, such as billing_error. A "quota" may be per minute,
// so a message about a rate limit overrides the name.
func (e Evidence) namedUsage(kind policy.Ending) bool {
	return e.named(func(s sentence) bool {
		elastic := strings.Contains(string(s), "quota")
		switch {
		case strings.Contains(string(s), "polic"), elastic && kind == policy.RateLimited:
			return false
		case s.outspent():
			return true
		case rateWords.MatchString(string(s)):
			return false
		}
		return moneyAlone.MatchString(string(s))
	})
}

func (e Evidence) hasteNamed() bool { return e.nameMatches(hasteName) || e.named(sentence.hurried) }

// byMessage returns the limit that the message names: usage_limit, overloaded, rate_limited or none. In an error about
// the request, words that may repeat the request do not count.
func (e Evidence) byMessage(own string) policy.Ending {
	ofRequest := e.ofRequest()
	if ofRequest && e.echoes(own) {
		return ""
	}
	unauthorized := e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	switch {
	case fragment.MatchString(e.own), e.hastens(own):
		return policy.RateLimited
	case anySentence(own, sentence.outspent), e.lacks(own):
		return policy.UsageLimit
	case ofRequest:
		return ""
	case !unauthorized && anySentence(own, sentence.crowded):
		return policy.Overloaded
	case e.Status != http.StatusUnauthorized && anySentence(own, sentence.hurried):
		return policy.RateLimited
	}
	return ""
}

// hastens reports whether a name means a rate limit and the message only mentions a quota.
func (e Evidence) hastens(own string) bool {
	if !e.named(sentence.hurried) {
		return false
	}
	if !strings.Contains(own, "quota") {
		return false
	}
	rest := strings.ReplaceAll(own, "quota", "")
	if moneyAlone.MatchString(rest) {
		return false
	}
	return !longWindow.MatchString(rest)
}

func (e Evidence) lacks(own string) bool { return anySentence(own, sentence.excluded) }

func (e Evidence) ofRequest() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	case http.StatusForbidden:
		return ofOneThing.MatchString(e.own)
	case 0:
		return e.nameMatches(requestName) && !e.nameMatches(authName)
	}
	return false
}

// echoes reports whether the error may repeat words of the request.
func (e Evidence) echoes(own string) bool {
	if !e.ofRequest() {
		return false
	}
	return e.nameMatches(echoName) || echoed.MatchString(own)
}

// tooLarge reports whether a single request exceeds the limit per minute, so waiting does not help.
func tooLarge(own string) bool {
	if soleRequest.MatchString(own) {
		return true
	}
	m := asksFor.FindStringSubmatch(own)
	if m == nil {
		return false
	}
	return number(strings.ReplaceAll(m[2], ",", "")) > number(strings.ReplaceAll(m[1], ",", ""))
}

// asksFor matches "Limit 30000, Requested 47890" (OpenAI, Groq).
var asksFor = regexp.MustCompile(`\blimit:? ([\d,]+)\b.{0,40}\brequested:? ([\d,]+)\b`)

// ofAccount reports whether a limit applies to all models of the account.
func (e Evidence) ofAccount(kind policy.Ending) bool {
	own := plainWords(e.own)
	switch {
	case kind == policy.Auth:
		return e.Status == http.StatusUnauthorized || e.nameMatches(accountName)
	case kind != policy.UsageLimit, e.lacks(own):
		return false
	case e.planRejected(), e.Status == http.StatusPaymentRequired:
		return true
	case modelOnly.MatchString(own):
		return false
	}
	return true
}

var modelOnly = regexp.MustCompile(`\b(?:this|the|selected|requested) model\b|\bmodel \S+|\bfor (?:gpt|claude|gemini|opus|sonnet|haiku|fable)`)

// reset returns the limit's end and its source: a field, a header, else the sentence.
func (e Evidence) reset() (time.Time, string) {
	routed := http.Header{} // OpenRouter repeats a provider's headers in the body
	e.body.Get("metadata.headers").ForEach(func(name, v gjson.Result) bool {
		routed.Set(name.String(), v.String())
		return true
	})
	at := cmp.Or(
		e.ResetsAt,
		unix(e.body.Get("resets_at").String()),
		after(e.Now, number(e.body.Get("resets_in_seconds").String())),
		e.detailedReset(),
		HeaderReset(e.Header, e.Now),
		HeaderReset(routed, e.Now),
	)
	if !at.IsZero() {
		return at, policy.SourceStructured
	}
	at, _ = ResetTime(e.Message, e.Now, e.Zone)
	return at, policy.SourceText
}

// detailedReset reads the details of Google's errors: the quota's reset, else the delay.
func (e Evidence) detailedReset() time.Time {
	detail := func(field string) string { return e.body.Get("details.#." + field + "|0").String() }
	at, _ := time.Parse(time.RFC3339, detail("metadata.quotaResetTimeStamp")) // zero for none
	return cmp.Or(
		at.UTC(),
		lasting(e.Now, detail("metadata.quotaResetDelay")),
		lasting(e.Now, detail("retryDelay")),
	)
}
