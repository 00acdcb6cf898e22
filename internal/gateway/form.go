package gateway

import (
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
)

// form is what is known of a kind of call; zero where nothing is read or changed of it.
type form struct {
	// read reads one event of a stream, or a whole answer; what it does not know it ignores. Nil where no model answers.
	read func(e gjson.Result, a *answer)
	// alive is what an agent gets while an answer is held back: what its CLI takes for a sign of life. Codex
	// 0.169.0 gives a stream up after five minutes without an event, of which a comment is none. Claude Code counts
	// no pings, which is why internal/agent has it wait longer. OpenCode watches for bytes. Gemini CLI 0.61.0 fails
	// over a comment and skips empty lines.
	alive string
	// turn makes the request of the second try: the other thinking mode and the nudge. It answers false where the
	// request cannot be turned round.
	turn func(*draft, config.Model) bool
	// sure is the field by which a request asks for the log-probabilities of the answer, and its value: OpenAI's and
	// Google's references of 2025-11. Messages has none.
	sure      string
	sureValue any
	// limits are the fields by which a request bounds each answer, answers those by which it asks for several.
	limits, answers []string
	// local are the types of tools that the agent runs itself, as patterns with the dates that Messages puts behind:
	// OpenAI's and Anthropic's references of 2026-08. Every other type is of the provider (it costs beyond tokens and
	// reaches past the sandbox) or of a computer that no CLI here has. A search for tools looks through those of the
	// request only, wherever it runs. Of the CLIs only Codex offers one unasked (web_search, 0.169.0); Claude Code and
	// Gemini CLI search in calls of their own.
	local *regexp.Regexp
}

var forms = map[callKind]form{
	responses: {
		read: readResponses, turn: (*draft).turnResponses, alive: "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n",
		sure: "include.-1", sureValue: "message.output_text.logprobs", limits: []string{"max_output_tokens"},
		local: regexp.MustCompile(`^(?:|function|custom|namespace|local_shell|shell|apply_patch|tool_search)$`),
	},
	chat: {
		read: readChat, turn: (*draft).turnChat, alive: ": keep-alive\n\n",
		sure: "logprobs", sureValue: true, limits: []string{"max_tokens", "max_completion_tokens"}, answers: []string{"n"},
		local: regexp.MustCompile(`^(?:|function|custom)$`),
	},
	messages: {
		read: readMessages, turn: (*draft).turnMessages, alive: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
		limits: []string{"max_tokens"},
		local:  regexp.MustCompile(`^(?:|custom|(?:bash|text_editor|memory|tool_search_tool_(?:regex|bm25))_\d{8})$`),
	},
	countTokens: {local: regexp.MustCompile(``)}, // it runs nothing
	generate: {
		read: readGemini, turn: (*draft).turnGemini, alive: "\n",
		sure: "generationConfig.responseLogprobs", sureValue: true,
		limits: []string{"maxOutputTokens", "max_output_tokens"}, answers: []string{"candidateCount", "candidate_count"},
		local: regexp.MustCompile(`^$`), // its tools have no types: see localDeclarations
	},
}
