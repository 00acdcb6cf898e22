package gateway

import (
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
)

// form describes a kind of call; zero if nothing is read or changed.
type form struct {
	// read reads an event or a whole answer. Nil if no model answers.
	read func(e gjson.Result, a *answer)
	// alive is the sign of life that an agent gets while an answer is held back, by CLI. Codex 0.169.0 gives a
	// stream up after five minutes without an event; a comment is none. Claude Code counts no pings, which is why
	// internal/agent makes it wait longer. OpenCode watches for bytes. Gemini CLI 0.61.0 fails on a comment and
	// skips empty lines.
	alive string
	// turn changes a request for the second try: the other thinking mode and the nudge. It may be impossible.
	turn func(*draft, config.Model) bool
	// sure is the field and value that request log-probabilities (OpenAI's and Google's references of 2025-11).
	// Messages has none.
	sure      string
	sureValue any
	// limits lists fields that limit each answer; answers, fields that request several.
	limits, answers []string
	// local are the types of tools that the agent runs itself, as patterns with the dates that Messages appends:
	// OpenAI's and Anthropic's references of 2026-08. Every other type is the provider's (it costs beyond tokens and
	// reaches past the sandbox) or for a computer that no CLI here has. A tool search only covers the request's
	// tools, wherever it runs. Only Codex offers a hosted tool by default (web_search, 0.169.0); Claude Code and
	// Gemini CLI search in separate calls.
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
