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

// protocol is a model's API.
type protocol interface {
	// read parses a request. Without a JSON body the result has only the path's data.
	read(path string, body []byte) turn
	// failure returns the provider's HTTP error.
	failure(name string, set settings, now time.Time) failure
	// headers are added to good answers. They report a window's used percentage; nil for a provider
	// without windows.
	headers(used int, now time.Time) map[string]string
	// stream writes a good or broken answer as events.
	stream(s *stream, t turn, a answer, set settings, now time.Time)
	// whole returns a good answer's body without a stream.
	whole(t turn, a answer, set settings, now time.Time) object
}

// turn is a parsed request.
type turn struct {
	protocol string
	model    string
	streamed bool
	tools    []tool
	effort   string
	schema   json.RawMessage
	// first is the conversation's first prompt; prompts counts all prompts.
	first   string
	prompts int
	// results are the tool results since the last prompt; past counts earlier ones.
	results []string
	past    int
	// searched means that the last message is the result of a search for tools, or of waiting for them.
	searched bool
	// body is the whole request, for cwd.
	body []byte
}

type tool struct {
	name string
	// namespace groups an MCP server's tools in the Responses protocol.
	namespace string
	// custom tools of the Responses protocol take plain text.
	custom bool
}

// step is 1 for the first request after a prompt, 2 after the first tool result, and so on.
func (t turn) step() int { return len(t.results) + 1 }

// side reports whether the request is the CLI's own: it offers no tools.
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

// read chooses the protocol by the path; nil for a path without a model.
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

type entry struct {
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

// injected matches context and nudges that a CLI adds in the user's name.
var injected = regexp.MustCompile(`^\s*(<|# AGENTS|This is the Gemini CLI|System: |\[Your previous response had no visible output)`)

// follow reads the conversation into the turn.
func (t *turn) follow(messages []entry) {
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

// prompt returns the text that a user wrote.
func prompt(texts []string) string {
	var own []string
	for _, text := range texts {
		if !injected.MatchString(text) {
			own = append(own, text)
		}
	}
	return strings.TrimSpace(strings.Join(own, "\n"))
}

// content is a message's content: a string, or blocks with texts.
type content []block

type block struct {
	Type    string  `json:"type"`
	Text    string  `json:"text"`
	Content content `json:"content"`
	// ID and Name belong to a call in the Messages protocol, CallID to its result.
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
