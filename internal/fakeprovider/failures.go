package fakeprovider

import (
	"fmt"
	"strconv"
	"time"
)

// The providers' exact messages.
const (
	usageLimitMessage = "The usage limit has been reached"
	quotaMessage      = "You exceeded your current quota, please check your plan and billing details."
	keyMessage        = "Incorrect API key provided: sk-mock. You can find your API key at https://platform.openai.com/account/api-keys."
	overloadMessage   = "Our servers are currently overloaded. Please try again later."
	modelMessage      = "The model `mock-model` does not exist or you do not have access to it."
)

// resets returns when a usage limit resets, as Unix time and in seconds from now.
func resets(set settings, now time.Time) (at int64, in int) {
	in = set.number("reset_in", 3600)
	return now.Unix() + int64(in), in
}

func openAI(status int, kind string, code any, message string, header map[string]string) failure {
	all := map[string]string{"x-request-id": id("req_")}
	for key, value := range header {
		all[key] = value
	}
	return failure{status, all, object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}}
}

func planLimit(fields object, header map[string]string) failure {
	fields["type"], fields["message"], fields["plan_type"] = "usage_limit_reached", usageLimitMessage, "plus"
	return failure{429, header, object{"error": fields}}
}

// openAIFailure is shared by OpenAI's two protocols.
func openAIFailure(name string, set settings) failure {
	wait := strconv.Itoa(set.number("retry_after", 2))
	switch name {
	case "insufficient-quota":
		return openAI(429, "insufficient_quota", "insufficient_quota", quotaMessage+
			" For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.", nil)
	case "rate-429":
		return openAI(429, "requests", "rate_limit_exceeded", "Rate limit reached for mock-model on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in "+
			wait+"s.", map[string]string{"retry-after": wait})
	case "auth-401":
		return openAI(401, "invalid_request_error", "invalid_api_key", keyMessage, nil)
	case "auth-403":
		return openAI(403, "invalid_request_error", "permission_denied", "You do not have access to this resource.", nil)
	case "overload-503":
		return openAI(503, "service_unavailable_error", "server_is_overloaded", overloadMessage, nil)
	case "overload-529":
		return openAI(529, "overloaded_error", "overloaded", "Overloaded", nil)
	case "model-404":
		return openAI(404, "invalid_request_error", "model_not_found", modelMessage, nil)
	case "context-400":
		return openAI(400, "invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again.", nil)
	}
	return openAI(500, "server_error", nil, "The server had an error while processing your request. Sorry about that!", nil)
}

func (responses) failure(name string, set settings, now time.Time) failure {
	at, in := resets(set, now)
	switch name {
	case "usage-limit":
		return planLimit(object{"resets_at": at, "resets_in_seconds": in}, codexWindows("100.0", at, now))
	case "usage-limit-noreset":
		return planLimit(object{}, nil)
	case "usage-limit-insec":
		return planLimit(object{"resets_in_seconds": in}, nil)
	case "usage-not-included":
		return failure{429, nil, object{"error": object{"type": "usage_not_included", "message": "Usage not included in your plan"}}}
	}
	return openAIFailure(name, set)
}

func (responses) headers(used int, now time.Time) map[string]string {
	return codexWindows(strconv.Itoa(used)+".0", now.Unix()+1800, now)
}

// codexWindows returns the headers of Codex's five-hour and weekly windows.
func codexWindows(percent string, reset int64, now time.Time) map[string]string {
	return map[string]string{
		"x-codex-primary-used-percent": percent, "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-at": strconv.FormatInt(reset, 10),
		"x-codex-secondary-used-percent": "40.0", "x-codex-secondary-window-minutes": "10080", "x-codex-secondary-reset-at": strconv.FormatInt(now.Unix()+4*86400, 10),
	}
}

