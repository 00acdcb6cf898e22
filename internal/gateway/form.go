package gateway

import (
	"regexp"
	"strings"

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
	// sent are the fields of a request that are sent on, beside those that are refused where they ask for something:
	// what the CLIs send, and what OpenAI's, Anthropic's and Google's references of 2026-08 know, without what has
	// another price (inference_geo) or goes round this list (extra_body). Chat completions have the switches of other
	// servers, too: of vLLM, SGLang, llama.cpp, Ollama, OpenRouter, DashScope, DeepSeek and Z.ai.
	sent []string
}

var forms = map[callKind]form{
	responses: {
		read: readResponses, turn: turnResponses, alive: "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n",
		sure: "include.-1", sureValue: "message.output_text.logprobs", limits: []string{"max_output_tokens"},
		local: regexp.MustCompile(`^(?:|function|custom|namespace|local_shell|shell|apply_patch|tool_search)$`),
		sent: strings.Fields(`client_metadata include input instructions max_output_tokens max_tool_calls metadata model parallel_tool_calls prompt_cache_key
		prompt_cache_retention reasoning safety_identifier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user verbosity`),
	},
	chat: {
		read: readChat, turn: turnChat, alive: ": keep-alive\n\n",
		sure: "logprobs", sureValue: true, limits: []string{"max_tokens", "max_completion_tokens"}, answers: []string{"n"},
		local: regexp.MustCompile(`^(?:|function|custom)$`),
		sent: strings.Fields(`audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model n
		parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed stop store stream
		stream_options temperature tool_choice tools top_logprobs top_p user verbosity
		cache_prompt chat_template_kwargs enable_thinking guided_choice guided_grammar guided_json guided_regex id_slot include_reasoning keep_alive length_penalty min_p
		min_tokens options preserve_thinking provider reasoning reasoning_format reasoning_split repetition_penalty route separate_reasoning skip_special_tokens
		stop_token_ids structured_outputs thinking thinking_budget tool_stream top_a top_k transforms typical_p usage verbose vl_high_resolution_images`),
	},
	messages: {
		read: readMessages, turn: turnMessages, alive: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
		limits: []string{"max_tokens"},
		local:  regexp.MustCompile(`^(?:|custom|(?:bash|text_editor|memory|tool_search_tool_(?:regex|bm25))_\d{8})$`),
		sent: strings.Fields(`anthropic_beta anthropic_version cache_control context_management diagnostics max_tokens messages metadata model output_config output_format
		reasoning_effort stop_sequences stream system temperature thinking tool_choice tools top_k top_p`),
	},
	countTokens: {local: regexp.MustCompile(``)}, // it runs nothing
	generate: {
		read: readGemini, turn: turnGemini, alive: "\n",
		sure: "generationConfig.responseLogprobs", sureValue: true,
		limits: []string{"maxOutputTokens", "max_output_tokens"}, answers: []string{"candidateCount", "candidate_count"},
		local: regexp.MustCompile(``), // its tools have no types: see geminiLocal
		sent: strings.Fields(`contents generationConfig generation_config labels model safetySettings safety_settings session_id systemInstruction system_instruction
		toolConfig tool_config tools`),
	},
}
