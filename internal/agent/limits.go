package agent

import (
	"regexp"
	"strconv"
	"strings"
)

// maxFailureText bounds how much of an error message is looked at.
const maxFailureText = 8 << 10

// failureRule gives the ending that a wording of an error stands for.
type failureRule struct {
	ending  Ending
	wording *regexp.Regexp
}

// Wordings of limits. They are applied to error messages that the CLI itself
// reported as errors, never to other text; quotesLimit is for the rest.
const (
	usageWords = `(?:` +
		`you(?:['’]ve| have)? (?:hit|reached|exceeded|exhausted|depleted|used up) (?:all )?(?:your|the) [\w .\-'’]{0,60}?(?:limits?|quota|capacity|credits|allowance|(?:spend|spending) cap)\b` +
		`|(?:organization|workspace|team|account|plan|company) has (?:hit|reached|exceeded|exhausted|used up) (?:its|your|the) [\w .\-]{0,60}?(?:limits?|quota|credits|cap)\b` +
		`|you['’]?(?: a)?re out of (?:extra usage|credits|usage|messages|requests|quota)` +
		`|(?:out of|no remaining|insufficient|you have no) (?:credits|quota)\b|no (?:more )?(?:requests|messages|credits) (?:left|remaining)\b` +
		`|(?:the |free |claude (?:ai )?|monthly |weekly |daily |session |\d+-hour |opus |sonnet |your )*(?:usage|session|weekly|daily|monthly|\d+-hour|opus|sonnet|free usage) limit (?:has been )?(?:reached|exceeded)` +
		`|free usage exceeded` +
		`|you exceeded your current quota|quota (?:has been |is )?(?:exceeded|exhausted|reached)|(?:daily|weekly|monthly|billing)(?:[/ ][\w/]{1,20}){0,2} limit (?:has been )?(?:reached|exceeded|exhausted)|insufficient_quota|usage_limit_(?:reached|exceeded)|usage_not_included` +
		`|resource has been exhausted \(e\.g\. check quota\)` +
		`|to use codex with your chatgpt plan, upgrade` +
		`|credit balance is too low|credits are depleted|insufficient (?:balance|funds)|payment required` +
		`|you(?:['’]ve| have) (?:been rate[- ]limited|hit a rate limit that)` + // Copilot's, of the account and not of one request
		`|ai_retryerror: failed after \d+ attempts\. last error: rate limit exceeded\. please try again later` + // opencode's free plan
		`)`
	rateWords = `(?:` +
		`rate[ _-]limit(?:ed|s)?(?:[ _-](?:reached|exceeded|error))?\b` +
		`|too many (?:requests|tokens per)|request limit exceeded|(?:per[ -]minute|tpm|rpm)\b.{0,20}\blimit|request rejected \(429\)` +
		`|would exceed your account['’]s rate limit` +
		`)`
	overloadWords = `(?:` +
		`(?:at|over) capacity\b|(?:currently )?experiencing high demand|overloaded(?:_error)?\b|server_is_overloaded` +
		`|internal (?:server )?error\b|service unavailable|bad gateway|gateway time-?out|temporarily unavailable|server had an error` +
		`)`
	authWords = `(?:` +
		`missing environment variable|(?:incorrect|invalid|missing) api key|invalid x-api-key|api key not (?:valid|found)` +
		`|not (?:logged in|authenticated|authorized)|unauthorized\b|unauthenticated\b|authentication(?:_error| failed| required)|permission_error` +
		`|permission_denied|(?:caller|api key) does not have permission|(?:invalid|missing) authentication|invalid auth method` +
		`|(?:log|sign)(?:ed)? (?:in|out)[^.]{0,40} again|run:? (?:codex|claude|gemini|opencode)?\s*(?:auth )?/?login|please (?:log|sign) in` +
		`|(?:refresh|access) token (?:was|has|is|could not)|token (?:has )?expired|oauth token` +
		`)`
	configWords = `(?:` +
		`models?\b.{0,120}\b(?:does not exist|not found|not supported|is not available)|model provider .{0,80} not found` +
		`|error loading config|config file\b|unexpected argument|invalid value|unrecognized (?:option|subcommand)|unknown (?:option|argument|provider)` +
		`|no such file or directory|command not found|reserved built-in|no conversation found|resuming session|session not found` +
		`)`
	networkWords = `(?:` +
		`^reconnecting\b|stream (?:disconnected|closed|error)|connection (?:failed|refused|reset|closed|error)|error sending request|waiting for network` +
		`|network error|econn(?:refused|reset)|socket hang up|terminated early|api error: terminated|unexpected eof|dns error` +
		`|(?:unable|cannot|could not|failed) to connect|cannot connect|fetch failed|without a finish reason` +
		`|in json at position|unexpected (?:token|end of json)` + // an answer that is not the API's, as a proxy's error page
		`)`
)

