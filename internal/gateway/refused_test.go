package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// An agent provokes refusals that do not concern the account. Some repeat the agent's words.
func TestRequestErrorsAreNotLimits(t *testing.T) {
	for name, c := range map[string]struct {
		protocol string
		answer   http.HandlerFunc
	}{
		"a file of Gemini":      {Gemini, plain(403, `{"error":{"code":403,"message":"You do not have permission to access the File abc or it may not exist.","status":"PERMISSION_DENIED"}}`)},
		"a cache of Gemini":     {Gemini, plain(403, `{"error":{"code":403,"message":"CachedContent not found (or permission denied)","status":"PERMISSION_DENIED"}}`)},
		"a model of OpenAI":     {OpenAI, plain(403, `{"error":{"message":"Project p does not have access to model m","type":"invalid_request_error","code":"model_not_found"}}`)},
		"a model of Anthropic":  {Anthropic, plain(403, `{"type":"error","error":{"type":"permission_error","message":"Your account has no access to this model"}}`)},
		"a firewall's page":     {OpenAI, plain(403, `<html>blocked</html>`)},
		"an echoed limit":       {OpenAI, plain(400, `{"error":{"message":"Invalid value: 'usage limit has been reached'. Supported values are: 'low'.","type":"invalid_request_error","code":"invalid_value"}}`)},
		"an echoed header":      {Anthropic, plain(400, `{"type":"error","error":{"type":"invalid_request_error","message":"Unexpected value(s) Your credit balance is too low for the anthropic-beta header"}}`)},
		"an echoed name":        {OpenAI, plain(400, `{"error":{"message":"Unknown parameter: 'you exceeded your current quota'","type":"invalid_request_error","code":"unknown_parameter"}}`)},
		"an echo as a sentence": {OpenAI, plain(422, `{"error":"insufficient credits is no role"}`)},
		"an echoed model":       {Anthropic, plain(404, `{"type":"error","error":{"type":"not_found_error","message":"model: You have reached your usage limit"}}`)},
		"an echoed model, too":  {OpenAI, plain(404, "{\"error\":{\"message\":\"The model `insufficient credits` does not exist\",\"code\":\"model_not_found\"}}")},
		"an echoed path":        {Gemini, plain(404, `{"error":{"code":404,"message":"models/your-quota-is-exceeded is not found for API version v1beta","status":"NOT_FOUND"}}`)},
		"an echoed file":        {Gemini, plain(403, `{"error":{"code":403,"message":"You do not have permission to access the File usage limit exceeded or it may not exist.","status":"PERMISSION_DENIED"}}`)},
		"an echoed content":     {Anthropic, plain(400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content: your credit balance is too low"}}`)},
		"an echoed tool":        {OpenAI, plain(400, `{"error":{"message":"Invalid tool name: out of credits","type":"invalid_request_error"}}`)},
		"an echoed key":         {OpenAI, plain(400, `{"error":{"message":"Unrecognized request argument supplied: quota exceeded","type":"invalid_request_error"}}`)},
		"an echo in a stream":   {OpenAI, sse(ev("error", `"code":"invalid_value","message":"usage limit has been reached"`))},
	} {
		p := newProvider(t, c.answer)
		s := open(t, c.protocol, p.URL, nil)
		path := map[string]string{OpenAI: "/v1/responses", Anthropic: "/v1/messages", Gemini: "/v1beta/models/m:generateContent"}[c.protocol]
		s.post(t, path, `{"model":"m"}`)
		if u := s.settled(); u.Limit != nil || len(s.limits) != 0 {
			t.Errorf("%s: %+v", name, u.Limit)
		}
	}
}

func TestOutputBeyondTheCreditIsNotALimit(t *testing.T) {
	for most, limits := range map[string]int{"32000": 1, "1000000": 0} {
		p := newProvider(t, plain(402, `{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}`))
		s := open(t, OpenAI, p.URL, nil)
		s.post(t, "/v1/chat/completions", `{"model":"m","max_tokens":`+most+`}`)
		if len(s.limits) != limits {
			t.Errorf("max_tokens %s: %d limits", most, len(s.limits))
		}
	}
}

func TestRefusedKeyHasOurMessage(t *testing.T) {
	for protocol, path := range map[string]string{OpenAI: "/v1/responses", Anthropic: "/v1/messages", Gemini: "/v1beta/models/m:generateContent"} {
		p := newProvider(t, plain(401, `{"error":{"message":"Incorrect API key provided: sk-provi********cdef. Find it here.","code":"invalid_api_key"}}`))
		s := open(t, protocol, p.URL, nil)
		resp, body := s.post(t, path, `{"model":"m"}`)
		const source = "the key of provider "
		if resp.StatusCode != 401 || strings.Contains(body, "cdef") || !strings.Contains(body, `"error"`) || !strings.Contains(body, source) {
			t.Errorf("%s: %d %s", protocol, resp.StatusCode, body)
		}
		if l := <-s.limits; l.Kind != policy.Auth || strings.Contains(l.Message, "cdef") || !strings.Contains(l.Message, "Incorrect API key") || !strings.Contains(l.Message, source) {
			t.Errorf("%s: %+v", protocol, l)
		}
	}
}

func TestModelListErrorIsNotAnAccountLimit(t *testing.T) {
	p := newProvider(t, plain(401, `{"error":{"message":"this server has no list","code":"invalid_api_key"}}`))
	s := open(t, OpenAI, p.URL, nil)
	do(t, s.request(t, "GET", "/v1/models", ""))
	if u := s.settled(); u.Limit != nil || len(s.limits) != 0 {
		t.Errorf("%+v", u.Limit)
	}
}
