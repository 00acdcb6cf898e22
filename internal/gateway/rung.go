package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/internal/panics"
)

const nudge = "Do not deliberate further. Either call a tool now to get on with the task, or give your final answer now in a few sentences."

// maxHeld limits a held answer in bytes. It exceeds any model's reasoning.
const maxHeld = 8 << 20

func (c *call) guarded() bool {
	if c.grant.NoAnswerBytes <= 0 || !c.req.tools {
		return false
	}
	return c.req.body != "" && forms[c.route.kind].alive != ""
}

// heldAnswer holds an answer until a tool call or visible text. An answer without either is requested once more, if
// breaker and budget allow. The agent gets the second answer if it is good, otherwise the first.
type heldAnswer struct {
	*call
	first, second *stream // second is nil without a second try
	asked         bool
	cancel        context.CancelFunc
	alive         chan struct{} // receives after each sign of life
	decided       chan struct{} // closed when the answer is chosen; then only Read reads
	counts        *stream
	known         bool // Read saw decided and sends no more signs of life
}

func (c *call) hold(ctx context.Context, first *stream, out *http.Request) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	h := &heldAnswer{
		call:    c,
		first:   first,
		cancel:  cancel,
		alive:   make(chan struct{}, 1),
		decided: make(chan struct{}),
		counts:  first,
	}
	go func() {
		defer close(h.decided)
		err := panics.Try(func() error {
			if h.comesToNothing() && h.again(ctx, out) {
				h.counts = h.second
			}
			return nil
		})
		if err != nil {
			h.gateway.Log.Error().Err(err).Str("stack", panics.Stack(err)).Msg("the second try panicked; the agent gets the first answer")
		}
	}()
	return h
}

// Read forwards the provider's signs of life and then the answer.
func (h *heldAnswer) Read(p []byte) (int, error) {
	for !h.known {
		select {
		case <-h.decided:
			h.known = true
		case <-h.alive:
			return copy(p, forms[h.route.kind].alive), nil
		}
	}
	return h.counts.Read(p)
}

func (h *heldAnswer) Close() error {
	h.cancel()
	h.first.from.Close() // releases waiting readers
	<-h.decided
	var err error
	if h.second != nil {
		err = h.closeSecond()
	}
	err = errors.Join(err, h.first.Close())
	if h.asked {
		wasted := h.grant.shareOf(h.req.model, h.first.answer.tokens)
		h.change(func(u *Usage) {
			u.NoAnswer.Wasted += wasted.tokens
			u.NoAnswer.WastedUSD += wasted.cost
		})
	}
	return err
}

func (h *heldAnswer) closeSecond() error {
	err := h.second.Close()
	said := &h.second.answer
	used := h.grant.shareOf(h.req.model, said.tokens)
	h.change(func(u *Usage) {
		u.NoAnswer.Tokens += used.tokens
		u.NoAnswer.CostUSD += used.cost
		if said.recovers(h.grant.NoAnswerBytes) {
			u.NoAnswer.Recovered++
		}
	})
	// Both tries sent the same conversation, so the second's input is the best estimate.
	first := &h.first.answer
	if !first.inputKnown && said.inputKnown {
		first.tokens.input = said.tokens.input
		first.tokens.estimated = said.tokens.input
		first.inputKnown = true
	}
	return err
}

// recovers reports whether the second try ended well with a tool call or at most maxProse bytes of prose.
func (a *answer) recovers(maxProse int) bool {
	if a.failure != nil || !a.ended {
		return false
	}
	if a.tool {
		return true
	}
	return a.text && a.prose <= maxProse
}

// beat makes Read send the agent a sign of life, because the provider sent something. Without these signs the agent
// would give up.
func (h *heldAnswer) beat() {
	select {
	case h.alive <- struct{}{}:
	default:
	}
}