// failureRules are tried in order; the more specific wording stands first.
var failureRules = []failureRule{
	{UsageLimit, anywhere(usageWords)},
	{ContextOverflow, anywhere(`context window|context[_ ]length|prompt is too long|input is too long|maximum context|too many tokens in|token count\b.{0,60}\bexceeds`)},
	{CutOff, anywhere(`incomplete response returned|max_output_tokens|output token maximum|finish_reason.{0,5}length`)},
	{TurnLimit, anywhere(`max(?:imum)?[ _](?:number of )?(?:session )?turns|turn limit|session budget|maximum budget`)},
	{SelfLoop, anywhere(`loop (?:was )?detected|potential loop`)},
	{NoAnswer, anywhere(`empty response|violate our usage policy`)},
	{RateLimited, anywhere(rateWords)},
	{Overloaded, anywhere(overloadWords)},
	{Auth, anywhere(authWords)},
	{Misconfigured, anywhere(configWords)},
	{TimedOut, anywhere(`\b(?:request|read|operation|headers) timed out|timed out after|idle timeout|timed? ?out waiting`)},
	{Disconnected, anywhere(networkWords)},
	{UsageLimit, anywhere(`(?:^|[·|:\n]\s*)(?:(?:claude|fable|opus|sonnet|haiku|gpt|gemini|codex|model|plan)[\w.\-]*(?: \d[\d.]*)? )?limit (?:reached|exceeded|exhausted)\b`)},
	{Killed, anywhere(`^(?:turn )?(?:interrupted|aborted)\b|(?:was|been) interrupted by the user`)},
}

func anywhere(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + words) }

var httpStatus = regexp.MustCompile(`(?i)(?:unexpected status|last status:|api error:(?: request rejected \()?|"code"\s*:|status(?:[ _-]?code)?["']?[:=]?|http(?:/\d(?:\.\d)?)?)\s*(\d{3})\b`)

// classifyFailure names the ending that an error message stands for. The
// message must come from a place where only errors stand. It answers false for
// wordings that it does not know.
func classifyFailure(text string) (Ending, bool) {
	if len(text) > maxFailureText {
		text = text[:maxFailureText]
	}
	if failureRules[0].wording.MatchString(text) {
		return UsageLimit, true
	}
	if m := httpStatus.FindStringSubmatch(text); m != nil {
		status, _ := strconv.Atoi(m[1])
		if e := statusEnding(status); e != "" {
			return e, true
		}
	}
	for _, rule := range failureRules[1:] {
		if rule.wording.MatchString(text) {
			return rule.ending, true
		}
	}
	return Crashed, false
}

// statusEnding names the ending of an HTTP status, "" where the status alone does not tell.
func statusEnding(status int) Ending {
	switch {
	case status == 401 || status == 403:
		return Auth
	case status == 402:
		return UsageLimit
	case status == 404:
		return Misconfigured
	case status == 408:
		return Disconnected
	case status == 413:
		return ContextOverflow
	case status == 429:
		return RateLimited
	case status >= 500 && status <= 599:
		return Overloaded
	}
	return ""
}

// bareLimit matches a line that is a limit message and does not merely contain
// one: the wording begins the line, apart from labels that programs put before
// their errors, and a sentence ends or goes on to the reset after it.
var bareLimit = regexp.MustCompile(`(?i)^[^\pL\pN{"'` + "`" + `\[]*(?:\[api error:\s*)?(?:(?:fatal|error|warning|codex|claude|\w*error|api error)\s*:\s*|sorry, |failed after \d+ attempts\. last error: |please run /login · )*` +
	`(?:stream disconnected before completion: )?(?:` + usageWords + `|you(?:['’]ve| have)? (?:hit a rate limit|been rate-limited|exceeded your [\w \-]{0,30}limits?)|` + rateWords +
	`|exceeded retry limit, last status: 429|(?:selected )?model (?:[\w.\-]+ )?is at capacity|we['’]re currently experiencing high demand|\d{3} \{"type":"error")` +
	`(?:\s*(?:$|[.,;:!|·∙•()\[\-–—]|resets?\b|for [\w.\-]+|that restricts|in organization|set in|too many|on this model|and\b))`)

// errorBody matches a provider's answer that was printed as it came.
var errorBody = regexp.MustCompile(`(?i)^(?:(?:\[?api error|error|too many requests)\s*:\s*)*\{\s*"(?:type"\s*:\s*"error"\s*,\s*"error|error)"\s*:\s*\{`)

// isLimitMessage reports whether a line of plain output is a known limit message, and of which kind.
func isLimitMessage(line string) (Ending, bool) {
	line = strings.TrimSpace(line)
	if len(line) > 1024 || !bareLimit.MatchString(line) && !errorBody.MatchString(line) {
		return "", false
	}
	ending, known := classifyFailure(line)
	return ending, known && ending.isLimit()
}
