package gateway

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// quickest is the least effort that a model of OpenAI's names accepts: gpt-5
// knows minimal, its successors none, the o and the first Codex models only low.
func quickest(model string) string {
	switch {
	case strings.HasPrefix(model, "gpt-5-codex") || len(model) > 1 && model[0] == 'o' && model[1] >= '1' && model[1] <= '9':
		return "low"
	case model == "gpt-5" || strings.HasPrefix(model, "gpt-5-"):
		return "minimal"
	}
	return "none"
}

func otherEffort(effort, model string) string {
	if effort == "none" || effort == "minimal" {
		return "medium"
	}
	return quickest(model)
}

// turnResponses answers false for a conversation that the provider keeps: what
// the agent would refer to later is not there.
func turnResponses(f fields, model string) bool {
	if string(f["store"]) == "true" || f.has("previous_response_id") || f.has("conversation") || f.text("tool_choice") == "none" {
		return false
	}
	input := listOf(f["input"])
	if input == nil {
		input = []json.RawMessage{encoded(object{"type": "message", "role": "user", "content": f.text("input")})}
	}
	say := object{"type": "message", "role": "developer", "content": []object{{"type": "input_text", "text": nudge}}}
	f.set("input", append(input, encoded(say)))
	reasoning := objectOf(f["reasoning"])
	if reasoning == nil {
		reasoning = fields{}
	}
	reasoning.set("effort", otherEffort(reasoning.text("effort"), model))
	f.set("reasoning", reasoning)
	return true
}

// turnChat also turns the switches that other servers have for thinking, where
// the request uses them.
func turnChat(f fields, model string) bool {
	list := listOf(f["messages"])
	if f.integer("n") > 1 || len(list) == 0 || f.text("tool_choice") == "none" {
		return false
	}
	f.set("messages", append(list, encoded(object{"role": "user", "content": nudge})))
	template, thinking := objectOf(f["chat_template_kwargs"]), objectOf(f["thinking"])
	switch {
	case template.has("enable_thinking"):
		template.set("enable_thinking", string(template["enable_thinking"]) != "true")
		f.set("chat_template_kwargs", template)
	case thinking.has("type"):
		kind := "enabled"
		if thinking.text("type") == kind {
			kind = "disabled"
		}
		f.set("thinking", object{"type": kind})
	default:
		f.set("reasoning_effort", otherEffort(f.text("reasoning_effort"), model))
	}
	return true
}

// Anthropic's bounds of a thinking budget in tokens: 1024 is the least that the
// API takes, and it must be less than max_tokens.
const (
	leastBudget = 1024
	mostBudget  = 8192
)

// adaptive matches Claude's models from 4.6 on by their names, claude-opus-4-7 or
// anthropic/claude-opus-5. They think as they see fit, and from 4.7 on refuse a
// budget.
var adaptive = regexp.MustCompile(`claude-[a-z]+-(?:4[-.](?:[6-9]|[1-9]\d)|[5-9]|[1-9]\d)(?:[-.@]|$)`)

func turnMessages(f fields) bool {
	choice := objectOf(f["tool_choice"]).text("type")
	if choice == "none" || !sayMessages(f) {
		return false
	}
	if kind := objectOf(f["thinking"]).text("type"); kind == "enabled" || kind == "adaptive" {
		f.set("thinking", object{"type": "disabled"})
		withoutThinkingEdits(f)
		return true
	}
	if objectOf(f["output_config"]).has("effort") || adaptive.MatchString(f.text("model")) { // the model thinks as it sees fit
		f.set("thinking", object{"type": "adaptive"})
	} else {
		most := f.integer("max_tokens")
		if most <= leastBudget {
			return false
		}
		f.set("thinking", object{"type": "enabled", "budget_tokens": min(max(most/2, leastBudget), mostBudget)})
	}
	// Thinking allows neither of these.
	for _, name := range []string{"temperature", "top_k", "top_p"} {
		delete(f, name)
	}
	return choice == "" || choice == "auto"
}

// sayMessages puts the nudge at the end of the last message, which is the user's
// and may hold tool results.
func sayMessages(f fields) bool {
	list := listOf(f["messages"])
	if len(list) == 0 {
		return false
	}
	last := objectOf(list[len(list)-1])
	say := encoded(object{"type": "text", "text": nudge})
	if last.text("role") != "user" {
		f.set("messages", append(list, encoded(object{"role": "user", "content": []json.RawMessage{say}})))
		return true
	}
	content := listOf(last["content"])
	if content == nil {
		content = []json.RawMessage{encoded(object{"type": "text", "text": last.text("content")})}
	}
	last.set("content", append(content, say))
	list = slices.Clone(list)
	list[len(list)-1] = encoded(last)
	f.set("messages", list)
	return true
}

// withoutThinkingEdits takes out of the context management what the API refuses
// while thinking is off.
func withoutThinkingEdits(f fields) {
	management := objectOf(f["context_management"])
	edits := listOf(management["edits"])
	if len(edits) == 0 {
		return
	}
	kept := slices.DeleteFunc(edits, func(e json.RawMessage) bool {
		return strings.HasPrefix(objectOf(e).text("type"), "clear_thinking")
	})
	if len(kept) == 0 {
		delete(f, "context_management")
		return
	}
	management.set("edits", kept)
	f.set("context_management", management)
}

// turnGemini turns levels for the models that have them and budgets for the
// others; -1 is the budget that the model chooses itself. Gemini 2.5 Pro cannot
// stop thinking and takes no less than 128 tokens.
func turnGemini(f fields, model string) bool {
	contents := listOf(f["contents"])
	if len(contents) == 0 || objectOf(objectOf(f["toolConfig"])["functionCallingConfig"]).text("mode") == "NONE" {
		return false
	}
	f.set("contents", append(contents, encoded(object{"role": "user", "parts": []object{{"text": nudge}}})))
	generation := objectOf(f["generationConfig"])
	if generation == nil {
		generation = fields{}
	}
	thinking := objectOf(generation["thinkingConfig"])
	if thinking == nil {
		thinking = fields{}
	}
	least := 0
	if strings.HasPrefix(model, "gemini-2.5-pro") {
		least = 128
	}
	level := strings.ToLower(thinking.text("thinkingLevel"))
	switch {
	case level == "low" || level == "minimal":
		thinking.set("thinkingLevel", "high")
	case level != "" || strings.HasPrefix(model, "gemini-3") && !thinking.has("thinkingBudget"):
		thinking.set("thinkingLevel", "low")
	case thinking.has("thinkingBudget") && string(thinking["thinkingBudget"]) != "-1" && thinking.integer("thinkingBudget") <= int64(least):
		thinking.set("thinkingBudget", -1)
	default:
		thinking.set("thinkingBudget", least)
	}
	generation.set("thinkingConfig", thinking)
	f.set("generationConfig", generation)
	return true
}
