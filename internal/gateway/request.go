package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// request is what the gateway reads of a request's body.
type request struct {
	body   []byte // as it is sent to the provider
	size   int    // bytes of it as it is first sent, also when it is no longer held
	model  string
	most   int64 // tokens that the answer may have, by the request or the usual
	stream bool
	tools  bool // it offers tools
	// countAdded is true where the gateway asked for the usage of a streamed chat
	// completion, so that the chunk that carries it is kept from the agent.
	countAdded bool
}

// maxModel bounds the name of a model in bytes; some of routers have eighty.
const maxModel = 256

// readRequest checks a body and prepares it for the provider. An error is the
// client's fault and its text is for the agent.
func readRequest(r route, body []byte, hosted bool) (request, error) {
	out := request{body: body, size: len(body), model: r.model, stream: r.stream}
	if r.kind == models {
		return out, nil
	}
	// Names are compared exactly, as providers do: with encoding/json's structs
	// "MODEL" would replace "model", and another price than the real one count.
	f, offers := scanNamed(body, "tools")
	if f == nil {
		return out, errors.New("the body is no JSON object")
	}
	if string(f["background"]) == "true" {
		return out, errors.New("background is not allowed: an answer that goes on after the call could not be counted")
	}
	if r.protocol != Gemini {
		out.model, out.stream = f.text("model"), string(f["stream"]) == "true"
	}
	if err := standardTier(f); err != nil {
		return out, err
	}
	if !hosted {
		stripped, changed, err := withoutHosted(r.kind, f, offers)
		if err != nil {
			return out, err
		}
		if changed {
			f, body = stripped, encoded(stripped)
			out.body = body
		}
	}
	out.most = mostOf(r.kind, f)
	if len(out.model) > maxModel {
		return out, fmt.Errorf("the name of the model is longer than %d bytes", maxModel)
	}
	tools := bytes.TrimLeft(f["tools"], "[ \n\r\t") // what is in the list
	out.tools = len(tools) > 0 && tools[0] == '{' || r.kind == responses && bytes.Contains(body, []byte(`"additional_tools"`))
	if r.kind == chat && out.stream {
		out.body, out.countAdded = withCount(body, f)
	}
	out.body = unmarked(r.kind, out.body)
	out.size = len(out.body)
	return out, nil
}

// limitNames are the fields by which a request bounds each answer, and answerNames
// those by which it asks for several, where a kind of call knows them.
var (
	limitNames = map[callKind][]string{
		responses: {"max_output_tokens"}, chat: {"max_tokens", "max_completion_tokens"}, messages: {"max_tokens"},
		generate: {"maxOutputTokens", "max_output_tokens"},
	}
	answerNames = map[callKind][]string{chat: {"n"}, generate: {"candidateCount", "candidate_count"}}
)

// mostOf is how many tokens a request lets its answers have.
func mostOf(kind callKind, f fields) int64 {
	if kind == generate {
		for _, name := range []string{"generationConfig", "generation_config"} {
			if f.has(name) {
				f = scanObject(f[name])
			}
		}
	}
	most, answers := int64(0), int64(1)
	for _, name := range limitNames[kind] {
		most = max(most, f.integer(name))
	}
	for _, name := range answerNames[kind] {
		answers = max(answers, f.integer(name))
	}
	if most == 0 {
		most = usualOutput
	}
	return min(most, maxOutput) * min(answers, maxAnswers)
}

// Bounds of what a request may make the gateway reckon with. No model answers
// with a million tokens, and no provider gives more answers than 128 at once.
const (
	maxOutput  = 1 << 20
	maxAnswers = 128
)

// standardTier refuses what the provider serves faster for a higher price.
func standardTier(f fields) error {
	for _, name := range []string{"service_tier", "serviceTier", "speed"} {
		switch tier := strings.ToLower(f.text(name)); {
		case !f.has(name) || tier == "auto" || tier == "default" || tier == "standard" || tier == "standard_only":
		default:
			return fmt.Errorf("%s %.40s is not allowed: it has another price; leave it out", name, f[name])
		}
	}
	return nil
}

// withCount asks for the usage at the end of a streamed chat completion, which
// is not told otherwise. f are the fields of the body.
func withCount(body []byte, f fields) ([]byte, bool) {
	if !f.has("stream_options") {
		open := bytes.IndexByte(body, '{') + 1
		return slices.Concat([]byte(`{"stream_options":{"include_usage":true},`), body[open:]), true
	}
	o := objectOf(f["stream_options"])
	if o == nil || string(o["include_usage"]) == "true" {
		return body, false
	}
	o.set("include_usage", true)
	f.set("stream_options", o)
	return encoded(f), true
}

// onlyCount reports whether a chunk of a chat completion carries nothing but usage.
func onlyCount(data []byte) bool {
	var c struct {
		Choices []json.RawMessage `json:"choices"`
		Usage   json.RawMessage   `json:"usage"`
	}
	return json.Unmarshal(data, &c) == nil && len(c.Choices) == 0 && len(c.Usage) > 0 && string(c.Usage) != "null"
}
