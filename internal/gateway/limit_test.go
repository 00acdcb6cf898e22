package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

func TestProvidersLimitsAreParsed(t *testing.T) {
	at := testNow().Add(time.Hour)
	unixAt := fmt.Sprint(at.Unix())
	g := func(code int, status, message, details string) http.HandlerFunc {
		return plain(code, fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, code, message, status, details))
	}
	perDay := `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}`
	delay := func(s string) string {
		return `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + s + `"}`
	}
	const quota = "You exceeded your current quota, please check your plan and billing details."
	for name, c := range map[string]struct {
		protocol string
		answer   http.HandlerFunc
		kind     policy.Ending
		in       time.Duration // time until the reset; 0 if unknown
		exact    bool
	}{
		"codex plan":          {OpenAI, plain(429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":`+unixAt+`,"resets_in_seconds":9}}`), policy.UsageLimit, time.Hour, true},
		"codex plan, seconds": {OpenAI, plain(429, `{"error":{"type":"usage_limit_reached","message":"x","resets_in_seconds":3600}}`), policy.UsageLimit, time.Hour, true},
		"codex plan, headers": {OpenAI, plain(429, `{"error":{"type":"usage_limit_reached","message":"x"}}`, "X-Codex-Primary-Used-Percent", "100.0", "X-Codex-Primary-Reset-At", unixAt, "X-Codex-Secondary-Used-Percent", "40", "X-Codex-Secondary-Reset-At", "1895251986"), policy.UsageLimit, time.Hour, true},
		"codex plan, unknown": {OpenAI, plain(429, `{"error":{"type":"usage_limit_reached","message":"x","resets_at":null}}`), policy.UsageLimit, 0, false},
		"too near":            {OpenAI, plain(429, `{"error":{"type":"usage_limit_reached","message":"x","resets_in_seconds":3}}`), policy.UsageLimit, time.Minute, true},
		"too far":             {OpenAI, plain(429, `{"error":{"type":"usage_limit_reached","message":"x","resets_in_seconds":1e9}}`), policy.UsageLimit, 8 * 24 * time.Hour, true},
		"not included":        {OpenAI, plain(429, `{"error":{"type":"usage_not_included","message":"Usage not included in your plan"}}`), policy.UsageLimit, 0, false},
		"insufficient quota":  {OpenAI, plain(429, `{"error":{"message":"`+quota+`","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`), policy.UsageLimit, 0, false},
		"openai rate":         {OpenAI, plain(429, `{"error":{"message":"Rate limit reached for m. Please try again in 20s.","type":"requests","code":"rate_limit_exceeded"}}`, "Retry-After", "2"), policy.RateLimited, 2 * time.Second, true},
		"openai rate, text":   {OpenAI, plain(429, `{"error":{"message":"Rate limit reached for m. Please try again in 1m2.5s.","type":"requests","code":"rate_limit_exceeded"}}`), policy.RateLimited, 62500 * time.Millisecond, false},
		"openai rate, window": {OpenAI, plain(429, `{"error":{"message":"Rate limit","type":"tokens","code":"rate_limit_exceeded"}}`, "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "6m0s"), policy.RateLimited, 6 * time.Minute, true},
		"a day's rate":        {OpenAI, plain(429, `{"error":{"message":"Rate limit reached on requests per day (RPD)","code":"rate_limit_exceeded"}}`), policy.UsageLimit, 0, false},
		"payment":             {OpenAI, plain(402, `{"error":"Insufficient credits"}`), policy.UsageLimit, 0, false},
		"openai key":          {OpenAI, plain(401, `{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}`), policy.Auth, 0, false},
		"openai overload":     {OpenAI, plain(503, `{"error":{"code":"server_is_overloaded","message":"x"}}`), policy.Overloaded, 0, false},
		"a proxy's page":      {OpenAI, plain(502, `<html>502</html>`), "", 0, false},
		"a page of sign-in":   {OpenAI, plain(401, `<!doctype html><title>Sign in</title>`), "", 0, false},
		"a page that limits":  {OpenAI, plain(429, `<html>error 1015</html>`, "Retry-After", "60"), policy.RateLimited, time.Minute, true},
		"router, one window":  {OpenAI, plain(429, `{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min.","metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"`+fmt.Sprint(testNow().Add(30*time.Second).UnixMilli())+`"}}}}`), policy.RateLimited, 30 * time.Second, true},
		"milliseconds":        {OpenAI, plain(429, `{"error":{"message":"slow down"}}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(at.UnixMilli())), policy.UsageLimit, time.Hour, true},
		"a window with more":  {OpenAI, plain(429, `{"error":{"message":"slow down"}}`, "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", fmt.Sprint(at.UnixMilli())), policy.RateLimited, 0, false},
		"the draft's window":  {OpenAI, plain(429, `{"error":{"message":"slow down"}}`, "RateLimit-Reset", "20"), policy.RateLimited, 20 * time.Second, true},
		"the type counts":     {OpenAI, plain(429, `{"error":{"message":"You have hit your usage limit for tokens, try again in 20s","code":"rate_limit_exceeded"}}`), policy.RateLimited, 20 * time.Second, false},
		"no such model":       {OpenAI, plain(404, `{"error":{"code":"model_not_found","message":"The model does not exist"}}`), "", 0, false},
		"context":             {OpenAI, plain(400, `{"error":{"code":"context_length_exceeded","message":"too long"}}`), "", 0, false},
		"claude plan": {Anthropic, plain(429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`,
			"Anthropic-Ratelimit-Unified-Status", "rejected", "Anthropic-Ratelimit-Unified-Reset", unixAt, "Retry-After", "3601"), policy.UsageLimit, time.Hour, true},
		"claude plan, unknown": {Anthropic, plain(429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`), policy.RateLimited, 0, false},
		"claude rate":          {Anthropic, plain(429, `{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your per-minute rate limit"}}`, "Retry-After", "30"), policy.RateLimited, 30 * time.Second, true},
		"claude rate, window":  {Anthropic, plain(429, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, "Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", testNow().Add(40*time.Second).Format(time.RFC3339)), policy.RateLimited, 40 * time.Second, true},
		"claude credit":        {Anthropic, plain(400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`), policy.UsageLimit, 0, false},
		"claude spend":         {Anthropic, plain(400, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on `+at.Format("2006-01-02 at 15:04")+` UTC."}}`), policy.UsageLimit, time.Hour, false},
		"claude overload":      {Anthropic, plain(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), policy.Overloaded, 0, false},
		"claude permission":    {Anthropic, plain(403, `{"type":"error","error":{"type":"permission_error","message":"x"}}`), policy.Auth, 0, false},
		"gemini day":           {Gemini, g(429, "RESOURCE_EXHAUSTED", quota+"\nPlease retry in 3600s.", perDay+","+delay("3600s")), policy.UsageLimit, time.Hour, true},
		"gemini day, soon":     {Gemini, g(429, "RESOURCE_EXHAUSTED", quota+"\nPlease retry in 34.07s.", perDay+","+delay("34s")), policy.UsageLimit, 0, false},
		"gemini minute":        {Gemini, g(429, "RESOURCE_EXHAUSTED", quota+" Please retry in 2s.", delay("2s")), policy.RateLimited, 2 * time.Second, true},
		"gemini long delay":    {Gemini, g(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", delay("3600s")), policy.UsageLimit, time.Hour, true},
		"gemini capacity":      {Gemini, g(429, "RESOURCE_EXHAUSTED", "You have exhausted your capacity on this model. Your quota will reset after 1h0m0s.", `{"reason":"QUOTA_EXHAUSTED","metadata":{"quotaResetTimeStamp":"`+at.Format(time.RFC3339)+`"}}`), policy.UsageLimit, time.Hour, true},
		"gemini credits":       {Gemini, g(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", ""), policy.UsageLimit, 0, false},
		"gemini key":           {Gemini, g(400, "INVALID_ARGUMENT", "API key not valid.", `{"reason":"API_KEY_INVALID"}`), policy.Auth, 0, false},
		"gemini overload":      {Gemini, g(503, "UNAVAILABLE", "The model is overloaded.", ""), policy.Overloaded, 0, false},
		"gemini context":       {Gemini, g(400, "INVALID_ARGUMENT", "The input token count exceeds the maximum.", ""), "", 0, false},

		"responses stream, rate":     {OpenAI, sse(ev("response.failed", `"response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Please try again in 2.5s. Visit"}}`)), policy.RateLimited, 2500 * time.Millisecond, false},
		"responses stream, quota":    {OpenAI, sse(ev("response.failed", `"response":{"error":{"code":"insufficient_quota","message":"x"}}`)), policy.UsageLimit, 0, false},
		"responses stream, overload": {OpenAI, sse(ev("error", `"code":"server_is_overloaded","message":"x"`)), policy.Overloaded, 0, false},
		"responses stream, context":  {OpenAI, sse(ev("response.failed", `"response":{"error":{"code":"context_length_exceeded","message":"x"}}`)), "", 0, false},
		"messages stream, overload":  {Anthropic, sse(ev("error", `"error":{"type":"overloaded_error","message":"Overloaded"}`)), policy.Overloaded, 0, false},
		"gemini stream, quota":       {Gemini, sse(data(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"` + quota + `","details":[` + perDay + `,` + delay("3600s") + `]}}`)), policy.UsageLimit, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, c.answer)
			s := open(t, c.protocol, p.URL, nil)
			path := map[string]string{OpenAI: "/v1/responses", Anthropic: "/v1/messages", Gemini: "/v1beta/models/m:generateContent"}[c.protocol]
			s.post(t, path, `{"model":"m","stream":true}`)
			u := s.settled()
			if c.kind == "" {
				if u.Limit != nil || len(s.limits) != 0 {
					t.Errorf("%+v", u.Limit)
				}
				return
			}
			if u.Limit == nil || len(s.limits) != 1 {
				t.Fatalf("%+v, reported %d times", u, len(s.limits))
			}
			want := policy.Limit{Kind: c.kind, Message: u.Limit.Message, Source: policy.SourceNone, Certainty: policy.Certain}
			switch {
			case c.exact:
				want.Source = policy.SourceStructured
			case c.in != 0:
				want.Source = policy.SourceText
			}
			if c.in != 0 {
				want.ResetsAt = testNow().Add(c.in)
			}
			if diff := cmp.Diff(want, *u.Limit); diff != "" || cmp.Diff(*u.Limit, <-s.limits) != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBudgetRefusalIsFinalForCLIs(t *testing.T) {
	usage := map[string]string{
		OpenAI: `{"object":"response","status":"completed","choices":[],"usage":{"input_tokens":90,"output_tokens":10,"prompt_tokens":90,"completion_tokens":10}}`, Anthropic: `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":90,"output_tokens":10}}`,
		Gemini: `{"usageMetadata":{"promptTokenCount":90,"candidatesTokenCount":10}}`,
	}
	for _, c := range []struct {
		protocol    string
		path, agent string
		status      int
		contains    string
	}{
		{OpenAI, "/v1/responses", "codex_exec/0.169.0", 429, `"usage_limit_reached"`},
		{OpenAI, "/v1/responses", "opencode/1.18.33 ai-sdk/openai", 402, `"insufficient_quota"`},
		{OpenAI, "/v1/chat/completions", "ai-sdk/openai-compatible", 402, `"insufficient_quota"`},
		{Anthropic, "/v1/messages", "claude-cli/2", 400, `Pawl stopped it: `},
		{Gemini, "/v1beta/models/m:generateContent", "GeminiCLI/0.61.0", 429, `PerDay`},
	} {
		for _, money := range []bool{false, true} {
			p := newProvider(t, plain(200, usage[c.protocol]))
			s := open(t, c.protocol, p.URL, func(g *Grant) {
				if g.MaxTokens = 100; money {
					g.MaxTokens, g.MaxCostUSD = 0, 0.0001
					g.Provider.Prices = []config.Price{{Model: "other", Input: 1, Output: 1}} // the model itself has no price
				}
			})
			if resp, body := s.post(t, c.path, `{"model":"m"}`); resp.StatusCode != 200 {
				t.Errorf("%s: the first call: %d %s", c.path, resp.StatusCode, body)
			}
			if u := s.Usage(); u.BudgetStopped != "" {
				t.Errorf("%+v", u)
			}
			resp, body := s.post(t, c.path, `{"model":"m"}`, "User-Agent", c.agent)
			if resp.StatusCode != c.status || !strings.Contains(body, c.contains) || !strings.Contains(body, "budget") {
				t.Errorf("%s: %d %s", c.path, resp.StatusCode, body)
			}
			if u := s.settled(); u.BudgetStopped == "" || u.Refused != 1 || u.Requests != 1 || u.Limit != nil || len(s.limits) != 0 {
				t.Errorf("%+v", u)
			}
		}
	}
}

func TestCostBudgetNeedsPrices(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, func(g *Grant) { g.MaxCostUSD = 5 })
	if resp, body := s.post(t, "/v1/messages", `{"model":"m"}`); resp.StatusCode != 400 || !strings.Contains(body, "no prices") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestOpenBreakerCallsNoProvider(t *testing.T) {
	in := testNow().Add(90 * time.Second)
	for _, c := range []struct {
		protocol       string
		path           string
		kind           policy.Ending
		status         int
		contains, wait string
	}{
		{OpenAI, "/v1/responses", policy.UsageLimit, 429, fmt.Sprintf(`"resets_at":%d`, in.Unix()), "90"},
		{OpenAI, "/v1/chat/completions", policy.UsageLimit, 402, "insufficient_quota", "90"},
		{OpenAI, "/v1/chat/completions", policy.RateLimited, 429, "rate_limit_exceeded", "90"},
		{OpenAI, "/v1/responses", policy.Overloaded, 503, "server_is_overloaded", "90"},
		{OpenAI, "/v1/responses", policy.Auth, 401, "invalid_api_key", ""},
		{Anthropic, "/v1/messages", policy.UsageLimit, 429, "rate_limit_error", "90"},
		{Anthropic, "/v1/messages/count_tokens", policy.RateLimited, 429, "rate_limit_error", "90"},
		{Anthropic, "/v1/messages", policy.Overloaded, 529, "overloaded_error", "90"},
		{Gemini, "/v1beta/models/m:generateContent", policy.UsageLimit, 429, "PerDay", "90"},
		{Gemini, "/v1beta/models/m:generateContent", policy.RateLimited, 429, `"retryDelay":"90s"`, "90"},
		{Gemini, "/v1beta/models/m:generateContent", policy.Overloaded, 503, "UNAVAILABLE", "90"},
	} {
		p := newProvider(t, plain(200, `{}`))
		s := open(t, c.protocol, p.URL, func(g *Grant) {
			g.Limited = func(context.Context) (policy.Limit, bool) {
				return policy.Limit{Kind: c.kind, Message: "account a: " + string(c.kind), ResetsAt: in}, true
			}
		})
		resp, body := s.post(t, c.path, `{"model":"m"}`)
		if resp.StatusCode != c.status || !strings.Contains(body, c.contains) || !strings.Contains(body, "account a: "+string(c.kind)) || resp.Header.Get("Retry-After") != c.wait {
			t.Errorf("%s %s: %d %v %s", c.path, c.kind, resp.StatusCode, resp.Header, body)
		}
		if l, ok := readAnswer(resp.StatusCode, resp.Header, body); !ok || l.Kind != c.kind && c.kind != policy.RateLimited {
			t.Errorf("%s %s is parsed as %+v", c.path, c.kind, l)
		}
		if u := s.settled(); len(p.requests()) != 0 || u.Requests != 0 || u.Refused != 1 {
			t.Errorf("%+v", u)
		}
	}
}

// readAnswer reads the gateway's refusal as another gateway in front of it would.
func readAnswer(status int, header http.Header, body string) (policy.Limit, bool) {
	e := limit.Answer(status, header, []byte(body))
	e.Now = testNow()
	return limit.Read(e).Limit()
}