func (chat) failure(name string, set settings, now time.Time) failure {
	at, in := resets(set, now)
	wait := map[string]string{"retry-after": strconv.Itoa(in)}
	switch name {
	case "usage-limit":
		return planLimit(object{"resets_at": at, "resets_in_seconds": in}, wait)
	case "usage-limit-noreset", "usage-not-included":
		return openAIFailure("insufficient-quota", set)
	case "usage-limit-insec":
		return planLimit(object{"resets_in_seconds": in}, wait)
	}
	return openAIFailure(name, set)
}

func (chat) headers(int, time.Time) map[string]string {
	return map[string]string{"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "8", "x-ratelimit-reset-requests": "30m0s"}
}

func openAIStreamError(name string) object {
	out := map[string]object{
		"overloaded": {"code": "server_is_overloaded", "message": overloadMessage},
		"ratelimit": {"code": "rate_limit_exceeded", "message": "Rate limit reached for mock-model on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528. " +
			"Please try again in 2.5s. Visit https://platform.openai.com/account/rate-limits to learn more."},
		"quota":   {"code": "insufficient_quota", "type": "insufficient_quota", "message": quotaMessage},
		"context": {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model. Please adjust your input and try again."},
	}
	return out[name]
}

func anthropicError(status int, kind, message string, header map[string]string) failure {
	request := id("req_")
	all := map[string]string{"request-id": request}
	for key, value := range header {
		all[key] = value
	}
	return failure{status, all, object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": request}}
}

func (anthropic) failure(name string, set settings, now time.Time) failure {
	const exceeded = "This request would exceed your account's rate limit. Please try again later."
	at, in := resets(set, now)
	switch name {
	case "usage-limit", "usage-limit-insec":
		header := unified("rejected", set.word("claim", "five_hour"), at, now)
		header["retry-after"], header["x-should-retry"] = strconv.Itoa(in), "true"
		return anthropicError(429, "rate_limit_error", exceeded, header)
	case "usage-limit-noreset", "usage-not-included":
		return anthropicError(429, "rate_limit_error", exceeded, nil)
	case "insufficient-quota":
		return anthropicError(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", nil)
	case "rate-429":
		return anthropicError(429, "rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit",
			map[string]string{"retry-after": strconv.Itoa(set.number("retry_after", 2))})
	case "auth-401":
		return anthropicError(401, "authentication_error", "invalid x-api-key", nil)
	case "auth-403":
		return anthropicError(403, "permission_error", "Your API key does not have permission to use the specified resource", nil)
	case "overload-503":
		return anthropicError(503, "api_error", "Service unavailable", nil)
	case "overload-529":
		return anthropicError(529, "overloaded_error", "Overloaded", nil)
	case "model-404":
		return anthropicError(404, "not_found_error", "model: mock-model", nil)
	case "context-400":
		return anthropicError(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", nil)
	}
	return anthropicError(500, "api_error", "Internal server error", nil)
}

func (anthropic) headers(used int, now time.Time) map[string]string {
	h := unified("allowed_warning", "five_hour", now.Unix()+1800, now)
	h["anthropic-ratelimit-unified-5h-utilization"] = strconv.FormatFloat(float64(used)/100, 'f', -1, 64)
	return h
}

// unified returns the headers of a Claude plan's limits.
func unified(status, claim string, reset int64, now time.Time) map[string]string {
	const prefix = "anthropic-ratelimit-unified-"
	at, other := strconv.FormatInt(reset, 10), strconv.FormatInt(now.Unix()+4*86400, 10)
	full, free := map[string]string{"status": status, "reset": at, "utilization": "1.0"}, map[string]string{"status": "allowed", "reset": other, "utilization": "0.4"}
	if status != "rejected" {
		full["utilization"], full["surpassed-threshold"] = "0.92", "0.9"
	}
	windows := map[string]map[string]string{"5h": full, "7d": free}
	if claim == "seven_day" {
		windows = map[string]map[string]string{"5h": free, "7d": full}
	}
	out := map[string]string{prefix + "status": status, prefix + "reset": at, prefix + "representative-claim": claim, prefix + "fallback-percentage": "0.5",
		prefix + "overage-status": "rejected", prefix + "overage-disabled-reason": "org_level_disabled"}
	for window, fields := range windows {
		for key, value := range fields {
			out[prefix+window+"-"+key] = value
		}
	}
	return out
}

func anthropicStreamError(name string) object {
	out := map[string]object{
		"overloaded": {"type": "overloaded_error", "message": "Overloaded"},
		"ratelimit":  {"type": "rate_limit_error", "message": "Number of request tokens has exceeded your per-minute rate limit"},
		"quota":      {"type": "rate_limit_error", "message": "This request would exceed your account's rate limit. Please try again later."},
		"context":    {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum"},
	}
	return out[name]
}

func google(code int, status, message string, details ...any) failure {
	fields := object{"code": code, "message": message, "status": status}
	if len(details) > 0 {
		fields["details"] = details
	}
	return failure{code, nil, object{"error": fields}}
}

// googleType is the prefix of error details' type names.
const googleType = "type.googleapis.com/google.rpc."

func (gemini) failure(name string, set settings, now time.Time) failure {
	at, in := resets(set, now)
	exhausted := func(message string, details ...any) failure {
		return google(429, "RESOURCE_EXHAUSTED", message, details...)
	}
	retry := func(seconds int) object {
		return object{"@type": googleType + "RetryInfo", "retryDelay": fmt.Sprintf("%ds", seconds)}
	}
	info := func(reason, domain string, metadata object) object {
		return object{"@type": googleType + "ErrorInfo", "reason": reason, "domain": domain, "metadata": metadata}
	}
	const metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
	quota := func(per, value string) object {
		return object{"@type": googleType + "QuotaFailure", "violations": []any{object{"quotaMetric": metric, "quotaId": "GenerateRequestsPer" + per + "PerProjectPerModel-FreeTier",
			"quotaDimensions": object{"model": "gemini-2.5-pro", "location": "global"}, "quotaValue": value}}}
	}
	switch name {
	case "usage-limit":
		return exhausted(fmt.Sprintf("%s * Quota exceeded for metric: %s, limit: 50\nPlease retry in %ds.", quotaMessage, metric, in), quota("Day", "50"), retry(in))
	case "usage-limit-insec":
		return exhausted("Resource has been exhausted (e.g. check quota).", retry(in))
	case "usage-limit-noreset", "usage-not-included":
		delay := (time.Duration(in) * time.Second).String()
		return exhausted("You have exhausted your capacity on this model. Your quota will reset after "+delay+".",
			info("QUOTA_EXHAUSTED", "cloudcode-pa.googleapis.com", object{"uiMessage": "true", "model": "gemini-2.5-pro", "quotaResetDelay": delay,
				"quotaResetTimeStamp": time.Unix(at, 0).UTC().Format(time.RFC3339)}), retry(in))
	case "insufficient-quota":
		return exhausted("Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.")
	case "rate-429":
		wait := set.number("retry_after", 2)
		f := exhausted(fmt.Sprintf("You exceeded your current quota. Please retry in %ds.", wait), quota("Minute", "2"), retry(wait))
		f.header = map[string]string{"retry-after": strconv.Itoa(wait)}
		return f
	case "auth-401":
		return google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
			info("API_KEY_INVALID", "googleapis.com", object{"service": "generativelanguage.googleapis.com"}))
	case "auth-403":
		return google(403, "PERMISSION_DENIED", "The caller does not have permission")
	case "overload-503":
		return google(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
	case "overload-529":
		return google(529, "UNAVAILABLE", "Overloaded")
	case "model-404":
		return google(404, "NOT_FOUND", "models/mock-model is not found for API version v1beta, or is not supported for generateContent.")
	case "context-400":
		return google(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")
	}
	return google(500, "INTERNAL", "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
}

// headers returns none: Gemini sends none before a limit is reached.
func (gemini) headers(int, time.Time) map[string]string { return nil }
