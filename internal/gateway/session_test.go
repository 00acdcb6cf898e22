package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

const (
	ratedModel = `{"type":"error","error":{"type":"rate_limit_error","message":"too fast"}}`
	quotaModel = `{"type":"error","error":{"type":"rate_limit_error","message":"Requests per day"}}`
)

// A small model is refused while the attempt uses another.
func TestSideModelsRefusalIsNotALimit(t *testing.T) {
	unified := []string{"Anthropic-Ratelimit-Unified-Status", "rejected"}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		model  string
		counts bool
	}{
		"a rate":           {plain(429, ratedModel), "haiku-4", false},
		"a day":            {plain(429, quotaModel), "haiku-4", false},
		"a permission":     {plain(403, `{"type":"error","error":{"type":"permission_error","message":"not allowed"}}`), "haiku-4", false},
		"overload":         {plain(529, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), "haiku-4", false},
		"the key":          {plain(401, `{}`), "haiku-4", true},
		"the plan":         {plain(429, ratedModel, unified...), "haiku-4", true},
		"a quota":          {plain(429, `{"error":{"code":"insufficient_quota","message":"x"}}`), "haiku-4", true},
		"the model itself": {plain(429, quotaModel), "main", true},
		"one of its dates": {plain(429, quotaModel), "main-20260101", true},
		"a longer name":    {plain(429, quotaModel), "main-mini", false},
		"another spelling": {plain(429, quotaModel), "MAIN", true},
	} {
		p := newProvider(t, c.answer)
		s := open(t, Anthropic, p.URL, func(g *Grant) { g.Model, g.SideModels = "main", []string{"haiku-4", "main-mini"} })
		s.post(t, "/v1/messages", `{"model":"`+c.model+`"}`)
		if u := s.settled(); (u.Limit != nil) != c.counts || len(s.limits) == 1 != c.counts {
			t.Errorf("%s: %+v, reported %d times", name, u.Limit, len(s.limits))
		}
	}
}

