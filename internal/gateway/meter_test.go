package gateway

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

const responsesCompleted = `"response":{"id":"r","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":1200,"input_tokens_details":{"cached_tokens":200},"output_tokens":34,"output_tokens_details":{"reasoning_tokens":10},"total_tokens":1234}}`

func TestTokensAreCounted(t *testing.T) {
	gemini := `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1200,"candidatesTokenCount":24,"thoughtsTokenCount":10,"cachedContentTokenCount":200}}`
	early := `{"candidates":[{"content":{"parts":[{"text":"h"}]}}],"usageMetadata":{"promptTokenCount":1200,"candidatesTokenCount":1}}`
	chatUsage := `"usage":{"prompt_tokens":1200,"completion_tokens":34,"prompt_tokens_details":{"cached_tokens":200}}`
	for name, c := range map[string]struct {
		protocol   string
		path, body string
		answer     http.HandlerFunc
	}{
		"responses stream": {OpenAI, "/v1/responses", `{"model":"m","stream":true}`, sse(ev("response.created", `"response":{"id":"r"}`), ev("response.output_text.delta", `"delta":"hi"`), ev("response.completed", responsesCompleted))},
		"responses":        {OpenAI, "/v1/responses", `{"model":"m"}`, plain(200, `{`+strings.TrimPrefix(responsesCompleted, `"response":{`))},
		"chat stream":      {OpenAI, "/v1/chat/completions", `{"model":"m","stream":true}`, sse(data(`{"choices":[{"delta":{"content":"hi"}}]}`), data(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`), data(`{"choices":[],`+chatUsage+`}`), data("[DONE]"))},
		"chat":             {OpenAI, "/v1/chat/completions", `{"model":"m"}`, plain(200, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],`+chatUsage+`}`)},
		"messages stream": {Anthropic, "/v1/messages", `{"model":"m","stream":true}`, sse(
			ev("message_start", `"message":{"usage":{"input_tokens":900,"cache_read_input_tokens":200,"cache_creation_input_tokens":100,"output_tokens":1}}`),
			ev("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"hi"}`), ev("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":34}`), ev("message_stop", ""))},
		"messages":                    {Anthropic, "/v1/messages", `{"model":"m"}`, plain(200, `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":900,"cache_read_input_tokens":200,"cache_creation_input_tokens":100,"output_tokens":34}}`)},
		"gemini stream":               {Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", `{}`, sse(data(early), data(gemini))},
		"gemini array":                {Gemini, "/v1beta/models/m:streamGenerateContent", `{}`, plain(200, `[`+early+",\r\n"+gemini+`]`)},
		"gemini":                      {Gemini, "/v1beta/models/m:generateContent", `{}`, plain(200, gemini)},
		"gzip that was not requested": {Gemini, "/v1beta/models/m:generateContent", `{}`, plain(200, inZip(gemini), "Content-Encoding", "gzip")},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, c.answer)
			s := open(t, c.protocol, p.URL, func(g *Grant) {
				g.Provider.Prices = []config.Price{{Model: "m", Input: 1, CachedInput: 0.1, Output: 10}}
			})
			resp, text := s.post(t, c.path, c.body)
			if resp.StatusCode != 200 || !strings.Contains(text, "hi") {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
			got := s.settled()
			want := Usage{Requests: 1, Turns: 1, Tokens: policy.Tokens{Input: 1200, CachedInput: 200, Output: 34}, CostKnown: true, MaxContext: 1200, CostUSD: got.CostUSD,
				Last: Last{Ending: policy.Completed, Why: "the last answer end well"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			written := 0.0
			if c.protocol == Anthropic {
				written = 100
			}
			if cost := (1000*1 + written*0.25 + 200*0.1 + 34*10) / 1e6; math.Abs(got.CostUSD-cost) > 1e-12 {
				t.Errorf("cost %g, want %g", got.CostUSD, cost)
			}
		})
	}
}

func TestRequestedUsageIsHiddenFromTheAgent(t *testing.T) {
	answer := sse(data(`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":null}`), data(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`), data("[DONE]"))
	p := newProvider(t, answer)
	s := open(t, OpenAI, p.URL, nil)
	_, body := s.post(t, "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"x":1},"messages":[{"content":"<a>"}]}`)
	if strings.Contains(body, "prompt_tokens") || !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("the agent sees %s", body)
	}
	if got := p.requests()[0].body; !strings.Contains(got, `"include_usage":true`) || !strings.Contains(got, `"x":1`) || !strings.Contains(got, "<a>") {
		t.Errorf("the provider sees %s", got)
	}
	const asked = `{"stream":true,"model":"m","stream_options":{"include_usage":true}}`
	if _, body = s.post(t, "/v1/chat/completions", asked); !strings.Contains(body, "prompt_tokens") || p.requests()[1].body != asked {
		t.Errorf("an agent that asks for the usage sees %s", body)
	}
	if u := s.settled(); u.Input != 6 || u.Output != 2 || u.CostKnown {
		t.Errorf("%+v", u)
	}
}

func TestLongRequestHasLongPrices(t *testing.T) {
	p := config.Price{Model: "m", Input: 2, CachedInput: 1, CacheWrite: 3, Output: 10, LongOver: 1000, LongInput: 4, LongCachedInput: 2, LongOutput: 15}
	for _, c := range []struct {
		used tokens
		want float64 // in USD per million
	}{
		{tokens{input: 1000, output: 10}, 2000 + 100},
		{tokens{input: 1001, output: 10}, 4004 + 150},
		{tokens{input: 2000, cached: 500, written: 500, output: 0}, 1000*4 + 500*2 + 500*6},
	} {
		if got := c.used.cost(p) * 1e6; math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%+v costs %v, want %v", c.used, got, c.want)
		}
	}
}

// A router reports costs, even of models without a known price.
func TestProvidersCostCounts(t *testing.T) {
	for path, c := range map[string]struct{ protocol, answer string }{
		"/v1/chat/completions": {OpenAI, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":9,"cost":0.25}}`},
		"/v1/responses":        {OpenAI, `{"object":"response","status":"completed","usage":{"input_tokens":1000,"output_tokens":9,"cost":0.25}}`},
		"/v1/messages":         {Anthropic, `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":9,"cost":0.25}}`},
	} {
		p := newProvider(t, plain(200, c.answer))
		s := open(t, c.protocol, p.URL, func(g *Grant) {
			g.MaxCostUSD, g.Provider.Prices = 0.4, []config.Price{{Model: "priced", Input: 1e6, Output: 1e6}}
		})
		for _, model := range []string{"unknown", "priced"} {
			if resp, body := s.post(t, path, `{"model":"`+model+`"}`); resp.StatusCode != 200 {
				t.Errorf("%s: %d %s", path, resp.StatusCode, body)
			}
		}
		if resp, body := s.post(t, path, `{"model":"unknown"}`); resp.StatusCode == 200 || !strings.Contains(body, "cost $0.50 of its budget of $0.40") {
			t.Errorf("%s beyond the budget: %d %s", path, resp.StatusCode, body)
		}
		if u := s.settled(); u.CostUSD != 0.5 || !u.CostKnown || u.Estimated != 0 {
			t.Errorf("%s: %+v", path, u)
		}
	}
}
