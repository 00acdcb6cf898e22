package main

import (
	"bytes"
	"encoding/json"
	"time"
)

// boundary tells of an object of an agent's stream whether it begins or ends a
// session, and which.
func boundary(object []byte) (session string, first, last bool) {
	if len(object) > maxBoundary {
		// The events at the ends are short, except for the last answer.
		return "", false, bytes.HasPrefix(object, []byte(`{"type":"result"`))
	}
	var o struct {
		Type, Subtype string
		Thread        string `json:"thread_id"`
		Session       string `json:"session_id"`
	}
	if json.Unmarshal(object, &o) != nil {
		return "", false, false
	}
	switch o.Type {
	case "thread.started":
		return o.Thread, true, false
	case "turn.completed", "turn.failed":
		return "", false, true
	case "system":
		return o.Session, o.Subtype == "init", false
	case "init":
		return o.Session, true, false
	}
	// What follows a result of Claude Code in the same session belongs to it.
	return "", false, false
}

// maxBoundary is more than the longest first event, which lists Claude Code's
// tools.
const maxBoundary = 64 << 10

// apiFailure is the last refusal that the log of a fork of opencode told of. The
// fork's own error event names neither the provider's answer nor its headers.
// The zero value is none.
type apiFailure struct {
	Message string            `json:"message"`
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"responseHeaders"`
	Body    string            `json:"responseBody"`
	At      time.Time         `json:"-"`
}

// asOpencode gives the events of the fork as opencode prints them: its error
// event, and each tool call once, when it has ended; nil stands for an event that
// opencode does not print. Everything else stays as it is; what the fork logs of
// refused requests is remembered.
func (f *apiFailure) asOpencode(object []byte) []byte {
	if bytes.HasPrefix(object, []byte(`{"type":"tool_use"`)) {
		if underWay(object) {
			return nil
		}
		return object
	}
	if bytes.HasPrefix(object, []byte(`{"type":"log"`)) && bytes.Contains(object, []byte(`"responseHeaders"`)) {
		f.remember(object)
		return object
	}
	if !bytes.HasPrefix(object, []byte(`{"type":"error"`)) {
		return object
	}
	var e struct {
		Kind    string          `json:"errorType"`
		Message string          `json:"message"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal(object, &e) != nil {
		return object
	}
	if e.Message == "" && json.Unmarshal(e.Error, &e.Message) != nil {
		// The error is an object, as opencode prints it.
		return object
	}
	data := *f
	data.Message = e.Message
	at := int64(0)
	if !f.At.IsZero() {
		at = f.At.UnixMilli()
	}
	out, err := json.Marshal(map[string]any{
		"type": "error", "timestamp": at, "sessionID": "",
		"error": map[string]any{"name": e.Kind, "data": data},
	})
	if err != nil {
		return object
	}
	return out
}

// underWay reports whether a tool call has not ended.
func underWay(object []byte) bool {
	var e struct {
		Part struct {
			State struct {
				Status string `json:"status"`
			} `json:"state"`
		} `json:"part"`
	}
	return json.Unmarshal(object, &e) == nil && (e.Part.State.Status == "pending" || e.Part.State.Status == "running")
}

// remember takes the provider's answer from a log event.
func (f *apiFailure) remember(object []byte) {
	var tree any
	if json.Unmarshal(object, &tree) != nil {
		return
	}
	answer, ok := answered(tree, maxDepth)
	if !ok {
		return
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return
	}
	var got apiFailure
	if json.Unmarshal(b, &got) != nil {
		return
	}
	*f = got
	f.At = stamp(object)
	if date, err := time.Parse(time.RFC1123, got.Headers["date"]); err == nil {
		f.At = date
	}
}

// maxDepth is deeper than any error that wraps errors was seen to be.
const maxDepth = 10

// answered finds an object with the headers of an answer; where there are
// several, the one named lastError.
func answered(tree any, depth int) (map[string]any, bool) {
	m, isMap := tree.(map[string]any)
	if !isMap || depth == 0 {
		return nil, false
	}
	if _, ok := m["responseHeaders"]; ok {
		return m, true
	}
	if found, ok := answered(m["lastError"], depth-1); ok {
		return found, true
	}
	for _, key := range []string{"error", "cause", "data"} {
		if found, ok := answered(m[key], depth-1); ok {
			return found, true
		}
	}
	return nil, false
}
