package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// boundary reports whether an object in an agent's stream begins or ends a session, and returns a known session ID.
func boundary(object []byte) (session string, first, last bool) {
	if len(object) > maxBoundary {
		// First and last events are short, except the final answer.
		return "", false, bytes.HasPrefix(object, []byte(`{"type":"result"`))
	}
	if !gjson.ValidBytes(object) {
		return "", false, false
	}
	o := gjson.ParseBytes(object)
	switch o.Get("type").String() {
	case "thread.started":
		return o.Get("thread_id").String(), true, false
	case "turn.completed", "turn.failed":
		return "", false, true
	case "system":
		return o.Get("session_id").String(), o.Get("subtype").String() == "init", false
	case "init":
		return o.Get("session_id").String(), true, false
	}
	// Claude Code's output after a result belongs to the same session.
	return "", false, false
}

// maxBoundary exceeds the longest first event, which lists Claude Code's tools.
const maxBoundary = 64 << 10

// apiFailure is the last refusal in the log of an opencode fork, whose error event lacks the provider's answer and
// headers.
type apiFailure struct {
	Message string            `json:"message"`
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"responseHeaders"`
	Body    string            `json:"responseBody"`
	At      time.Time         `json:"-"`
}

// asOpencode converts the fork's error event to opencode's. It returns nil for a tool call that has not ended, so that
// each call appears once, and other events unchanged. It stores refused requests.
func (f *apiFailure) asOpencode(object []byte) []byte {
	if !gjson.ValidBytes(object) {
		return object
	}
	o := gjson.ParseBytes(object)
	switch o.Get("type").String() {
	case "tool_use":
		switch o.Get("part.state.status").String() {
		case "pending", "running":
			return nil
		}
	case "log":
		f.remember(o)
	case "error":
		if o.Get("message").Str != "" || o.Get("error").Type == gjson.String {
			return f.event(o)
		}
	}
	return object
}

// event converts the fork's error event and adds the stored refusal.
func (f *apiFailure) event(o gjson.Result) []byte {
	data := *f
	data.Message = cmp.Or(o.Get("message").Str, o.Get("error").Str)
	at := int64(0)
	if !f.At.IsZero() {
		at = f.At.UnixMilli()
	}
	out, _ := json.Marshal(map[string]any{ // never fails
		"type": "error", "timestamp": at, "sessionID": "",
		"error": map[string]any{"name": o.Get("errorType").String(), "data": data},
	})
	return out
}

func (f *apiFailure) remember(o gjson.Result) {
	answer, ok := answered(o, maxDepth)
	var got apiFailure
	if !ok || json.Unmarshal([]byte(answer.Raw), &got) != nil {
		return
	}
	*f = got
	f.At = stamp([]byte(o.Raw))
	if date, err := time.Parse(time.RFC1123, got.Headers["date"]); err == nil {
		f.At = date
	}
}

// maxDepth exceeds the nesting of any known error.
const maxDepth = 10

// answered finds an object with response headers, first in lastError.
func answered(o gjson.Result, depth int) (gjson.Result, bool) {
	if !o.IsObject() || depth == 0 {
		return o, false
	}
	if o.Get("responseHeaders").Exists() {
		return o, true
	}
	for _, key := range []string{"lastError", "error", "cause", "data"} {
		if found, ok := answered(o.Get(key), depth-1); ok {
			return found, true
		}
	}
	return o, false
}

// maxObject limits one JSON object, in bytes; the rest is skipped.
const maxObject = 1 << 20

// objects joins JSON objects that a log splits into lines: indented, or cut at a full buffer. It returns each as one
// line.
type objects struct {
	buf      []byte
	depth    int
	inString bool
	escaped  bool
}

func (o *objects) open() bool { return o.depth > 0 }

// piece handles a line's text if it belongs to an object; emit gets each completed object.
func (o *objects) piece(text []byte, emit func([]byte)) (took bool) {
	if o.open() && !o.fits(text) {
		return false
	}
	for {
		if !o.open() {
			text = bytes.TrimLeft(text, " \t\r")
			if !bytes.HasPrefix(text, []byte("{")) {
				return took
			}
		}
		took = true
		text = text[o.scan(text):]
		if o.open() {
			return true
		}
		emit(o.buf)
		o.buf = o.buf[:0]
	}
}

// fits reports whether a line can continue the open object: any text in a string, else only JSON.
func (o *objects) fits(text []byte) bool {
	if o.inString {
		return true
	}
	text = bytes.TrimLeft(text, " \t\r")
	return len(text) > 0 && strings.IndexByte(`{}[]",:-0123456789tfn`, text[0]) >= 0
}

// scan consumes bytes up to the end of the object or the text, and returns their number.
func (o *objects) scan(text []byte) int {
	for i, c := range text {
		keep := true
		switch {
		case o.escaped:
			o.escaped = false
		case o.inString:
			o.escaped = c == '\\'
			o.inString = c != '"'
		default:
			keep = o.structure(c)
		}
		if keep && len(o.buf) < maxObject {
			o.buf = append(o.buf, c)
		}
		if o.depth == 0 {
			return i + 1
		}
	}
	return len(text)
}

// structure handles a byte outside strings. keep is false for white space.
func (o *objects) structure(c byte) (keep bool) {
	switch c {
	case '"':
		o.inString = true
	case '{', '[':
		o.depth++
	case '}', ']':
		o.depth--
	case ' ', '\t', '\r':
		return false
	}
	return true
}

// drop abandons the open object and returns its text, valid until the next piece.
func (o *objects) drop() []byte {
	rest := o.buf
	*o = objects{buf: o.buf[:0]}
	return rest
}
