package limit

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/policy"
)

// wording is a part of a sentence that describes an ending.
type wording struct {
	words string // regular expression, case-insensitive
	// source is a folder of recorded runs below testdata/agents, a project's issue or an API's reference. "alike" marks
	// a wording that was added by analogy and has not been seen yet.
	source string
}

const (
	codexRuns    = "codex"
	claudeRuns   = "claude"
	geminiRuns   = "gemini"
	openCodeRuns = "opencode"
	qwenRuns     = "qwen"

	openAIErrors    = "OpenAI's guide to error codes"
	anthropicErrors = "Anthropic's reference of errors"
	googleErrors    = "google.rpc.Code and Gemini's troubleshooting guide"
	httpPhrases     = "reason phrases of HTTP, RFC 9110"
	nodeErrors      = "errors of Node.js and undici"
	goErrors        = "errors of Go's net, net/http and gRPC"
	rustErrors      = "errors of hyper and reqwest, in Codex"
	alike           = "alike"
)

// family groups one ending's wordings.
type family struct {
	ending   policy.Ending
	wordings []wording
}

// families has each ending's wordings, specific endings first. The wordings of runEndings are tried before the word
// families of words.go, the others after them.
var families = []family{
	{policy.UsageLimit, []wording{
		{ // the account's limit, not one request's
			words:  `you(?:['’]ve| have) (?:been rate[- ]limited|hit a rate limit that)`,
			source: "github/copilot-cli#2696",
		},
		{
			words:  `ai_retryerror: failed after \d+ attempts\. last error: rate limit exceeded\. please try again later`,
			source: "link-assistant/agent#157",
		},
	}},
	{policy.ContextOverflow, []wording{
		{`context window`, codexRuns},
		{`context[_ ]length`, openAIErrors},
		{`prompt is too long|input is too long`, claudeRuns},
		{`maximum context|too many tokens in`, openAIErrors},
		{`session token limit`, "qwen-code, its session limit"},
		{`token count\b.{0,60}\bexceeds`, geminiRuns},
		{`\btokens\b.{0,30}\bexceeds? (?:the |this )?model`, alike},
	}},
	{policy.CutOff, []wording{
		{`incomplete response returned|max_output_tokens`, codexRuns},
		{`output token maximum`, claudeRuns},
		{`finish_reason.{0,5}length`, alike},
	}},
	{policy.TurnLimit, []wording{
		{
			words:  `max(?:imum)?[ _](?:number of )?(?:session )?turns|turn limit|session budget`,
			source: alike,
		},
		{`maximum budget`, claudeRuns},
	}},
	{policy.SelfLoop, []wording{
		{
			words:  `loop (?:was )?detected|potential loop`,
			source: "gemini-cli, its loop detection",
		},
		{`loop detection halted`, "qwen-code, its loop detection"},
	}},
	{policy.NoAnswer, []wording{
		{`empty response`, qwenRuns},
		{`blocked due to safety settings`, geminiRuns},
		{`blocked by the provider['’]s content filter`, openCodeRuns},
		{`violate our usage policy`, claudeRuns},
	}},
	{policy.Auth, []wording{
		{`missing environment variable`, codexRuns},
		{`(?:incorrect|invalid|missing) api key`, codexRuns},
		{
			words:  `invalid x-api-key|authentication(?:_error| failed| required)|permission_error`,
			source: anthropicErrors,
		},
		{`(?:api key|credentials?|auth\w*(?: \w+)?) (?:is |are |was )?not (?:valid|found|provided)`, geminiRuns},
		{`no (?:auth\w*|api|valid) (?:credentials?|keys?)`, alike},
		{`not (?:logged in|authenticated|authorized)`, claudeRuns},
		{`unauthorized\b`, codexRuns},
		{
			words:  `unauthenticated\b|(?:invalid|missing) authentication`,
			source: googleErrors,
		},
		{
			words:  `permission_denied|(?:caller|api key) does not have permission`,
			source: geminiRuns,
		},
		{`invalid auth method`, geminiRuns},
		{
			words:  `run:? (?:codex|claude|gemini|opencode)?\s*(?:auth )?/?login`,
			source: claudeRuns,
		},
		{
			words:  `(?:log|sign)(?:ed)? (?:in|out)[^.]{0,40} again|(?:refresh|access) token (?:was|has|is|could not)`,
			source: "codex-rs, its login",
		},
		{`please (?:log|sign) in|token\b.{0,50}\bexpired|oauth token`, alike},
		{`invalid_grant`, "RFC 6749, section 5.2"},
	}},
	{policy.Misconfigured, []wording{
		{
			words:  `models?\b.{0,120}\b(?:does not exist|not found|not supported|is not available)`,
			source: codexRuns,
		},
		{`model provider .{0,80} not found`, codexRuns},
		{`config file\b`, openCodeRuns},
		{`unexpected argument`, codexRuns},
		{`unknown (?:option|argument|provider)`, claudeRuns},
		{`self[- ]signed certificate|verify the first certificate|certificate (?:has expired|verify failed)`, nodeErrors},
		{
			words:  `error loading config|invalid value|unrecognized (?:option|subcommand)|reserved built-in`,
			source: "codex-rs and clap",
		},
		{
			words:  `no such file or directory|command not found`,
			source: "shells and strerror(3)",
		},
		{`no conversation found`, claudeRuns},
		{`resuming session`, geminiRuns},
		{`no saved session`, qwenRuns},
		{`session not found`, alike},
	}},
	{policy.TimedOut, []wording{
		{
			words:  `\b(?:request|read|operation|headers) timed out|timed out after|idle timeout|timed? ?out waiting`,
			source: "codex-rs, its client",
		},
	}},
	{policy.Disconnected, []wording{
		{`^reconnecting\b`, "codex-rs, its retries"},
		{`stream (?:disconnected|closed|error|reset)`, codexRuns},
		{`connect(?:ion)? (?:fail\w*|refused|reset|closed|error|aborted|lost|time)`, codexRuns},
		{
			words:  `error sending request|waiting for network|network error`,
			source: codexRuns,
		},
		{`econn(?:refused|reset)`, geminiRuns},
		{
			words:  `socket hang up|terminated early|unexpected (?:token|end of json)|enotfound|eai_again|etimedout|epipe|before secure tls`,
			source: nodeErrors,
		},
		{
			words:  `no such host|(?:tls|ssl) handshake|deadline exceeded|awaiting headers|goaway|network is unreachable|no route to host`,
			source: goErrors,
		},
		{
			words:  `sslerror|peer closed|incomplete (?:chunked )?read|broken pipe|remotely closed`,
			source: "urllib3, httpx and the JDK",
		},
		{`api error: terminated`, geminiRuns},
		{`unexpected eof|dns error`, rustErrors},
		{`(?:unable|cannot|could not|failed) to connect`, claudeRuns},
		{`cannot connect`, openCodeRuns},
		{`fetch failed`, geminiRuns},
		{`without a finish reason`, qwenRuns},
		{ // an answer that is not the API's, such as a proxy's error page
			words:  `in json at position`,
			source: geminiRuns,
		},
	}},
	{policy.Killed, []wording{
		{
			words:  `^(?:turn )?(?:interrupted|aborted)\b|(?:was|been) interrupted by the user`,
			source: codexRuns,
		},
	}},
}

