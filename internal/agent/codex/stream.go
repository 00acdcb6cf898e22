package codex

import (
	"bytes"
	"cmp"
	"slices"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// parseLine reads one line of `codex exec --json`, or of a session file; others give nothing.
func parseLine(raw []byte, emit func(agent.Event)) {
	line, output := readLine(raw)
	switch line.Get("type").Str {
	case "thread.started":
		emit(agent.Event{Kind: agent.SessionStarted, ID: line.Get("thread_id").Str})
	case "turn.started":
		emit(agent.Event{Kind: agent.TurnStarted})
	case "turn.completed":
		emit(agent.Event{Kind: agent.Finished, Tokens: tokensOf(line.Get("usage"))})
	case "turn.failed":
		emit(agent.Event{Kind: agent.Failed, Text: line.Get("error.message").Str})
	case "error":
		emit(agent.Event{Kind: agent.Notice, Text: line.Get("message").Str})
	case "item.started":
		emit(readItem(line.Get("item"), output, false))
	case "item.completed":
		emit(readItem(line.Get("item"), output, true))
	case "session_meta", "event_msg", "response_item":
		parseRecorded(raw, emit)
	}
}

func tokensOf(usage gjson.Result) *policy.Tokens {
	return agent.Tokens(usage, "input_tokens", "cached_input_tokens", "output_tokens")
}

// readItem reads an item, with a command's output where that was taken out.
func readItem(item gjson.Result, output string, done bool) agent.Event {
	status := item.Get("status").Str
	e := agent.Event{ID: item.Get("id").Str, Done: done, Kind: agent.ToolCall, Rejected: status == "failed" || status == "declined"}
	switch item.Get("type").Str {
	case "agent_message":
		text := item.Get("text")
		e.Kind, e.Text, e.Authored, e.Quotes = agent.Message, text.Str, text.Str, limit.Mentioned(text.Raw)
	case "reasoning":
		e.Kind, e.Quotes = agent.Thought, limit.Mentioned(item.Get("text").Raw)
	case "error":
		// A warning about the session, such as missing model metadata.
		e.Kind, e.Quotes = agent.Notice, limit.Mentioned(item.Get("message").Raw)
	case "file_change":
		agent.Each(item.Get("changes"), func(change gjson.Result) {
			if len(e.Edits) < edit.Max {
				e.Edits = append(e.Edits, policy.Edit{Path: change.Get("path").Str})
			}
		})
	case "command_execution":
		output = cmp.Or(output, item.Get(outputField).Raw)
		command := item.Get("command")
		e.Authored, e.Ran = command.Str, true
		e.Quotes = limit.Mentioned(command.Raw) || limit.Mentioned(output)
		e.Answered(done && (e.Rejected || agent.Count(item.Get("exit_code")) != 0), output)
	case "mcp_tool_call":
		arguments := item.Get("arguments").Raw
		e.Authored, e.Ran = item.Get("server").Str+" "+item.Get("tool").Str+" "+arguments, true
		e.Quotes = limit.Mentioned(arguments) || limit.Mentioned(item.Get("result").Raw) || limit.Mentioned(item.Get("error").Raw)
		e.Answered(e.Rejected, item.Get("result").Raw+item.Get("error").Raw)
	case "web_search":
		query := item.Get("query")
		e.Authored, e.Ran, e.Quotes = query.Str, true, limit.Mentioned(query.Raw)
	default:
		// Plans, todo lists and items of later versions.
		e.Kind, e.Quotes = agent.Thought, limit.Mentioned(item.Raw) || limit.Mentioned(output)
	}
	return e
}

// outputField is where a command's output stands in its item.
const outputField = "aggregated_output"

// How the output of a command begins, and within how many bytes of the line.
var outputMark = []byte(`"` + outputField + `":"`)

const outputMarkWithin = 2 << 10

// smallOutput is the length in bytes up to which an output stays in its line.
const smallOutput = 4 << 10

// readLine reads a line, and a long output of a command apart, where it stands: nearly all bytes of a stream
// are in these, and output is a part of the line's memory.
func readLine(raw []byte) (line gjson.Result, output string) {
	mark := bytes.Index(raw[:min(len(raw), outputMarkWithin)], outputMark)
	if mark < 0 || len(raw)-mark < smallOutput {
		return agent.Line(raw), ""
	}
	// Within a string a quote has a backslash before it, so the mark stands in none.
	start := mark + len(outputMark) - 1
	end := stringEnd(raw, start)
	line = agent.Line(slices.Concat(raw[:start], []byte(`""`), raw[end:]))
	if line.Get("item."+outputField).Index != start { // it is that of something inside another field
		return agent.Line(raw), ""
	}
	return line, unsafe.String(&raw[start], end-start)
}

// stringEnd is where the string that begins at start ends, len(raw) where it is cut.
func stringEnd(raw []byte, start int) int {
	for i := start + 1; ; {
		quote := bytes.IndexByte(raw[i:], '"')
		if quote < 0 {
			return len(raw)
		}
		i += quote + 1
		before := i - 2
		for raw[before] == '\\' {
			before--
		}
		if (i-before)%2 == 0 { // an even number of backslashes
			return i
		}
	}
}
