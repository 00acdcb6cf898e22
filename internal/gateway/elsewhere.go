package gateway

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// elsewhere are fields by which a request brings in what stands at the provider and the gateway does not see: answers
// and conversations that may be another attempt's, caches, lists of models to fall back on.
var elsewhere = []string{
	"previous_response_id", "conversation", "cachedContent", "cached_content", "models", "fallbacks", "fallback_models",
}

// ofAgents are the fields of a conversation whose values are an agent's own, and may name any address and file: what its
// tools are called with, what they give back, how they are described. spoken are those whose texts may be an address: what
// was said, and where what a tool brings comes from.
var (
	ofAgents = []string{"action", "args", "arguments", "input", "operation", "response", "tools"}
	spoken   = []string{"code", "content", "output", "reasoning", "reasoning_content", "refusal", "source", "text", "thinking", "title"}
)

// conversation are the fields of a request that hold what was said, in all protocols.
var conversation = []string{"input", "messages", "contents", "system", "systemInstruction", "system_instruction"}

// brought says what a field of a conversation brings in from elsewhere, "" for nothing: a file that was given to the
// provider, an item that it keeps, an address that it would read.
func brought(name string, v gjson.Result, depth int) (what string) {
	switch text := v.Type == gjson.String; {
	case depth == 0:
		return fmt.Sprintf("what lies more than %d levels deep", maxDepth)
	case slices.Contains(ofAgents, name):
		return ""
	case slices.Contains([]string{"file_id", "file_uri", "fileUri", "file_url"}, name), name == "audio" && v.Get("id").Exists():
		return name
	case text && (strings.HasSuffix(name, "rl") || strings.HasSuffix(name, "ri")) && v.Str != "" && !strings.HasPrefix(v.Str, "data:"),
		text && remote.MatchString(v.Str) && !slices.Contains(spoken, name):
		return "an address"
	case !v.IsArray() && !v.IsObject():
		return ""
	}
	v.ForEach(func(field, value gjson.Result) bool {
		kind := ""
		if v.IsObject() {
			if name = field.Str; name == "type" {
				kind = value.Str
			}
		}
		if slices.Contains([]string{"item_reference", "url"}, kind) || kind == "file" && !v.Get("file").Exists() {
			what = kind
		} else {
			what = brought(name, value, depth-1)
		}
		return what == ""
	})
	return what
}

// remote begins an address of another machine.
var remote = regexp.MustCompile(`^\s*[A-Za-z][A-Za-z0-9+.-]*://`)

// beginsRemote reports whether a string within JSON may begin with such an address.
func beginsRemote(raw string) bool {
	const before = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.- \\"
	for i := 0; ; {
		next := strings.Index(raw[i:], "//")
		if next < 0 {
			return strings.Contains(raw, `\/`) // a way to write it
		}
		if scheme, ok := strings.CutSuffix(raw[i:i+next], ":"); ok && strings.HasSuffix(strings.TrimRight(scheme, before), `"`) {
			return true
		}
		i += next + len("//")
	}
}

// fromElsewhere refuses what the gateway cannot look at.
func fromElsewhere(f fields) error {
	for _, name := range elsewhere {
		if f.has(name) {
			return fmt.Errorf("%s is not allowed: send the whole conversation, for one model", name)
		}
	}
	for _, name := range conversation {
		raw := f[name].Raw // names such as imageUrl and file_uri end alike
		if !mentions(raw, `rl"`, `ri"`, `"file`, `"audio"`, `"item_reference"`) && !beginsRemote(raw) {
			continue
		}
		if what := brought("content", f[name], maxDepth); what != "" {
			return fmt.Errorf("%s in %s is not allowed: send the content itself", what, name)
		}
	}
	return nil
}

// sentFields are the fields of a request that are sent on, by kind of call, beside those that are refused where they ask for
// something: what the CLIs send, and what OpenAI's, Anthropic's and Google's references of 2026-08 know, without what has
// another price (inference_geo) or goes round this list (extra_body). Chat completions have the switches of other servers,
// too: of vLLM, SGLang, llama.cpp, Ollama, OpenRouter, DashScope, DeepSeek and Z.ai.
var sentFields = map[callKind][]string{
	responses: strings.Fields(`client_metadata include input instructions max_output_tokens max_tool_calls metadata model parallel_tool_calls prompt_cache_key
		prompt_cache_retention reasoning safety_identifier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user verbosity`),
	chat: strings.Fields(`audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model n
		parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed stop store stream
		stream_options temperature tool_choice tools top_logprobs top_p user verbosity
		cache_prompt chat_template_kwargs enable_thinking guided_choice guided_grammar guided_json guided_regex id_slot include_reasoning keep_alive length_penalty min_p
		min_tokens options preserve_thinking provider reasoning reasoning_format reasoning_split repetition_penalty route separate_reasoning skip_special_tokens
		stop_token_ids structured_outputs thinking thinking_budget tool_stream top_a top_k transforms typical_p usage verbose vl_high_resolution_images`),
	messages: strings.Fields(`anthropic_beta anthropic_version cache_control context_management diagnostics max_tokens messages metadata model output_config output_format
		reasoning_effort stop_sequences stream system temperature thinking tool_choice tools top_k top_p`),
	generate: strings.Fields(`contents generationConfig generation_config labels model safetySettings safety_settings session_id systemInstruction system_instruction
		toolConfig tool_config tools`),
}

// dropUnknown takes out what no list names, and gives the names: a field of tomorrow may ask for anything.
func dropUnknown(kind callKind, f fields) string {
	if sentFields[kind] == nil {
		return "" // it counts tokens, and nothing is made of what it holds
	}
	listed := slices.Concat(sentFields[kind], hostedFields, elsewhere, tierFields)
	var unknown []string
	for name := range f {
		if !slices.Contains(listed, name) {
			unknown = append(unknown, name)
			delete(f, name)
		}
	}
	slices.Sort(unknown)
	return strings.Join(unknown, " ")
}
