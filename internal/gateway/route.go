package gateway

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/secret"
)

type callKind string

const (
	responses   callKind = "responses"
	chat        callKind = "chat"
	models      callKind = "models"
	messages    callKind = "messages"
	countTokens callKind = "count_tokens"
	generate    callKind = "generate" // Gemini, streaming or not
)

type route struct {
	kind     callKind
	protocol string
	method   string
	path     string // what is appended to the provider's base URL
	model    string // Gemini has it in the path
	stream   bool   // Gemini has it in the path
}

// geminiPath allows plain model names only: no dots or encoded slashes reach the provider's path.
var geminiPath = regexp.MustCompile(`^/v1beta/models/([A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*):(streamGenerateContent|generateContent|countTokens)$`)

// routes are the paths that name no model. OpenAI's base URL has the version.
var routes = map[string]route{
	"/v1/responses":             {kind: responses, protocol: config.OpenAI, method: http.MethodPost, path: "/responses"},
	"/v1/chat/completions":      {kind: chat, protocol: config.OpenAI, method: http.MethodPost, path: "/chat/completions"},
	"/v1/models":                {kind: models, protocol: config.OpenAI, method: http.MethodGet, path: "/models"},
	"/v1/messages":              {kind: messages, protocol: config.Anthropic, method: http.MethodPost, path: "/v1/messages"},
	"/v1/messages/count_tokens": {kind: countTokens, protocol: config.Anthropic, method: http.MethodPost, path: "/v1/messages/count_tokens"},
}

// routeOf is false for paths that are not on the list. It compares the path as sent, with escapes.
func routeOf(r *http.Request) (route, bool) {
	p := r.URL.EscapedPath()
	found, known := routes[p]
	if !known {
		m := geminiPath.FindStringSubmatch(p)
		if m == nil || len(m[1]) > 128 {
			return route{}, false
		}
		found = route{kind: generate, protocol: config.Google, method: http.MethodPost, path: p, model: m[1], stream: m[2] == "streamGenerateContent"}
		if m[2] == "countTokens" {
			found.kind = countTokens
		}
	}
	return found, r.Method == found.method
}

// target is the provider's URL. It keeps the query fields that the protocols define: the stream's form, the beta
// switch of Messages, the client version that Codex sends when it lists models.
func (r route) target(base string, query url.Values) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil {
		return nil, err // config checks only its file's content
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
	return u, nil
}

// requestHeaders may pass to the provider. They leave out credentials, cookies, organisations, projects and
// accounts (which would change who pays), and hop-by-hop headers.
var requestHeaders = map[string]bool{
	"Accept": true, "Content-Type": true, "User-Agent": true,
	"Anthropic-Version": true, "Anthropic-Beta": true, "X-App": true,
	"Openai-Beta": true, "Originator": true, "Version": true, "Session_id": true, "Session-Id": true, "Conversation_id": true,
	"Thread_id": true, "Thread-Id": true, "X-Client-Request-Id": true,
	"X-Goog-Api-Client": true,
}

var responseHeaders = map[string]bool{
	"Content-Type": true, "Cache-Control": true, "Retry-After": true, "Retry-After-Ms": true, "Request-Id": true, "X-Request-Id": true,
	"X-Should-Retry": true, "Openai-Model": true, "Openai-Processing-Ms": true, "Openai-Version": true, "X-Models-Etag": true,
}

// responsePrefixes are families of headers about limits.
var responsePrefixes = []string{"X-Ratelimit-", "Anthropic-Ratelimit-", "X-Codex-"}

// tokensOf returns a request's tokens from the places where CLIs put a key.
func tokensOf(r *http.Request) []string {
	found := []string{r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		found = append(found, strings.TrimSpace(token))
	}
	return found
}

// outbound are the headers for the provider. They request an uncompressed answer, so that tokens can be counted
// while it passes.
func outbound(in http.Header, p config.Provider) http.Header {
	out := http.Header{}
	for name, values := range in {
		if requestHeaders[name] || strings.HasPrefix(name, "X-Stainless-") {
			out[name] = values
		}
	}
	out.Set("Accept-Encoding", "identity")
	if p.Key.Empty() {
		return out
	}
	switch key := p.Key.Reveal(); p.Protocol {
	case config.Anthropic:
		out.Set("X-Api-Key", key)
	case config.Google:
		out.Set("X-Goog-Api-Key", key)
	default:
		out.Set("Authorization", "Bearer "+key)
	}
	return out
}

func inbound(from http.Header, key string) http.Header {
	to := http.Header{}
	for name, values := range from {
		if !responseHeaders[name] && !slices.ContainsFunc(responsePrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		for _, v := range values {
			to.Add(name, secret.Mask(v, key))
		}
	}
	return to
}
