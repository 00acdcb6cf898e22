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
	// read parses a request. If the body is not JSON, the turn holds only data from the path.
	read(path string, body []byte) turn
	// failure returns the provider's HTTP error.
	failure(name string, set settings, now time.Time) failure
	// headers returns headers for good answers, which report a window's used percentage; nil if the provider has none.
	headers(used int, now time.Time) map[string]string
	// stream writes a good or broken answer as events.
	stream(s *stream, t turn, a answer, set settings, now time.Time)
	// whole returns the body of a good answer that is not streamed.
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
	// searched means that the last message is the result of a tool search or of a wait for MCP servers.
	searched bool
	// body is the whole request body; folder reads the working directory from it.
	body []byte
}

type tool struct {
	name string
	// namespace groups an MCP server's tools in the Responses protocol.
	namespace string
	// custom marks a tool of the Responses protocol that takes plain text.
	custom bool
}

// step is 1 for the first request after a prompt, 2 after the first tool result, and so on.
func (t turn) step() int { return len(t.results) + 1 }

// side reports whether the CLI asks on its own behalf, such as for a title. Such requests offer no tools.
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

// read parses a request by the protocol of its path. The protocol is nil if the request is not for a model.
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

// prompt returns the user's own text, without text that the CLI added.
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
	return nil // no scenario needs other shapes
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
