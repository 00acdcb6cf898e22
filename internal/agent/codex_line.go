package agent

import "bytes"

// How codex begins the lines of items.
var (
	codexItemStarted   = []byte(`{"type":"item.started","item":`)
	codexItemCompleted = []byte(`{"type":"item.completed","item":`)
)

// codexLine reads one line of `codex exec --json`. Lines that are not events
// of that stream give nothing.
func codexLine(line []byte, emit func(Event)) {
	// Nearly all bytes are in items. To look for the end of one first would be
	// to read it twice.
	if item, ok := bytes.CutPrefix(line, codexItemStarted); ok {
		codexItem(item, false, emit)
		return
	}
	if item, ok := bytes.CutPrefix(line, codexItemCompleted); ok {
		codexItem(item, true, emit)
		return
	}
	var kind, thread, message, item, usage, failure []byte
	members(line, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "thread_id":
			thread = value
		case "message":
			message = value
		case "item":
			item = value
		case "usage":
			usage = value
		case "error":
			failure = value
		}
	})
	switch string(bare(kind)) {
	case "thread.started":
		emit(Event{Kind: SessionStarted, ID: stringOf(thread)})
	case "turn.started":
		emit(Event{Kind: TurnStarted})
	case "turn.completed":
		emit(Event{Kind: Finished, Tokens: codexUsage(usage)})
	case "turn.failed":
		emit(Event{Kind: Failed, Text: stringOf(member(failure, "message"))})
	case "error":
		emit(Event{Kind: Notice, Text: stringOf(message)})
	case "item.started":
		codexItem(item, false, emit)
	case "item.completed":
		codexItem(item, true, emit)
	}
}

func codexUsage(raw []byte) *Tokens {
	if raw == nil {
		return nil
	}
	t := &Tokens{}
	members(raw, func(key, value []byte) {
		switch string(key) {
		case "input_tokens":
			t.Input = intOf(value)
		case "cached_input_tokens":
			t.CachedInput = intOf(value)
		case "output_tokens":
			t.Output = intOf(value)
		}
	})
	return t
}

func codexItem(raw []byte, done bool, emit func(Event)) {
	f := codexFields(raw)
	e := Event{ID: stringOf(f.id), Done: done, Kind: ToolCall}
	status := bare(f.status)
	e.Rejected = string(status) == "failed" || string(status) == "declined"
	switch string(bare(f.kind)) {
	case "agent_message":
		e.Kind, e.Text = Message, stringOf(f.text)
		e.Wrote, e.Quotes = e.Text, quotesLimit(f.text)
	case "reasoning":
		e.Kind, e.Quotes = Thought, quotesLimit(f.text)
	case "error":
		// A warning about the session, such as missing model metadata.
		e.Kind, e.Text = Notice, ""
		e.Quotes = quotesLimit(f.message)
	case "file_change":
		elements(f.changes, func(change []byte) {
			if len(e.Edits) < maxEdits {
				e.Edits = append(e.Edits, Edit{Path: stringOf(member(change, "path"))})
			}
		})
	case "command_execution":
		e.Wrote, e.Ran = stringOf(f.command), true
		e.Quotes = quotesLimit(f.command) || quotesLimit(f.output)
		e.fail(done && (e.Rejected || intOf(f.exit) != 0), f.output)
	case "mcp_tool_call":
		e.Wrote, e.Ran = stringOf(f.server)+" "+stringOf(f.tool)+" "+string(f.arguments), true
		e.Quotes = quotesLimit(f.arguments) || quotesLimit(f.result) || quotesLimit(f.problem)
	case "web_search":
		e.Wrote, e.Ran = stringOf(f.query), true
		e.Quotes = quotesLimit(f.query)
	default:
		// Plans, todo lists and items of later versions.
		e.Kind, e.Quotes = Thought, quotesLimit(raw)
	}
	emit(e)
}
