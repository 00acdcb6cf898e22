package gateway

import (
	"net/http"
	"strings"
)

// requestHeaders may pass from an agent to the provider. Not on the list, and so
// dropped, are credentials, cookies, whatever names an organisation, project or
// account (it would change who pays), and hop-by-hop headers.
var requestHeaders = map[string]bool{
	"Accept": true, "Content-Type": true, "User-Agent": true,
	"Anthropic-Version": true, "Anthropic-Beta": true, "X-App": true,
	"Openai-Beta": true, "Originator": true, "Version": true, "Session_id": true, "Session-Id": true, "Conversation_id": true,
	"Thread_id": true, "Thread-Id": true, "X-Client-Request-Id": true,
	"X-Goog-Api-Client": true,
}

// responseHeaders may pass from the provider to an agent.
var responseHeaders = map[string]bool{
	"Content-Type": true, "Cache-Control": true, "Retry-After": true, "Retry-After-Ms": true, "Request-Id": true, "X-Request-Id": true,
	"X-Should-Retry": true, "Openai-Model": true, "Openai-Processing-Ms": true, "Openai-Version": true, "X-Models-Etag": true,
}

// responsePrefixes are families of headers that tell limits.
var responsePrefixes = []string{"X-Ratelimit-", "Anthropic-Ratelimit-", "X-Codex-"}

// tokensOf gives what a request carries in the places where the CLIs put a key.
func tokensOf(r *http.Request) []string {
	var found []string
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		found = append(found, strings.TrimSpace(token))
	}
	for _, token := range []string{r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")} {
		if token != "" {
			found = append(found, token)
		}
	}
	return found
}

// outbound are the headers of the call to the provider. It asks for an answer
// without compression, so that tokens can be counted while it passes.
func outbound(in http.Header, p Provider) http.Header {
	out := http.Header{}
	for name, values := range in {
		if requestHeaders[name] || strings.HasPrefix(name, "X-Stainless-") {
			out[name] = values
		}
	}
	out.Set("Accept-Encoding", "identity")
	if out.Get("User-Agent") == "" {
		out.Set("User-Agent", "") // or Go's name would stand there
	}
	if p.Key == "" {
		return out
	}
	switch p.Protocol {
	case Anthropic:
		out.Set("X-Api-Key", p.Key)
	case Gemini:
		out.Set("X-Goog-Api-Key", p.Key)
	default:
		out.Set("Authorization", "Bearer "+p.Key)
	}
	return out
}

// inbound copies the headers that an agent may see, with the key masked.
func inbound(to, from http.Header, key string) {
	for name, values := range from {
		keep := responseHeaders[name]
		for _, prefix := range responsePrefixes {
			keep = keep || strings.HasPrefix(name, prefix)
		}
		if !keep {
			continue
		}
		for _, v := range values {
			to.Add(name, masked(v, key))
		}
	}
}