// comesToNothing reads the first answer until it is clear whether it ends without a tool call or text.
func (h *heldAnswer) comesToNothing() bool {
	for s := h.first; ; h.beat() {
		s.next()
		switch {
		case s.answer.useful(), s.answer.failure != nil:
			return false
		case s.answer.over, errors.Is(s.err, io.EOF):
			return s.answer.nothing()
		case s.err != nil, s.out.Len() > maxHeld:
			return false
		}
	}
}

// again makes the second try. It returns false if the agent gets the first answer.
func (h *heldAnswer) again(ctx context.Context, out *http.Request) bool {
	body, ok := h.req.opposite(h.route.kind, h.grant.Provider)
	if !ok || !h.mayRepeat(ctx, h.first.answer) {
		return false
	}
	h.asked = true
	h.change(func(u *Usage) { u.NoAnswer.Times++ })
	h.gateway.Log.Info().Str("attempt", h.grant.Attempt).Str("model", h.req.model).Msg("no answer, trying once more")
	resp, err := h.send(ctx, out, body)
	if err != nil {
		return false // the agent gets the first answer
	}
	if resp.StatusCode >= 300 || !h.streams(resp) {
		h.lost(resp)
		return false
	}
	s := h.newStream(resp)
	h.second = s
	for s.err == nil && s.answer.awaited() {
		s.next()
		h.beat()
	}
	good := s.answer.good()
	s.answer.replaced = !good
	h.first.answer.replaced = good
	return good
}

// lost reads a response that cannot serve as the second answer, and reports its error.
func (h *heldAnswer) lost(resp *http.Response) {
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if resp.StatusCode >= 400 {
		h.fail(limit.Answer(resp.StatusCode, resp.Header, text))
	}
}

// mayRepeat checks the breaker and the budget, counting the first answer's usage. It records nothing, since nothing is
// refused.
func (c *call) mayRepeat(ctx context.Context, first answer) bool {
	first.settle(c.req.size)
	_, closed := c.grant.Limited(ctx)
	return !closed && c.leaves(c.req.model, first.tokens, c.reserved)
}

// draft is a request being changed. Unchanged parts keep their bytes.
type draft struct{ body string }

func (d *draft) get(path string) gjson.Result { return gjson.Get(d.body, path) }

func (d *draft) has(path string) bool { return d.get(path).Type != gjson.Null }

// set writes a value; -1 at the end of a path appends. Impossible paths change nothing.
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

// opposite returns the second try's request, or false.
func (r request) opposite(kind callKind, p config.Provider) (string, bool) {
	d := &draft{r.body}
	turn := forms[kind].turn
	turned := turn != nil && turn(d, p.ModelNamed(r.model))
	return d.body, turned
}

// otherEffort returns the model's lowest effort, which is "low" for unknown models. If the current effort is the lowest,
// none or minimal, it returns medium. The lowest remains if the model has no medium.
func otherEffort(effort string, m config.Model) string {
	least := "low"
	if len(m.Efforts) > 0 {
		least = m.Efforts[0]
	}
	switch effort {
	case "none", "minimal":
		return "medium"
	case least:
		if slices.Contains(m.Efforts, "medium") {
			return "medium"
		}
	}
	return least
}

// turnResponses refuses conversations that the provider stores: the stored conversation would lack the second try.
func (d *draft) turnResponses(m config.Model) bool {
	kept := d.get("store").Type == gjson.True || d.has("previous_response_id") || d.has("conversation")
	if kept || d.get("tool_choice").Str == "none" {
		return false
	}
	if input := d.get("input"); !input.IsArray() {
		d.set("input", []object{{"type": "message", "role": "user", "content": input.Str}})
	}
	d.set("input.-1", object{
		"type":    "message",
		"role":    "developer",
		"content": []object{{"type": "input_text", "text": nudge}},
	})
	d.set("reasoning.effort", otherEffort(d.get("reasoning.effort").Str, m))
	return true
}

