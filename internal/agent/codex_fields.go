package agent

import "bytes"

// codexItemFields are the raw members of an item that classify it.
type codexItemFields struct {
	id, kind, status, text, message          []byte
	command, output, changes                 []byte
	server, tool, arguments, result, problem []byte
	query, exit                              []byte
}

// How the output of a command begins and ends in its item, and how far from the
// item's ends these are looked for, in bytes.
var (
	codexOutputStart = []byte(`"aggregated_output":"`)
	codexOutputEnd   = []byte(`","exit_code":`)
)

const outputReach = 1 << 10

// codexFields splits an item. The output of a command is nearly all of it and
// full of quotes, so its end is looked for from the end of the item. Within a
// JSON string a quote has a backslash before it, so neither mark can stand in one.
func codexFields(raw []byte) (f codexItemFields) {
	if f, ok := codexCommandFields(raw); ok {
		return f
	}
	members(raw, f.set)
	return f
}

// codexCommandFields is codexFields for a whole command as codex prints it.
func codexCommandFields(raw []byte) (f codexItemFields, ok bool) {
	start := bytes.Index(raw[:min(len(raw), outputReach)], codexOutputStart)
	if start < 0 {
		return f, false
	}
	start += len(codexOutputStart) - 1
	from := max(start, len(raw)-outputReach)
	end := bytes.LastIndex(raw[from:], codexOutputEnd)
	if end < 0 || from+end == start {
		return f, false
	}
	end += from + 1
	flat := true // or the first mark may be inside another member
	membersFrom(raw[1:start], func(key, value []byte) {
		flat = flat && value[0] != '{' && value[0] != '['
		f.set(key, value)
	})
	if !flat || string(bare(f.kind)) != "command_execution" {
		return f, false
	}
	f.output = raw[start:end]
	membersFrom(raw[end:], f.set)
	return f, true
}

func (f *codexItemFields) set(key, value []byte) {
	switch string(key) {
	case "id":
		f.id = value
	case "type":
		f.kind = value
	case "status":
		f.status = value
	case "text":
		f.text = value
	case "message":
		f.message = value
	case "command":
		f.command = value
	case "aggregated_output":
		f.output = value
	case "changes":
		f.changes = value
	case "server":
		f.server = value
	case "tool":
		f.tool = value
	case "arguments":
		f.arguments = value
	case "result":
		f.result = value
	case "error":
		f.problem = value
	case "query":
		f.query = value
	case "exit_code":
		f.exit = value
	}
}
