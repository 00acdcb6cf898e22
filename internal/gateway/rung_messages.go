package gateway

import (
	"maps"
	"slices"
)

// messagesSplicer joins two answers of the Messages API: one message_start, the
// blocks counted on, one message_delta with the usage of both.
type messagesSplicer struct {
	started bool
	open    map[int64]string // kind of the blocks that have begun and not ended
	blocks  int64            // of the first answer
}

func newMessagesSplicer() *messagesSplicer { return &messagesSplicer{open: map[int64]string{}} }

func (s *messagesSplicer) note(data []byte) {
	e := objectOf(data)
	index := e.integer("index")
	switch e.text("type") {
	case "message_start":
		s.started = true
	case "content_block_start":
		s.open[index] = objectOf(e["content_block"]).text("type")
		s.blocks = max(s.blocks, index+1)
	case "content_block_stop":
		delete(s.open, index)
	}
}

func (s *messagesSplicer) join() []byte {
	var out []byte
	for _, index := range slices.Sorted(maps.Keys(s.open)) {
		if s.open[index] == "thinking" {
			out = append(out, named("content_block_delta", object{
				"type": "content_block_delta", "index": index, "delta": object{"type": "signature_delta", "signature": marker},
			})...)
		}
		out = append(out, named("content_block_stop", object{"type": "content_block_stop", "index": index})...)
	}
	return out
}

func (s *messagesSplicer) second(e fields, first, next *answer) []byte {
	kind := e.text("type")
	switch kind {
	case "message_start":
		if s.started {
			return nil
		}
	case "message_delta":
		e.set("usage", s.sum(objectOf(e["usage"]), first, next))
	}
	if e.has("index") {
		e.set("index", e.integer("index")+s.blocks)
	}
	return named(kind, e)
}

// sum adds the first answer's figures to those of the second's end. What the end
// does not repeat of its input, message_start told, and that was dropped.
func (s *messagesSplicer) sum(usage fields, first, next *answer) fields {
	if usage == nil {
		usage = fields{}
	}
	for name, part := range map[string][2]int64{
		"input_tokens":                {first.messages.fresh, next.messages.fresh},
		"cache_read_input_tokens":     {first.messages.read, next.messages.read},
		"cache_creation_input_tokens": {first.messages.written, next.messages.written},
		"output_tokens":               {first.messages.output, next.messages.output},
	} {
		usage.set(name, part[0]+part[1])
	}
	return usage
}