// turnChat inverts the request's own thinking switch: OpenAI's effort or another server's field.
func (d *draft) turnChat(m config.Model) bool {
	several := count(d.get("n")) > 1
	if several || !d.get("messages.0").Exists() || d.get("tool_choice").Str == "none" {
		return false
	}
	d.set("messages.-1", object{"role": "user", "content": nudge})
	const template = "chat_template_kwargs.enable_thinking"
	switch thinking := d.get("thinking.type"); {
	case d.has(template):
		d.set(template, d.get(template).Type != gjson.True)
	case thinking.Str == "enabled":
		d.set("thinking", object{"type": "disabled"})
	case thinking.Type != gjson.Null:
		d.set("thinking", object{"type": "enabled"})
	default:
		d.set("reasoning_effort", otherEffort(d.get("reasoning_effort").Str, m))
	}
	return true
}

// leastBudget is the minimum thinking budget of Anthropic's models in tokens (reference of 2025-11). It must be below
// max_tokens. mostBudget suffices for a step.
const (
	leastBudget = 1024
	mostBudget  = 8192
)

func (d *draft) turnMessages(m config.Model) bool {
	choice := d.get("tool_choice.type").Str
	if choice == "none" || !d.sayMessages() {
		return false
	}
	switch d.get("thinking.type").Str {
	case "enabled", "adaptive":
		d.set("thinking", object{"type": "disabled"})
		d.dropThinkingEdits()
		return true
	}
	effort := len(m.Efforts) > 0 || d.has("output_config.effort")
	most := count(d.get("max_tokens"))
	switch {
	case m.LeastBudget == nil && effort: // the model decides
		d.set("thinking", object{"type": "adaptive"})
	case most <= leastBudget:
		return false
	default:
		d.set("thinking", object{"type": "enabled", "budget_tokens": min(max(most/2, leastBudget), mostBudget)})
	}
	// The API refuses these fields together with thinking.
	for _, name := range []string{"temperature", "top_k", "top_p"} {
		d.drop(name)
	}
	switch choice {
	case "", "auto":
		return true
	}
	return false
}

// sayMessages appends the nudge to the last user message.
func (d *draft) sayMessages() bool {
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

// dropThinkingEdits removes context management that the API refuses without thinking.
func (d *draft) dropThinkingEdits() {
	edits := d.get("context_management.edits").Array()
	left := len(edits)
	for i := len(edits) - 1; i >= 0; i-- { // from the end, to keep indices
		if strings.HasPrefix(edits[i].Get("type").Str, "clear_thinking") {
			d.drop(fmt.Sprintf("context_management.edits.%d", i))
			left--
		}
	}
	if left == 0 && len(edits) > 0 {
		d.drop("context_management")
	}
}

// turnGemini inverts thinking levels or budgets; budget -1 lets the model decide.
func (d *draft) turnGemini(m config.Model) bool {
	forbidden := d.get("toolConfig.functionCallingConfig.mode").Str == "NONE"
	if forbidden || !d.get("contents.0").Exists() {
		return false
	}
	d.set("contents.-1", object{"role": "user", "parts": []object{{"text": nudge}}})
	least := int64(0)
	if m.LeastBudget != nil {
		least = *m.LeastBudget
	}
	const thinking = "generationConfig.thinkingConfig."
	level, budget := strings.ToLower(d.get(thinking+"thinkingLevel").Str), d.get(thinking+"thinkingBudget")
	byLevel := len(m.Efforts) > 0 && budget.Type == gjson.Null
	switch {
	case level == "low", level == "minimal":
		d.set(thinking+"thinkingLevel", "high")
	case level != "", byLevel:
		d.set(thinking+"thinkingLevel", "low")
	case atMost(budget, least):
		d.set(thinking+"thinkingBudget", -1)
	default:
		d.set(thinking+"thinkingBudget", least)
	}
	return true
}

// atMost reports whether a budget is set and within limit. A negative budget lets the model decide.
func atMost(budget gjson.Result, limit int64) bool {
	if budget.Type != gjson.Number || budget.Num < 0 {
		return false
	}
	return count(budget) <= limit
}
