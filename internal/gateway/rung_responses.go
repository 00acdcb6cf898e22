package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// responsesSplicer joins two answers of the Responses API: one response with one
// id, whose items, indexes and sequence numbers go on through both.
type responsesSplicer struct {
	id, created json.RawMessage
	sequence    int64 // of the last event that the agent got
	items       int64 // of the first answer
	open        map[int64]*openItem
	done        []json.RawMessage
	later       []json.RawMessage // items that the second answer ended
	ids         map[string]bool   // of the first answer's items
	begun       bool              // response.created was seen
}

// openItem is an item of the first answer that has begun and not ended.
type openItem struct {
	item  fields
	parts map[partKey]*openPart
}

// partKey tells parts of the summary from those of the content.
type partKey struct {
	summary bool
	index   int64
}

type openPart struct {
	kind string // output_text, refusal, summary_text or reasoning_text
	text strings.Builder
	over bool
}

func newResponsesSplicer() *responsesSplicer {
	return &responsesSplicer{sequence: -1, open: map[int64]*openItem{}, ids: map[string]bool{}}
}

func (s *responsesSplicer) note(data []byte) {
	e := objectOf(data)
	kind := e.text("type")
	if e.has("sequence_number") {
		s.sequence = e.integer("sequence_number")
	}
	if response := objectOf(e["response"]); response.has("id") {
		s.begun = true
		s.id, s.created = response["id"], response["created_at"]
	}
	if !e.has("output_index") {
		return
	}
	index := e.integer("output_index")
	s.items = max(s.items, index+1)
	switch {
	case kind == "response.output_item.added":
		item := objectOf(e["item"])
		if item == nil {
			return // not of the protocol
		}
		s.ids[item.text("id")] = true
		s.open[index] = &openItem{item: item, parts: map[partKey]*openPart{}}
	case kind == "response.output_item.done":
		s.ids[objectOf(e["item"]).text("id")] = true
		s.done = append(s.done, e["item"])
		delete(s.open, index)
	case s.open[index] != nil:
		s.open[index].note(kind, e)
	}
}

// note keeps what was said of a part. kind is response.<part>.<delta or done>,
// or response.content_part.added and its like.
func (o *openItem) note(kind string, e fields) {
	name, step := cutLast(strings.TrimPrefix(kind, "response."))
	key := partKey{summary: e.has("summary_index"), index: e.integer("content_index") + e.integer("summary_index")}
	part := o.parts[key]
	if part == nil {
		part = &openPart{}
		o.parts[key] = part
	}
	switch {
	case strings.HasSuffix(name, "_part"):
		part.kind = objectOf(e["part"]).text("type")
		part.over = part.over || step == "done"
	case step == "delta":
		if part.kind == "" {
			part.kind = strings.TrimPrefix(name, "reasoning_summary")
			if part.kind != name { // reasoning_summary_text carries summary_text
				part.kind = "summary" + part.kind
			}
		}
		part.text.WriteString(e.text("delta"))
	case step == "done" && len(e["text"]) > 0:
		part.text.Reset()
		part.text.WriteString(e.text("text"))
	}
}

func cutLast(s string) (before, after string) {
	if at := strings.LastIndexByte(s, '.'); at >= 0 {
		return s[:at], s[at+1:]
	}
	return s, ""
}

func (s *responsesSplicer) event(kind string, e object) []byte {
	s.sequence++
	e["type"], e["sequence_number"] = kind, s.sequence
	return named(kind, e)
}

func (s *responsesSplicer) join() []byte {
	var out []byte
	for _, index := range slices.Sorted(maps.Keys(s.open)) {
		out = append(out, s.finish(index, s.open[index])...)
	}
	clear(s.open)
	return out
}