func TestAliasesMatchModels(t *testing.T) {
	for _, c := range []struct {
		given, asked string
		means        bool
	}{
		{"", "x", true}, {"default", "claude-opus-4-8", true}, {"opus[1m]", "claude-opus-4-8", true}, {"sonnet", "claude-3-5-sonnet-20241022", true},
		{"sonnet", "claude-haiku-4-5", false}, {"flash", "gemini-2.5-flash", true}, {"flash", "gemini-2.5-flash-lite", false}, {"flash-lite", "gemini-2.5-flash-lite", true},
		{"pro", "gemini-3-pro-preview", true}, {"gpt-5", "gpt-5-mini", false}, {"claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true},
		{"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", true}, {"m", "flim", false}, {"anthropic/claude-opus-5", "anthropic/claude-opus-5", true},
	} {
		if got := (Grant{Model: c.given}).means(c.asked); got != c.means {
			t.Errorf("%s for %s: %v", c.asked, c.given, got)
		}
	}
}

// One call is refused. Another begins after it and is answered, but has not ended.
func TestLaterAnswerEndsALimit(t *testing.T) {
	hold := make(chan struct{})
	p := newProvider(t, plain(429, quotaModel), plain(200, okMessage), func(w http.ResponseWriter, r *http.Request) {
		sse(ev("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"hi"}`))(w, r)
		<-hold
		panic(http.ErrAbortHandler)
	})
	s := open(t, Anthropic, p.URL, func(g *Grant) { g.Model, g.SideModels = "main", []string{"small"} })
	s.post(t, "/v1/messages", `{"model":"main"}`)
	s.post(t, "/v1/messages", `{"model":"small"}`)
	if u := s.Usage(); u.Limit == nil || u.Turns != 1 {
		t.Errorf("after the answer of another model: %+v", u)
	}
	resp, err := http.DefaultClient.Do(s.request(t, "POST", "/v1/messages", `{"model":"main","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Limit != nil {
		t.Errorf("while it is answered: %+v", u)
	}
	close(hold)
	resp.Body.Close()
}

// A call is refused after a later call was answered.
func TestEarlierCallsRefusalIsIgnored(t *testing.T) {
	first, hold := make(chan struct{}), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		close(first)
		<-hold
		plain(429, quotaModel)(w, r)
	}, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, nil)
	r := s.request(t, "POST", "/v1/messages", `{"model":"m"}`)
	over := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		over <- err
	}()
	<-first
	s.post(t, "/v1/messages", `{"model":"m"}`)
	close(hold)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if u := s.settled(); u.Limit != nil || len(s.limits) != 0 || !strings.Contains(s.log.String(), `"counts":false`) {
		t.Errorf("%+v", u.Limit)
	}
}

// Stop reasons are the same for all protocols. Calls that are not main calls do not count.
func TestLastMainAnswerDecidesTheEnding(t *testing.T) {
	const responses, messages, chat, gemini = "/v1/responses", "/v1/messages", "/v1/chat/completions", "/v1beta/models/m:generateContent"
	for name, c := range map[string]struct {
		protocol, path string
		answer         http.HandlerFunc
		want           policy.Ending
		empty          bool
	}{
		"stop":             {OpenAI, chat, plain(200, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`), policy.Completed, false},
		"tool":             {OpenAI, chat, plain(200, `{"choices":[{"message":{"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"tool_calls"}]}`), policy.Completed, false},
		"length":           {OpenAI, chat, plain(200, `{"choices":[{"message":{"content":"hi"},"finish_reason":"length"}]}`), policy.CutOff, false},
		"filter":           {OpenAI, chat, plain(200, `{"choices":[{"message":{"content":"hi"},"finish_reason":"content_filter"}]}`), policy.NoAnswer, false},
		"empty":            {OpenAI, chat, plain(200, `{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`), policy.NoAnswer, true},
		"responses length": {OpenAI, responses, plain(200, `{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"text":"hi"}]}]}`), policy.CutOff, false},
		"responses filter": {OpenAI, responses, plain(200, `{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"text":"hi"}]}]}`), policy.NoAnswer, false},
		"reasoning only":   {OpenAI, responses, plain(200, `{"object":"response","status":"completed","output":[{"type":"reasoning"}]}`), policy.NoAnswer, true},
		"messages length":  {Anthropic, messages, plain(200, `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"max_tokens"}`), policy.CutOff, false},
		"messages refusal": {Anthropic, messages, plain(200, `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"refusal"}`), policy.NoAnswer, false},
		"gemini length":    {Gemini, gemini, plain(200, `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"MAX_TOKENS"}]}`), policy.CutOff, false},
		"gemini safety":    {Gemini, gemini, plain(200, `{"candidates":[{"finishReason":"SAFETY"}]}`), policy.NoAnswer, false},
		"gemini blocked":   {Gemini, gemini, plain(200, `{"promptFeedback":{"blockReason":"OTHER"}}`), policy.NoAnswer, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, c.answer)
			s := open(t, c.protocol, p.URL, func(g *Grant) { g.Model = "m" })
			s.post(t, c.path, `{"model":"m","tools":[{"type":"function","name":"f"}]}`)
			// Calls for another model or without tools are not main calls.
			other := strings.Replace(c.path, "models/m", "models/n", 1)
			for _, body := range []string{`{"model":"n","tools":[{"type":"function","name":"f"}]}`, `{"model":"m"}`} {
				if c.protocol == Gemini && body == `{"model":"m"}` {
					other = c.path
				}
				s.post(t, other, body)
			}
			u := s.settled()
			if u.Last.Ending != c.want || u.Last.Empty != c.empty || u.Limit != nil {
				t.Errorf("%+v, want %q; the limit is %+v", u.Last, c.want, u.Limit)
			}
		})
	}
}
