package agent

import "bytes"

// Detect names the CLI whose transcript begins with head: codex, claude,
// gemini, opencode, or plain where no line of it is an event of one of these.
// A few kilobytes are enough.
func Detect(head []byte) string {
	for line := range bytes.Lines(head) {
		var kind, subtype, mark string
		members(bytes.TrimSpace(line), func(key, value []byte) {
			switch string(key) {
			case "type":
				kind = string(bare(value))
			case "subtype":
				subtype = string(bare(value))
			case "sessionID", "session_id", "thread_id", "role", "part", "tool_name", "severity":
				mark = string(key)
			}
		})
		switch {
		case kind == "thread.started", kind == "turn.started", kind == "turn.completed", kind == "turn.failed",
			kind == "item.started", kind == "item.completed":
			return StreamCodex
		case kind == "system" && subtype != "", kind == "result" && subtype != "", kind == "assistant", kind == "rate_limit_event":
			return StreamClaude
		case mark == "sessionID", mark == "part", kind == "step_start":
			return StreamOpencode
		case kind == "init" && mark == "session_id", kind == "message" && mark == "role",
			kind == "tool_use" && mark == "tool_name", kind == "error" && mark == "severity":
			return StreamGemini
		}
	}
	return StreamPlain
}
