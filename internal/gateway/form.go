package gateway

import (
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
)

// form describes a kind of call. The zero form neither reads answers nor changes requests.
type form struct {
	// read reads an event or a whole answer. It is nil if no model answers.
	read func(e gjson.Result, a *answer)
	// alive is sent to the agent while its answer is held back. Codex 0.169.0 abandons a stream after five minutes
	// without an event, and a comment is not an event. Claude Code ignores pings, so internal/agent lengthens its
	// timeout. OpenCode accepts any bytes. Gemini CLI 0.61.0 fails on a comment but skips empty lines.
	alive string
	// turn changes a request for the second try: it switches the thinking mode and adds the nudge. It returns false
	// if the request cannot be tried again.
	turn func(*draft, config.Model) bool
	// sure and sureValue are the field and value that request log-probabilities (OpenAI's and Google's references of
	// 2025-11). Messages has none.
	sure      string
	sureValue any
	// limits lists fields that limit an answer's tokens. answers lists fields that request several answers.
	limits, answers []string
	// local matches the types of tools that the agent runs itself (OpenAI's and Anthropic's references of 2026-08;
	// Messages appends dates). The provider runs the other types: they cost more than tokens and act outside the
	// sandbox. Types that control a computer are not local either, since no supported CLI offers them. Tool searches are
	// local: they search the request's tools only. Only Codex 0.169.0 offers a hosted tool (web_search) by default;
	// Claude Code and Gemini CLI search in separate calls.
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
	countTokens: {local: regexp.MustCompile(``)}, // token counting runs no tools
	generate: {
		read: readGemini, turn: (*draft).turnGemini, alive: "\n",
		sure: "generationConfig.responseLogprobs", sureValue: true,
		limits: []string{"maxOutputTokens", "max_output_tokens"}, answers: []string{"candidateCount", "candidate_count"},
		local: regexp.MustCompile(`^$`), // Gemini's tools have no types: see localDeclarations
	},
}
