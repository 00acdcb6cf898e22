package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

type refusal struct {
	status int
	header map[string]string
	body   object
}

func (r *refusal) write(w http.ResponseWriter) {
	body := encoded(r.body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	for name, v := range r.header {
		w.Header().Set(name, v)
	}
	w.WriteHeader(r.status)
	io.WriteString(w, body) // fails only if the client left
}

// errorNames maps statuses to error names in the three protocols, with OpenAI's code after a colon. 0 is the default.
var errorNames = map[string]map[int]string{
	config.Anthropic: {
		0:                                "invalid_request_error",
		http.StatusUnauthorized:          "authentication_error",
		http.StatusNotFound:              "not_found_error",
		http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusTooManyRequests:       "rate_limit_error",
		http.StatusBadGateway:            "api_error",
		anthropicOverloaded:              "overloaded_error",
	},
	config.Google: {
		0:                             "INVALID_ARGUMENT",
		http.StatusUnauthorized:       "UNAUTHENTICATED",
		http.StatusPaymentRequired:    "RESOURCE_EXHAUSTED",
		http.StatusNotFound:           "NOT_FOUND",
		http.StatusTooManyRequests:    "RESOURCE_EXHAUSTED",
		http.StatusBadGateway:         "UNAVAILABLE",
		http.StatusServiceUnavailable: "UNAVAILABLE",
	},
	config.OpenAI: {
		0:                             "invalid_request_error",
		http.StatusUnauthorized:       "invalid_request_error:invalid_api_key",
		http.StatusPaymentRequired:    "insufficient_quota:insufficient_quota",
		http.StatusTooManyRequests:    "requests:rate_limit_exceeded",
		http.StatusBadGateway:         "server_error",
		http.StatusServiceUnavailable: "service_unavailable_error:server_is_overloaded",
	},
}

const anthropicOverloaded = 529

// refuse returns an error in a protocol's form; details are for Google's form.
func refuse(p string, status int, message string, details ...object) *refusal {
	if p == config.Anthropic && status == http.StatusServiceUnavailable {
		status = anthropicOverloaded
	}
	names, known := errorNames[p][status]
	if !known {
		names = errorNames[p][0]
	}
	name, code, coded := strings.Cut(names, ":")
	e := object{"message": message, "type": name}
	out := &refusal{status: status, header: map[string]string{}, body: object{"error": e}}
	switch p {
	case config.Anthropic:
		out.body["type"] = "error"
	case config.Google:
		e = object{"code": status, "message": message, "status": name}
		if len(details) > 0 {
			e["details"] = details
		}
		out.body["error"] = e
	default:
		e["param"], e["code"] = nil, nil
		if coded {
			e["code"] = code
		}
	}
	return out
}

// refuseLimit answers with a limit in the form that stops the CLI or makes it wait.
func (r route) refuseLimit(header http.Header, l policy.Limit, message string, now time.Time) *refusal {
	wait := secondsUntil(l.ResetsAt, now)
	var out *refusal
	switch l.Kind {
	case policy.UsageLimit:
		out = r.usedUp(header, l, message, wait)
	case policy.Auth:
		return refuse(r.protocol, http.StatusUnauthorized, message)
	case policy.Overloaded:
		out = refuse(r.protocol, http.StatusServiceUnavailable, message)
	default:
		out = refuse(r.protocol, http.StatusTooManyRequests, message, retryInfo(wait)...)
	}
	if wait > 0 {
		out.header["Retry-After"] = strconv.FormatInt(wait, 10)
	}
	return out
}

// usedUp returns the quota error after which each CLI stops. Recorded: Codex stops at 429 usage_limit_reached, Claude
// Code at 400 or a rejected plan with a long wait, Gemini CLI at a daily quota, the AI SDK (OpenCode) at 402.
func (r route) usedUp(header http.Header, l policy.Limit, message string, wait int64) *refusal {
	agent := strings.ToLower(header.Get("User-Agent"))
	ofAISDK := strings.Contains(agent, "ai-sdk") || strings.Contains(agent, "opencode")
	switch {
	case r.protocol == config.Anthropic && wait > 0:
		out := refuse(config.Anthropic, http.StatusTooManyRequests, message)
		out.header["Anthropic-Ratelimit-Unified-Status"] = "rejected"
		out.header["Anthropic-Ratelimit-Unified-Reset"] = strconv.FormatInt(l.ResetsAt.Unix(), 10)
		out.header["X-Should-Retry"] = "false"
		return out
	case r.protocol == config.Anthropic:
		out := refuse(config.Anthropic, http.StatusBadRequest, message)
		out.header["X-Should-Retry"] = "false"
		return out
	case r.kind == chat, ofAISDK:
		return refuse(r.protocol, http.StatusPaymentRequired, message)
	case r.protocol == config.Google:
		quota := object{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []object{{"quotaId": "PawlRequestsPerDay"}}}
		return refuse(config.Google, http.StatusTooManyRequests, message, append([]object{quota}, retryInfo(wait)...)...)
	}
	e := object{"type": "usage_limit_reached", "message": message}
	if wait > 0 {
		e["resets_at"], e["resets_in_seconds"] = l.ResetsAt.Unix(), wait
	}
	return &refusal{status: http.StatusTooManyRequests, header: map[string]string{"X-Should-Retry": "false"}, body: object{"error": e}}
}

// retryInfo returns Google's detail for a wait in seconds, or nil for 0.
func retryInfo(wait int64) []object {
	if wait == 0 {
		return nil
	}
	return []object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", wait)}}
}

// secondsUntil returns the wait in seconds, rounded up and at least 1, or 0 if reset is unknown.
func secondsUntil(reset, now time.Time) int64 {
	if reset.IsZero() {
		return 0
	}
	return max(int64(reset.Sub(now)+time.Second-1)/int64(time.Second), 1)
}
