package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// refusal is an answer of the gateway itself.
type refusal struct {
	status int
	header map[string]string
	body   any
}

// object keeps the literals of bodies short.
type object map[string]any

func (r refusal) write(w http.ResponseWriter) {
	body, err := json.Marshal(r.body)
	if err != nil { // cannot be: the bodies are made of strings and numbers
		body = []byte(`{"error":{"message":"the gateway failed"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	for name, v := range r.header {
		w.Header().Set(name, v)
	}
	w.WriteHeader(r.status)
	w.Write(body) // a client that has left does not need it
}

// Names of the errors that are not limits, by status, in the three protocols.
func names(p Protocol, status int) string {
	switch p {
	case Anthropic:
		switch status {
		case http.StatusUnauthorized:
			return "authentication_error"
		case http.StatusNotFound:
			return "not_found_error"
		case http.StatusRequestEntityTooLarge:
			return "request_too_large"
		case http.StatusBadGateway:
			return "api_error"
		}
		return "invalid_request_error"
	case Gemini:
		switch status {
		case http.StatusUnauthorized:
			return "UNAUTHENTICATED"
		case http.StatusNotFound:
			return "NOT_FOUND"
		case http.StatusBadGateway:
			return "UNAVAILABLE"
		}
		return "INVALID_ARGUMENT"
	}
	if status == http.StatusBadGateway {
		return "server_error"
	}
	return "invalid_request_error"
}

// refuse is an error in the shape of a protocol.
func refuse(p Protocol, status int, message string) refusal {
	name := names(p, status)
	switch p {
	case Anthropic:
		return anthropicError(status, name, message)
	case Gemini:
		return geminiError(status, name, message)
	}
	code := any(nil)
	if status == http.StatusUnauthorized {
		code = "invalid_api_key"
	}
	return openaiError(status, name, code, message)
}

func anthropicError(status int, kind, message string) refusal {
	return refusal{status: status, body: object{"type": "error", "error": object{"type": kind, "message": message}}}
}

func openaiError(status int, kind string, code any, message string) refusal {
	return refusal{status: status, body: object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}}
}

func geminiError(status int, name, message string, details ...object) refusal {
	e := object{"code": status, "message": message, "status": name}
	if len(details) > 0 {
		e["details"] = details
	}
	return refusal{status: status, body: object{"error": e}}
}

// refuseLimit answers with a limit, the way that makes the CLI of the request
// stop or wait as it should. message is for people.
func refuseLimit(r route, header http.Header, l Limit, message string, now time.Time) refusal {
	wait := l.wait(now)
	var out refusal
	switch l.Kind {
	case UsageLimit:
		out = usedUp(r, header, l, message, wait)
	case Auth:
		out = refuse(r.protocol, http.StatusUnauthorized, message)
	case Overloaded:
		out = overloaded(r.protocol, message)
	default:
		out = tooFast(r.protocol, message, wait)
	}
	if out.header == nil {
		out.header = map[string]string{}
	}
	if wait > 0 && l.Kind != Auth {
		out.header["Retry-After"] = strconv.FormatInt(wait, 10)
	}
	return out
}

// usedUp is a quota that trying again does not help. What each CLI takes for
// final was recorded: Codex 429 usage_limit_reached, Claude Code a balance that
// is too low (400) or a rejected plan with a long wait, Gemini CLI a quota per
// day. OpenCode and whatever else is made of the AI SDK try every 429 again for
// over a minute or sleep until the reset, but leave at 402.
func usedUp(r route, header http.Header, l Limit, message string, wait int64) refusal {
	switch {
	case r.protocol == Anthropic && wait > 0:
		out := anthropicError(http.StatusTooManyRequests, "rate_limit_error", message)
		out.header = map[string]string{
			"Anthropic-Ratelimit-Unified-Status": "rejected",
			"Anthropic-Ratelimit-Unified-Reset":  strconv.FormatInt(l.ResetsAt.Unix(), 10),
			"X-Should-Retry":                     "false",
		}
		return out
	case r.protocol == Anthropic:
		out := anthropicError(http.StatusBadRequest, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. "+message)
		out.header = map[string]string{"X-Should-Retry": "false"}
		return out
	case r.kind == chat || madeOfAISDK(header):
		if r.protocol == Gemini {
			return geminiError(http.StatusPaymentRequired, "RESOURCE_EXHAUSTED", message)
		}
		return openaiError(http.StatusPaymentRequired, "insufficient_quota", "insufficient_quota", message)
	case r.protocol == Gemini:
		details := []object{{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []object{{"quotaId": "PawlRequestsPerDay"}}}}
		if wait > 0 {
			details = append(details, object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", wait)})
		}
		return geminiError(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", message, details...)
	}
	e := object{"type": "usage_limit_reached", "message": message}
	if wait > 0 {
		e["resets_at"], e["resets_in_seconds"] = l.ResetsAt.Unix(), wait
	}
	return refusal{status: http.StatusTooManyRequests, header: map[string]string{"X-Should-Retry": "false"}, body: object{"error": e}}
}

func madeOfAISDK(h http.Header) bool {
	agent := strings.ToLower(h.Get("User-Agent"))
	return strings.Contains(agent, "ai-sdk") || strings.Contains(agent, "opencode")
}

func tooFast(p Protocol, message string, wait int64) refusal {
	const status = http.StatusTooManyRequests
	switch p {
	case Anthropic:
		return anthropicError(status, "rate_limit_error", message)
	case Gemini:
		if wait > 0 {
			return geminiError(status, "RESOURCE_EXHAUSTED", message,
				object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", wait)})
		}
		return geminiError(status, "RESOURCE_EXHAUSTED", message)
	}
	return openaiError(status, "requests", "rate_limit_exceeded", message)
}

func overloaded(p Protocol, message string) refusal {
	switch p {
	case Anthropic:
		return anthropicError(529, "overloaded_error", message)
	case Gemini:
		return geminiError(http.StatusServiceUnavailable, "UNAVAILABLE", message)
	}
	return openaiError(http.StatusServiceUnavailable, "service_unavailable_error", "server_is_overloaded", message)
}