// finish ends an item with what was said of it: its parts, then itself.
func (s *responsesSplicer) finish(index int64, o *openItem) []byte {
	var out []byte
	lists := map[bool][]object{false: {}, true: {}}
	for _, key := range slices.SortedFunc(maps.Keys(o.parts), func(a, b partKey) int { return cmp.Compare(a.index, b.index) }) {
		part := o.parts[key]
		if part.kind == "" {
			continue
		}
		value := part.value()
		lists[key.summary] = append(lists[key.summary], value)
		if part.over {
			continue
		}
		where, text, whole := "content_index", "response."+part.kind, "response.content_part"
		if key.summary {
			where, text, whole = "summary_index", "response.reasoning_summary_text", "response.reasoning_summary_part"
		}
		at := func(more object) object {
			more["item_id"], more["output_index"], more[where] = o.item.text("id"), index, key.index
			return more
		}
		said := "text"
		if part.kind == "refusal" {
			said = part.kind
		}
		out = append(out, s.event(text+".done", at(object{said: part.text.String()}))...)
		out = append(out, s.event(whole+".done", at(object{"part": value}))...)
	}
	switch o.item.text("type") {
	case "message":
		o.item.set("content", lists[false])
		o.item.set("status", "completed")
	case "reasoning":
		o.item.set("summary", lists[true])
		if len(lists[false]) > 0 {
			o.item.set("content", lists[false])
		}
		o.item.set("encrypted_content", marker)
	}
	s.done = append(s.done, encoded(o.item))
	return append(out, s.event("response.output_item.done", object{"output_index": index, "item": o.item})...)
}

func (p *openPart) value() object {
	if p.kind == "refusal" {
		return object{"type": p.kind, "refusal": p.text.String()}
	}
	v := object{"type": p.kind, "text": p.text.String()}
	if p.kind == "output_text" {
		v["annotations"] = []string{}
	}
	return v
}

func (s *responsesSplicer) second(e fields, first, _ *answer) []byte {
	kind := e.text("type")
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if s.begun {
			return nil
		}
	}
	if item := objectOf(e["item"]); item != nil {
		e.set("item", s.renamed(item, "id"))
		if kind == "response.output_item.done" {
			s.later = append(s.later, e["item"])
		}
	}
	if response := objectOf(e["response"]); response != nil {
		s.whole(response, first.tokens)
		e.set("response", response)
	}
	if e.has("output_index") {
		e.set("output_index", e.integer("output_index")+s.items)
	}
	s.renamed(e, "item_id")
	s.sequence++
	e.set("sequence_number", s.sequence)
	return named(kind, e)
}

// whole makes the response that ends the second answer the end of both.
func (s *responsesSplicer) whole(response fields, first tokens) {
	if s.begun {
		response["id"], response["created_at"] = s.id, s.created
	}
	response.set("output", append(append([]json.RawMessage{}, s.done...), s.output(response)...))
	usage := objectOf(response["usage"])
	if usage == nil {
		return
	}
	input, output := usage.integer("input_tokens")+first.input, usage.integer("output_tokens")+first.output
	usage.set("input_tokens", input)
	usage.set("output_tokens", output)
	usage.set("total_tokens", input+output)
	if details := objectOf(usage["input_tokens_details"]); details != nil {
		details.set("cached_tokens", details.integer("cached_tokens")+first.cached)
		usage.set("input_tokens_details", details)
	}
	response.set("usage", usage)
}

// output gives the items of the second answer as they were told one by one; some
// servers leave them out of the last event, or the reasoning among them.
func (s *responsesSplicer) output(response fields) []json.RawMessage {
	output := listOf(response["output"])
	if len(s.later) >= len(output) {
		return s.later
	}
	for i, raw := range output {
		if item := objectOf(raw); item != nil {
			output[i] = encoded(s.renamed(item, "id"))
		}
	}
	return output
}

// renamed gives an item of the second answer another id if the first has one of
// that name, which servers that count from 1 do.
func (s *responsesSplicer) renamed(f fields, name string) fields {
	if id := f.text(name); id != "" && s.ids[id] {
		f.set(name, id+"_2")
	}
	return f
}
