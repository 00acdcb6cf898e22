package gateway

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// draft is a request that is being changed; what is not touched keeps its bytes.
type draft struct{ body string }

func (d *draft) get(path string) gjson.Result { return gjson.Get(d.body, path) }

// set writes a value; -1 at the end of a path appends. A place that cannot be is left as it is.
func (d *draft) set(path string, value any) {
	if changed, err := sjson.SetRaw(d.body, path, encoded(value)); err == nil {
		d.body = changed
	}
}

func (d *draft) drop(path string) {
	if changed, err := sjson.Delete(d.body, path); err == nil {
		d.body = changed
	}
}

// opposite is the request of the second try: the other thinking mode and the
// nudge. It answers false where the request cannot be turned round.
func opposite(r request, kind callKind) (string, bool) {
	d := &draft{r.body}
	turned := false
	switch kind {
	case responses:
		turned = turnResponses(d, r.model)
	case chat:
		turned = turnChat(d, r.model)
	case messages:
		turned = turnMessages(d)
	case generate:
		turned = turnGemini(d, r.model)
	}
	return d.body, turned
}

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
func turnResponses(d *draft, model string) bool {
	kept := d.get("store").Type == gjson.True || d.get("previous_response_id").Type != gjson.Null || d.get("conversation").Type != gjson.Null
	if kept || d.get("tool_choice").Str == "none" {
		return false
	}
	if input := d.get("input"); !input.IsArray() {
		d.set("input", []object{{"type": "message", "role": "user", "content": input.Str}})
	}
	d.set("input.-1", object{"type": "message", "role": "developer", "content": []object{{"type": "input_text", "text": nudge}}})
	d.set("reasoning.effort", otherEffort(d.get("reasoning.effort").Str, model))
	return true
}

// turnChat also turns the switches of other servers, where the request uses them.
func turnChat(d *draft, model string) bool {
	if count(d.get("n")) > 1 || !d.get("messages.0").Exists() || d.get("tool_choice").Str == "none" {
		return false
	}
	d.set("messages.-1", object{"role": "user", "content": nudge})
	const template = "chat_template_kwargs.enable_thinking"
	switch thinking := d.get("thinking.type"); {
	case d.get(template).Type != gjson.Null:
		d.set(template, d.get(template).Type != gjson.True)
	case thinking.Str == "enabled":
		d.set("thinking", object{"type": "disabled"})
	case thinking.Type != gjson.Null:
		d.set("thinking", object{"type": "enabled"})
	default:
		d.set("reasoning_effort", otherEffort(d.get("reasoning_effort").Str, model))
	}
	return true
}

// Anthropic's bounds of a thinking budget in tokens; it must be less than max_tokens.
const (
	leastBudget = 1024
	mostBudget  = 8192
)

// adaptive matches Claude's models from 4.6 on, claude-opus-4-7 or anthropic/claude-opus-5. They think as they
// see fit, and from 4.7 on refuse a budget.
var adaptive = regexp.MustCompile(`claude-[a-z]+-(?:4[-.](?:[6-9]|[1-9]\d)|[5-9]|[1-9]\d)(?:[-.@]|$)`)

func turnMessages(d *draft) bool {
	choice := d.get("tool_choice.type").Str
	if choice == "none" || !sayMessages(d) {
		return false
	}
	if kind := d.get("thinking.type").Str; kind == "enabled" || kind == "adaptive" {
		d.set("thinking", object{"type": "disabled"})
		dropThinkingEdits(d)
		return true
	}
	if d.get("output_config.effort").Type != gjson.Null || adaptive.MatchString(d.get("model").Str) { // the model thinks as it sees fit
		d.set("thinking", object{"type": "adaptive"})
	} else {
		most := count(d.get("max_tokens"))
		if most <= leastBudget {
			return false
		}
		d.set("thinking", object{"type": "enabled", "budget_tokens": min(max(most/2, leastBudget), mostBudget)})
	}
	// Thinking allows neither of these.
	for _, name := range []string{"temperature", "top_k", "top_p"} {
		d.drop(name)
	}
	return choice == "" || choice == "auto"
}

// sayMessages puts the nudge at the end of the last message, the user's, which may hold tool results.
func sayMessages(d *draft) bool {
	n := d.get("messages.#").Int()
	if n == 0 {
		return false
	}
	say := object{"type": "text", "text": nudge}
	last := fmt.Sprintf("messages.%d", n-1)
	if d.get(last+".role").Str != "user" {
		d.set("messages.-1", object{"role": "user", "content": []object{say}})
		return true
	}
	if content := d.get(last + ".content"); !content.IsArray() {
		d.set(last+".content", []object{{"type": "text", "text": content.Str}})
	}
	d.set(last+".content.-1", say)
	return true
}

// dropThinkingEdits takes out of the context management what the API refuses while thinking is off.
func dropThinkingEdits(d *draft) {
	edits := d.get("context_management.edits").Array()
	left := len(edits)
	for i := len(edits) - 1; i >= 0; i-- { // from the end, so that the others keep their places
		if strings.HasPrefix(edits[i].Get("type").Str, "clear_thinking") {
			d.drop(fmt.Sprintf("context_management.edits.%d", i))
			left--
		}
	}
	if left == 0 && len(edits) > 0 {
		d.drop("context_management")
	}
}

// turnGemini turns levels for models that have them, else budgets; the model chooses at -1. Gemini 2.5 Pro
// takes no less than 128 tokens.
func turnGemini(d *draft, model string) bool {
	if !d.get("contents.0").Exists() || d.get("toolConfig.functionCallingConfig.mode").Str == "NONE" {
		return false
	}
	d.set("contents.-1", object{"role": "user", "parts": []object{{"text": nudge}}})
	least := int64(0)
	if strings.HasPrefix(model, "gemini-2.5-pro") {
		least = 128
	}
	const thinking = "generationConfig.thinkingConfig."
	level, budget := strings.ToLower(d.get(thinking+"thinkingLevel").Str), d.get(thinking+"thinkingBudget")
	switch {
	case level == "low" || level == "minimal":
		d.set(thinking+"thinkingLevel", "high")
	case level != "" || strings.HasPrefix(model, "gemini-3") && budget.Type == gjson.Null:
		d.set(thinking+"thinkingLevel", "low")
	case budget.Type == gjson.Number && budget.Num >= 0 && count(budget) <= least:
		d.set(thinking+"thinkingBudget", -1)
	default:
		d.set(thinking+"thinkingBudget", least)
	}
	return true
}
