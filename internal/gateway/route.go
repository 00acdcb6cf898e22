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
	generate    callKind = "generate" // Gemini
)

type route struct {
	kind     callKind
	protocol string
	method   string
	path     string // appended to the provider's base URL
	model    string // from Gemini's path
	stream   bool   // from Gemini's path
}

// geminiPath allows model names such as gemini-2.5-pro, but no "..", slash or percent-encoding.
var geminiPath = regexp.MustCompile(`^/v1beta/models/([A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*):(streamGenerateContent|generateContent|countTokens)$`)

// routes lists paths without a model. OpenAI's base URL has the version.
var routes = map[string]route{
	"/v1/responses":             {kind: responses, protocol: config.OpenAI, method: http.MethodPost, path: "/responses"},
	"/v1/chat/completions":      {kind: chat, protocol: config.OpenAI, method: http.MethodPost, path: "/chat/completions"},
	"/v1/models":                {kind: models, protocol: config.OpenAI, method: http.MethodGet, path: "/models"},
	"/v1/messages":              {kind: messages, protocol: config.Anthropic, method: http.MethodPost, path: "/v1/messages"},
	"/v1/messages/count_tokens": {kind: countTokens, protocol: config.Anthropic, method: http.MethodPost, path: "/v1/messages/count_tokens"},
}

// routeOf returns false for unknown paths and methods. Escaped paths are unknown.
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

// target returns the provider's URL with the allowed query fields: stream form, Messages' beta switch, Codex's client
// version, and the length of a list of models.
func (r route) target(base string, query url.Values) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil {
		return nil, err // config checked the file's value
	}
	u.Path += r.path
	u.RawPath, u.Fragment = "", ""
	kept := u.Query()
	for _, name := range []string{"alt", "beta", "client_version", "limit", "pageSize"} {
		if v := query.Get(name); v != "" {
			kept.Set(name, v)
		}
	}
	u.RawQuery = kept.Encode()
	return u, nil
}

// requestHeaders pass to the provider. Credentials, cookies, accounts (who pays) and hop-by-hop headers do not.
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

// responsePrefixes match headers about limits.
var responsePrefixes = []string{"X-Ratelimit-", "Ratelimit-", "Anthropic-Ratelimit-", "X-Codex-"}

// tokensOf returns a request's tokens from the places that CLIs use.
func tokensOf(r *http.Request) []string {
	found := []string{r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		found = append(found, strings.TrimSpace(token))
	}
	return found
}

// outbound returns the provider's headers. They request no compression, so that tokens can be counted.
func outbound(in http.Header, p config.Provider) http.Header {
	out := http.Header{}
	for name, values := range in {
		if requestHeaders[name] || strings.HasPrefix(name, "X-Stainless-") {
			out[name] = values
		}
	}
	out.Set("Accept-Encoding", "identity")
	if p.Credential().Empty() {
		return out
	}
	switch key := p.Credential().Reveal(); p.Protocol {
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
