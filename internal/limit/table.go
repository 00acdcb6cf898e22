package limit

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/policy"
)

// wording is a part of a sentence by which CLIs and providers tell how something ended.
type wording struct {
	ending policy.Ending
	words  string // a regular expression, in any case
	// source is where it stands: a folder of recorded runs below testdata/agents, an issue of a project by its number, the
	// reference of an API, or "alike": by analogy with a wording beside it, seen nowhere yet.
	source string
}

const (
	codexRuns, claudeRuns, geminiRuns, openCodeRuns, qwenRuns = "codex", "claude", "gemini", "opencode", "qwen"

	openAIErrors    = "OpenAI's guide to error codes"
	anthropicErrors = "Anthropic's reference of errors"
	googleErrors    = "google.rpc.Code and Gemini's troubleshooting guide"
	httpPhrases     = "reason phrases of HTTP, RFC 9110"
	nodeErrors      = "errors of Node.js and undici"
	rustErrors      = "errors of hyper and reqwest, in Codex"
	alike           = "alike"
)

// wordings is the one table of them: for messages of which it is known that they are errors, read from the first row to
// the last, so the more specific stands first. Rows of one ending that follow each other are tried together.
var wordings = []wording{
	{policy.UsageLimit, `you(?:['’]ve| have)? (?:hit|reached|exceeded|exhausted|depleted|used up) (?:all )?(?:your|the) [\w .\-'’]{0,60}?(?:limits?|quota|capacity|credits|allowance|(?:spend|spending) cap)\b`, "openai/codex#3899"},
	{policy.UsageLimit, `(?:organization|workspace|team|account|plan|company) has (?:hit|reached|exceeded|exhausted|used up) (?:its|your|the) [\w .\-]{0,60}?(?:limits?|quota|credits|cap)\b`, alike},
	{policy.UsageLimit, `you['’]?(?: a)?re out of (?:extra usage|credits|usage|messages|requests|quota)`, "anthropics/claude-code#42654"},
	{policy.UsageLimit, `(?:out of|no remaining|insufficient|you have no) (?:credits|quota)\b|no (?:more )?(?:requests|messages|credits) (?:left|remaining)\b`, alike},
	{policy.UsageLimit, `(?:the |free |claude (?:ai )?|monthly |weekly |daily |session |\d+-hour |opus |sonnet |your )*(?:usage|session|weekly|daily|monthly|\d+-hour|opus|sonnet|free usage) limit (?:has been )?(?:reached|exceeded)`, "anthropics/claude-code#2490"},
	{policy.UsageLimit, `free usage exceeded`, "anomalyco/opencode#47318"},
	{policy.UsageLimit, `you exceeded your current quota`, openAIErrors},
	{policy.UsageLimit, `quota (?:has been |is )?(?:exceeded|exhausted|reached)`, geminiRuns},
	{policy.UsageLimit, `(?:daily|weekly|monthly|billing)(?:[/ ][\w/]{1,20}){0,2} limit (?:has been )?(?:reached|exceeded|exhausted)`, "link-assistant/hive-mind#719"},
	{policy.UsageLimit, `insufficient_quota`, openCodeRuns},
	{policy.UsageLimit, `usage_limit_(?:reached|exceeded)`, codexRuns},
	{policy.UsageLimit, `usage_not_included`, "codex-rs, error.rs"},
	{policy.UsageLimit, `resource has been exhausted \(e\.g\. check quota\)`, "google-gemini/gemini-cli#1800"},
	{policy.UsageLimit, `to use codex with your chatgpt plan, upgrade`, codexRuns},
	{policy.UsageLimit, `credit balance is too low`, claudeRuns},
	{policy.UsageLimit, `credits are depleted|insufficient (?:balance|funds)`, alike},
	{policy.UsageLimit, `payment required`, httpPhrases},
	{policy.UsageLimit, `you(?:['’]ve| have) (?:been rate[- ]limited|hit a rate limit that)`, "github/copilot-cli#2696"}, // of the account and not of one request
	{policy.UsageLimit, `ai_retryerror: failed after \d+ attempts\. last error: rate limit exceeded\. please try again later`, "link-assistant/agent#157"},

	{policy.ContextOverflow, `context window`, codexRuns},
	{policy.ContextOverflow, `context[_ ]length`, openAIErrors},
	{policy.ContextOverflow, `prompt is too long|input is too long`, claudeRuns},
	{policy.ContextOverflow, `maximum context|too many tokens in`, openAIErrors},
	{policy.ContextOverflow, `token count\b.{0,60}\bexceeds`, geminiRuns},

	{policy.CutOff, `incomplete response returned|max_output_tokens`, codexRuns},
	{policy.CutOff, `output token maximum`, claudeRuns},
	{policy.CutOff, `finish_reason.{0,5}length`, alike},

	{policy.TurnLimit, `max(?:imum)?[ _](?:number of )?(?:session )?turns|turn limit|session budget`, alike},
	{policy.TurnLimit, `maximum budget`, claudeRuns},

	{policy.SelfLoop, `loop (?:was )?detected|potential loop`, "gemini-cli, its loop detection"},
	{policy.SelfLoop, `loop detection halted`, "qwen-code, its loop detection"},

	{policy.NoAnswer, `empty response`, qwenRuns},
	{policy.NoAnswer, `blocked due to safety settings`, geminiRuns},
	{policy.NoAnswer, `blocked by the provider['’]s content filter`, openCodeRuns},
	{policy.NoAnswer, `violate our usage policy`, claudeRuns},

	{policy.RateLimited, `rate[ _-]limit(?:ed|s)?(?:[ _-](?:reached|exceeded|error))?\b`, codexRuns},
	{policy.RateLimited, `too many (?:requests|tokens per)`, codexRuns},
	{policy.RateLimited, `request limit exceeded`, alike},
	{policy.RateLimited, `(?:per[ -]minute|tpm|rpm)\b.{0,20}\blimit`, claudeRuns},
	{policy.RateLimited, `request rejected \(429\)`, claudeRuns},
	{policy.RateLimited, `would exceed your account['’]s rate limit`, claudeRuns},

	{policy.Overloaded, `(?:at|over) capacity\b`, codexRuns},
	{policy.Overloaded, `(?:currently )?experiencing high demand`, codexRuns},
	{policy.Overloaded, `overloaded(?:_error)?\b`, claudeRuns},
	{policy.Overloaded, `server_is_overloaded|server had an error`, openAIErrors},
	{policy.Overloaded, `internal (?:server )?error\b|service unavailable|bad gateway|gateway time-?out`, httpPhrases},
	{policy.Overloaded, `temporarily unavailable`, alike},

	{policy.Auth, `missing environment variable`, codexRuns},
	{policy.Auth, `(?:incorrect|invalid|missing) api key`, codexRuns},
	{policy.Auth, `invalid x-api-key|authentication(?:_error| failed| required)|permission_error`, anthropicErrors},
	{policy.Auth, `api key not (?:valid|found)`, geminiRuns},
	{policy.Auth, `not (?:logged in|authenticated|authorized)`, claudeRuns},
	{policy.Auth, `unauthorized\b`, codexRuns},
	{policy.Auth, `unauthenticated\b|(?:invalid|missing) authentication`, googleErrors},
	{policy.Auth, `permission_denied|(?:caller|api key) does not have permission`, geminiRuns},
	{policy.Auth, `invalid auth method`, geminiRuns},
	{policy.Auth, `run:? (?:codex|claude|gemini|opencode)?\s*(?:auth )?/?login`, claudeRuns},
	{policy.Auth, `(?:log|sign)(?:ed)? (?:in|out)[^.]{0,40} again|(?:refresh|access) token (?:was|has|is|could not)`, "codex-rs, its login"},
	{policy.Auth, `please (?:log|sign) in|token (?:has )?expired|oauth token`, alike},

	{policy.Misconfigured, `models?\b.{0,120}\b(?:does not exist|not found|not supported|is not available)`, codexRuns},
	{policy.Misconfigured, `model provider .{0,80} not found`, codexRuns},
	{policy.Misconfigured, `config file\b`, openCodeRuns},
	{policy.Misconfigured, `unexpected argument`, codexRuns},
	{policy.Misconfigured, `unknown (?:option|argument|provider)`, claudeRuns},
	{policy.Misconfigured, `error loading config|invalid value|unrecognized (?:option|subcommand)|reserved built-in`, "codex-rs and clap"},
	{policy.Misconfigured, `no such file or directory|command not found`, "shells and strerror(3)"},
	{policy.Misconfigured, `no conversation found`, claudeRuns},
	{policy.Misconfigured, `resuming session`, geminiRuns},
	{policy.Misconfigured, `no saved session`, qwenRuns},
	{policy.Misconfigured, `session not found`, alike},

	{policy.TimedOut, `\b(?:request|read|operation|headers) timed out|timed out after|idle timeout|timed? ?out waiting`, "codex-rs, its client"},

	{policy.Disconnected, `^reconnecting\b`, "codex-rs, its retries"},
	{policy.Disconnected, `stream (?:disconnected|closed|error)`, codexRuns},
	{policy.Disconnected, `connection (?:failed|refused|reset|closed|error)`, codexRuns},
	{policy.Disconnected, `error sending request|waiting for network|network error`, codexRuns},
	{policy.Disconnected, `econn(?:refused|reset)`, geminiRuns},
	{policy.Disconnected, `socket hang up|terminated early|unexpected (?:token|end of json)`, nodeErrors},
	{policy.Disconnected, `api error: terminated`, geminiRuns},
	{policy.Disconnected, `unexpected eof|dns error`, rustErrors},
	{policy.Disconnected, `(?:unable|cannot|could not|failed) to connect`, claudeRuns},
	{policy.Disconnected, `cannot connect`, openCodeRuns},
	{policy.Disconnected, `fetch failed`, geminiRuns},
	{policy.Disconnected, `without a finish reason`, qwenRuns},
	{policy.Disconnected, `in json at position`, geminiRuns}, // an answer that is not the API's, as a proxy's error page

	{policy.UsageLimit, `(?:^|[·|:\n]\s*)(?:(?:claude|fable|opus|sonnet|haiku|gpt|gemini|codex|model|plan)[\w.\-]*(?: \d[\d.]*)? )?limit (?:reached|exceeded|exhausted)\b`, "anthropics/claude-code#8835"},

	{policy.Killed, `^(?:turn )?(?:interrupted|aborted)\b|(?:was|been) interrupted by the user`, codexRuns},
}

// rule is the rows of one ending that follow each other.
type rule struct {
	ending  policy.Ending
	words   string
	wording *regexp.Regexp
}

// rules are made when the first text is read: pawl also starts inside of each sandbox, where nobody reads any.
var rules = sync.OnceValue(func() (all []rule) {
	for from, to := 0, 0; from < len(wordings); from = to {
		var words []string
		for ; to < len(wordings) && wordings[to].ending == wordings[from].ending; to++ {
			words = append(words, wordings[to].words)
		}
		as := "(?:" + strings.Join(words, "|") + ")"
		all = append(all, rule{wordings[from].ending, as, regexp.MustCompile("(?i)" + as)})
	}
	return all
})

// wordsOf are the first rows of an ending as one expression.
func wordsOf(ending policy.Ending) string {
	all := rules()
	return all[slices.IndexFunc(all, func(r rule) bool { return r.ending == ending })].words
}
