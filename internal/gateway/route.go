package gateway

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// callKind is what a path asks for.
type callKind string

const (
	responses   callKind = "responses"
	chat        callKind = "chat"
	models      callKind = "models"
	messages    callKind = "messages"
	countTokens callKind = "count_tokens"
	generate    callKind = "generate" // Gemini, streaming or not
)

// route is a path that agents may call.
type route struct {
	kind     callKind
	protocol Protocol
	method   string
	path     string // what is appended to the provider's base URL
	model    string // Gemini names it in the path
	stream   bool   // Gemini tells it in the path
}

// geminiPath allows plain model names only, so that no dots or encoded slashes
// reach the provider's path.
var geminiPath = regexp.MustCompile(`^/v1beta/models/([A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*):(streamGenerateContent|generateContent|countTokens)$`)

// routeOf answers false for whatever is not on the list. The path is compared as
// it was sent: one with an escape in it is no path of ours.
func routeOf(r *http.Request) (route, bool) {
	found := route{method: http.MethodPost}
	p := r.URL.EscapedPath()
	switch p {
	case "/v1/responses":
		found.kind, found.protocol = responses, OpenAI
	case "/v1/chat/completions":
		found.kind, found.protocol = chat, OpenAI
	case "/v1/models":
		found.kind, found.protocol, found.method = models, OpenAI, http.MethodGet
	case "/v1/messages":
		found.kind, found.protocol = messages, Anthropic
	case "/v1/messages/count_tokens":
		found.kind, found.protocol = countTokens, Anthropic
	default:
		m := geminiPath.FindStringSubmatch(p)
		if m == nil || len(m[1]) > 128 {
			return route{}, false
		}
		found.kind, found.protocol, found.model, found.stream = generate, Gemini, m[1], m[2] == "streamGenerateContent"
		if m[2] == "countTokens" {
			found.kind = countTokens
		}
	}
	found.path = p
	if found.protocol == OpenAI { // whose base URL has the version
		found.path = strings.TrimPrefix(p, "/v1")
	}
	return found, r.Method == found.method
}

// shapeOf guesses the protocol of a request that has no session, for the form of
// the refusal.
func shapeOf(r *http.Request) Protocol {
	switch p := r.URL.Path; {
	case strings.HasPrefix(p, "/v1beta"):
		return Gemini
	case strings.HasPrefix(p, "/v1/messages") || r.Header.Get("Anthropic-Version") != "":
		return Anthropic
	}
	return OpenAI
}

// target is the URL of the provider for a route. Of the query only what the
// protocols define is kept: the form of the stream, the beta switch of Messages
// and the client's version that Codex names when it lists models.
func (p Provider) target(r route, query url.Values) (string, error) {
	u, err := url.Parse(p.base())
	if err != nil {
		return "", err
	}
	u.Path += r.path
	u.RawPath, u.Fragment = "", ""
	kept := u.Query()
	for _, name := range []string{"alt", "beta", "client_version"} {
		if v := query.Get(name); v != "" {
			kept.Set(name, v)
		}
	}
	u.RawQuery = kept.Encode()
	return u.String(), nil
}
