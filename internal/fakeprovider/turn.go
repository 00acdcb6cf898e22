package fakeprovider

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type object = map[string]any

// protocol is one way to speak to a model.
type protocol interface {
	// read takes a request apart. A body that is no JSON gives what the path
	// says.
	read(path string, body []byte) turn
	// failure gives the HTTP error that the provider answers with.
	failure(name string, set settings, now time.Time) failure
	// headers are added to good answers when a limit is nearly used up.
	headers(now time.Time) map[string]string
	// stream writes a good or broken answer as events.
	stream(s *stream, t turn, a answer, set settings, now time.Time)
	// whole gives the body of a good answer to a request that wants no stream.
	whole(t turn, a answer, set settings, now time.Time) object
}

// turn is a request taken apart: where its conversation stands.
type turn struct {
	protocol string
	model    string
	streamed bool
	tools    []tool
	effort   string
	schema   json.RawMessage
	// first is the first prompt of the conversation, prompts counts them.
	first   string
	prompts int
	// results are the texts of the tool results since the last prompt, past
	// counts those before.
	results []string
	past    int
	// searched says that the last message is the result of a search for tools,
	// or of waiting for them.
	searched bool
	// body is the whole request, for cwd.
	body []byte
}

// tool is a tool that a request offers.
type tool struct {
	name string
	// namespace groups tools of one MCP server in the Responses protocol.
	namespace string
	// custom tools of the Responses protocol take plain text.
	custom bool
}

// step is 1 for the first request after a prompt, 2 after the first tool result
// and so on.
func (t turn) step() int { return len(t.results) + 1 }

// side reports whether the request is one that the CLI makes for itself: it
// offers no tools.
func (t turn) side() bool { return len(t.tools) == 0 }

func (t turn) names() []string {
	var names []string
	for _, offered := range t.tools {
		names = append(names, offered.name)
	}
	return names
}

func (t turn) find(name string) (tool, bool) {
	for _, offered := range t.tools {
		if offered.name == name {
			return offered, true
		}
	}
	return tool{}, false
}

// read chooses the protocol by the path. The protocol is nil for a path that no
// model answers.
func read(path string, r *http.Request, body []byte) (protocol, turn) {
	var wire protocol
	switch {
	case r.Method != http.MethodPost:
		return nil, turn{}
	case strings.HasSuffix(path, "/responses"):
		wire = responses{}
	case strings.HasSuffix(path, "/chat/completions"):
		wire = chat{}
	case strings.HasSuffix(path, "/messages"):
		wire = anthropic{}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		wire = gemini{}
	default:
		return nil, turn{}
	}
	t := wire.read(path, body)
	t.body = body
	return wire, t
}

// said is one message of a conversation, the same for all protocols.
type said struct {
	who  speaker
	text string
}

type speaker int

const (
	model speaker = iota
	person
	result
	search
)

// injected is how context and nudges begin that a CLI puts beside the prompt, in
// the name of the user.
var injected = regexp.MustCompile(`^\s*(<|# AGENTS|This is the Gemini CLI|System: |\[Your previous response had no visible output)`)

// follow reads the conversation into the turn.
func (t *turn) follow(messages []said) {
	for _, m := range messages {
		t.searched = m.who == search
		switch m.who {
		case person:
			if m.text == "" {
				continue
			}
			if t.prompts == 0 {
				t.first = m.text
			}
			t.prompts++
			t.past += len(t.results)
			t.results = nil
		case result:
			t.results = append(t.results, m.text)
		}
	}
}

// prompt gives what of the texts a person wrote.
func prompt(texts []string) string {
	var own []string
	for _, text := range texts {
		if !injected.MatchString(text) {
			own = append(own, text)
		}
	}
	return strings.TrimSpace(strings.Join(own, "\n"))
}

// content is the content of a message: a string, or blocks with a text each.
type content []block

type block struct {
	Type    string  `json:"type"`
	Text    string  `json:"text"`
	Content content `json:"content"`
	// ID and Name are of a call in the Messages protocol, CallID of its result.
	ID     string `json:"id"`
	Name   string `json:"name"`
	CallID string `json:"tool_use_id"`
}

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	var blocks []block
	if json.Unmarshal(data, &blocks) == nil {
		*c = blocks
	}
	return nil // other shapes say nothing that a scenario asks for
}

func (c content) texts() []string {
	var texts []string
	for _, b := range c {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return texts
}

func (c content) text() string { return strings.Join(c.texts(), "\n") }

// settings are the values of Server.Set for one request.
type settings map[string]string

func (s settings) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(s[key]); err == nil {
		return n
	}
	return otherwise
}

func (s settings) word(key, otherwise string) string {
	if s[key] != "" {
		return s[key]
	}
	return otherwise
}