type rule struct {
	ending  policy.Ending
	words   string
	wording *regexp.Regexp
}

// rules are compiled on first use: sandboxes start pawl without needing them.
var rules = sync.OnceValue(func() (all []rule) {
	for _, f := range families {
		var words []string
		for _, w := range f.wordings {
			words = append(words, w.words)
		}
		as := "(?:" + strings.Join(words, "|") + ")"
		all = append(all, rule{f.ending, as, regexp.MustCompile("(?i)" + as)})
	}
	return all
})

// runEndings concern the run and are checked before limits: a "maximum budget" is not an account's limit.
var runEndings = []policy.Ending{policy.ContextOverflow, policy.CutOff, policy.TurnLimit, policy.SelfLoop, policy.NoAnswer}

// ofRun returns a text's ending if it is UsageLimit or one of runEndings; "" for none.
func ofRun(text string) policy.Ending {
	return wordedAs(text, func(e policy.Ending) bool { return e == policy.UsageLimit || slices.Contains(runEndings, e) })
}

// worded returns a text's ending by the table; "" for none.
func worded(text string) policy.Ending {
	return wordedAs(text, func(policy.Ending) bool { return true })
}

func wordedAs(text string, may func(policy.Ending) bool) policy.Ending {
	for _, r := range rules() {
		if may(r.ending) && r.wording.MatchString(text) {
			return r.ending
		}
	}
	return ""
}
