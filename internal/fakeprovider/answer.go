package fakeprovider

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// kind is the provider's reaction to a request.
type kind int

const (
	say kind = iota
	// call answers with tool calls.
	call
	// empty ends the answer without content.
	empty
	// refuse ends the answer as a refusal.
	refuse
	// refused is an HTTP error named by answer.name.
	refused
	// broken reports an error in the stream, named by answer.name.
	broken
	// garbage sends invalid JSON.
	garbage
	// cutEOF and cutRST end the connection in the middle.
	cutEOF
	cutRST
	// hangHeaders leaves the connection open before the answer, hangStream in the middle of it.
	hangHeaders
	hangStream
)

// answer is a scenario's decision; the protocols write it.
type answer struct {
	kind           kind
	text, thinking string
	calls          []operation
	// name is the failure for refused, and overloaded, ratelimit, quota or context for broken.
	name string
	// length means that the output-token limit truncated the answer.
	length bool
	// chunk is the length in characters of streamed pieces (0 means 20); delay is the pause after each.
	chunk int
	delay time.Duration
	wordy bool // prose without a result, which counts as bad
}

// bad reports whether the answer counts toward the setting fails.
func (a answer) bad() bool { return a.kind != say && a.kind != call || a.length || a.wordy }

type failure struct {
	status int
	header map[string]string
	body   any
}

// Every answer reports this usage, in tokens.
const (
	usageInput     = 1200
	usageCached    = 200 // part of the input
	usageOutput    = 34
	usageReasoning = 10 // part of the output
)

// partial is the text before a broken answer.
const partial = "I have started to answer but the conn"

// id returns an identifier that stays unique when a conversation is resumed.
func id(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

func (a answer) pieces(text string) []string {
	size := a.chunk
	if size == 0 {
		size = 20
	}
	var out []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(size, len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}

func send(w http.ResponseWriter, r *http.Request, wire protocol, t turn, set settings, a answer, now time.Time) {
	s := &stream{w: w, control: http.NewResponseController(w), ctx: r.Context()}
	extra := map[string]string{}
	if set["limit_headers"] == "1" {
		extra = wire.headers(set.number("used", 92), now)
	}
	switch {
	case a.kind == refused:
		reply(w, wire.failure(a.name, set, now))
	case a.kind == hangHeaders, a.kind == hangStream && !t.streamed:
		s.hang()
	case a.kind == garbage && !t.streamed:
		w.WriteHeader(http.StatusBadGateway)
		s.write("<html>502 Bad Gateway</html>")
	case (a.kind == cutEOF || a.kind == cutRST) && !t.streamed:
		w.Header().Set("Content-Type", "application/json")
		s.write(`{"id":"cut","ty`)
		s.cut(cutRST) // without a reset, a half document would look complete
	case a.kind == broken && !t.streamed:
		reply(w, wire.failure(failureOf(a.name), set, now))
	case !t.streamed:
		reply(w, failure{status: http.StatusOK, header: extra, body: wire.whole(t, a, set, now)})
	default:
		s.begin(extra)
		if a.kind == garbage {
			s.write("data: {not json\n\n<html>502 Bad Gateway</html>\n\n")
			return
		}
		wire.stream(s, t, a, set, now)
	}
}

// failureOf returns the HTTP error for an error in a stream.
func failureOf(name string) string {
	return map[string]string{"overloaded": "overload-529", "ratelimit": "rate-429", "quota": "usage-limit", "context": "context-400"}[name]
}

// sideAnswer answers a CLI's own request: a title, a topic, a choice of model, the next speaker.
func sideAnswer(t turn) answer {
	if len(t.schema) == 0 {
		return answer{text: "Mock title"}
	}
	var schema any
	if err := json.Unmarshal(t.schema, &schema); err != nil {
		return answer{text: "Mock title"}
	}
	made := example(schema)
	if fields, ok := made.(object); ok && fields["next_speaker"] != nil {
		fields["next_speaker"] = "user"
	}
	text, err := json.Marshal(made)
	if err != nil {
		return answer{text: "Mock title"}
	}
	return answer{text: string(text)}
}

// example returns a value that follows a JSON schema.
func example(schema any) any {
	s, _ := schema.(object)
	if values, ok := s["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	word, _ := s["type"].(string)
	if words, ok := s["type"].([]any); ok && len(words) > 0 {
		word, _ = words[0].(string)
	}
	switch strings.ToLower(word) {
	case "array":
		return []any{}
	case "boolean":
		return false
	case "integer", "number":
		// The number is the confidence in a detected loop, or a task's complexity.
		return cmp.Or(s["minimum"], any(0))
	case "string":
		return "Mock title"
	}
	out := object{}
	fields, _ := s["properties"].(object)
	for name, field := range fields {
		out[name] = example(field)
	}
	return out
}

// settle delays a cut, so that the client reads earlier data: a reset discards data in transit.
const settle = 150 * time.Millisecond

// stream writes server-sent events until the client is gone.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context // the request's context
	failed  bool
}

func (s *stream) begin(header map[string]string) {
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.w.Header().Set("Cache-Control", "no-cache")
	for key, value := range header {
		s.w.Header().Set(key, value)
	}
	s.w.WriteHeader(http.StatusOK)
}

// event sends one event; an empty name sends only the data.
func (s *stream) event(name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		s.failed = true
		return
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	s.write(fmt.Sprintf("%sdata: %s\n\n", name, encoded))
}

func (s *stream) write(text string) {
	if s.failed {
		return
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		s.failed = true
		return
	}
	s.failed = s.control.Flush() != nil
}

func (s *stream) pause(d time.Duration) {
	if d <= 0 || s.failed {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		s.failed = true
	}
}

// cut ends the connection: cutEOF as if the answer were complete, cutRST with a reset.
func (s *stream) cut(how kind) {
	s.pause(settle)
	if how == cutEOF {
		return
	}
	connection, _, err := s.control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection instead
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes the close below send a reset
	}
	_ = connection.Close()
}

// hang keeps the connection open until the client or the server ends it.
func (s *stream) hang() {
	<-s.ctx.Done()
	panic(http.ErrAbortHandler) // nothing more may be written
}
