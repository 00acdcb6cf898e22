package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
)

// TestConcurrentCallsStayWithinTheBudget sends almost as many concurrent calls as an agent may make. Each call alone
// uses twice the budget.
func TestConcurrentCallsStayWithinTheBudget(t *testing.T) {
	for name, set := range map[string]func(*Grant){
		"tokens": func(g *Grant) { g.MaxTokens = 1000 },
		"money": func(g *Grant) {
			g.MaxCostUSD, g.Provider.Prices = 0.001, []config.Price{{Model: "m", Input: 1, Output: 1}}
		},
	} {
		p := newProvider(t, plain(200, `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":1000}}`))
		s := open(t, Anthropic, p.URL, set)
		var all sync.WaitGroup
		for range maxCalls - 2 {
			r := s.request(t, "POST", "/v1/messages", `{"model":"m"}`)
			all.Go(func() {
				if resp, err := http.DefaultClient.Do(r); err == nil {
					resp.Body.Close()
				}
			})
		}
		all.Wait()
		if u := s.settled(); u.Input+u.Output != 2000 || u.Requests != 1 || u.Refused != maxCalls-3 || u.BudgetStopped == "" {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

func TestWaitingCallEndsWithItsClient(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		close(held)
		<-hold
		plain(200, okMessage)(w, r)
	})
	s := open(t, Anthropic, p.URL, func(g *Grant) { g.MaxTokens = 100 })
	var all sync.WaitGroup
	r := s.request(t, "POST", "/v1/messages", `{}`)
	all.Go(func() {
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	})
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	second := s.request(t, "POST", "/v1/messages", `{}`).WithContext(ctx)
	all.Go(func() {
		if _, err := http.DefaultClient.Do(second); !errors.Is(err, context.Canceled) {
			t.Errorf("the second call: %v", err)
		}
	})
	cancel()
	close(hold)
	all.Wait()
	if u := s.settled(); u.BudgetStopped != "" || u.Requests != 1 {
		t.Errorf("%+v", u)
	}
}

// Agents hang up before the headers, before an event and after one.
func TestOnlyStartedAnswersAreCounted(t *testing.T) {
	body := `{"model":"m","stream":true,"messages":"` + strings.Repeat("x", 4000) + `"}`
	for name, c := range map[string]struct {
		events []string
		want   int64
	}{
		"before the headers": {nil, 0},
		"before an event":    {[]string{": hello\n\n", ev("ping", "")}, 0},
		"after a word":       {[]string{ev("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"hi"}`)}, int64(len(body) / 4)},
	} {
		for _, held := range []int{0, 1000} {
			started := make(chan struct{})
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				if c.events != nil {
					sse(c.events...)(w, r)
				}
				close(started)
				<-r.Context().Done()
			})
			s := open(t, Anthropic, p.URL, withNoAnswer(held))
			ctx, cancel := context.WithCancel(t.Context())
			request := s.request(t, "POST", "/v1/messages", body).WithContext(ctx)
			go func() {
				<-started
				if c.want == 0 {
					cancel()
				}
			}()
			if resp, err := http.DefaultClient.Do(request); err == nil {
				io.ReadFull(resp.Body, make([]byte, 1)) // so that the gateway has read the word
				cancel()
				resp.Body.Close()
			}
			if u := s.settled(); u.Input != c.want || u.Estimated != c.want+u.Output {
				t.Errorf("%s, %d: %+v, want %d", name, held, u, c.want)
			}
		}
	}
}

// The streams end within a tool call or encrypted reasoning.
func TestBrokenStreamCountsToolArguments(t *testing.T) {
	long := strings.Repeat("y", 4000)
	for name, c := range map[string]struct {
		protocol string
		path     string
		event    string
	}{
		"responses":        {OpenAI, "/v1/responses", ev("response.function_call_arguments.delta", `"delta":"`+long+`"`)},
		"responses whole":  {OpenAI, "/v1/responses", ev("response.output_item.done", `"item":{"type":"function_call","arguments":"`+long+`"}`)},
		"responses sealed": {OpenAI, "/v1/responses", ev("response.output_item.done", `"item":{"type":"reasoning","encrypted_content":"`+long+`"}`)},
		"chat":             {OpenAI, "/v1/chat/completions", data(`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"` + long + `"}}]}}]}`)},
		"messages":         {Anthropic, "/v1/messages", ev("content_block_delta", `"index":0,"delta":{"type":"input_json_delta","partial_json":"`+long+`"}`)},
		"messages sealed":  {Anthropic, "/v1/messages", ev("content_block_start", `"index":0,"content_block":{"type":"redacted_thinking","data":"`+long+`"}`)},
		"gemini":           {Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", data(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":"` + long + `"}}}]}}]}`)},
	} {
		p := newProvider(t, sse(c.event))
		s := open(t, c.protocol, p.URL, nil)
		_, _ = s.tries(t, c.path, `{"model":"m","stream":true}`) // the stream breaks off
		if u := s.settled(); u.Output < 1000 || u.Output > 1010 {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

func TestMaximumOutputIsReadFromTheRequest(t *testing.T) {
	for _, c := range []struct {
		kind callKind
		body string
		want int64
	}{
		{messages, `{"max_tokens":64000}`, 64000},
		{messages, `{"max_output_tokens":1}`, usualOutput},
		{chat, `{"max_tokens":1,"max_completion_tokens":500,"n":3}`, 1500},
		{chat, `{"n":1e9,"max_tokens":1e12}`, maxOutput * maxAnswers},
		{responses, `{"max_output_tokens":7}`, 7},
		{generate, `{"maxOutputTokens":1,"generationConfig":{"maxOutputTokens":9,"candidateCount":2}}`, 18},
		{generate, `{"generation_config":{"max_output_tokens":9}}`, 9},
		{generate, `{"generationConfig":7}`, usualOutput},
	} {
		if got := fieldsOf(gjson.Parse(c.body)).mostOutput(c.kind); got != c.want {
			t.Errorf("%s of %s: %d, want %d", c.body, c.kind, got, c.want)
		}
	}
}

func TestLargeBodyArrivesWhole(t *testing.T) {
	body := `{"model":"m","messages":"` + strings.Repeat("x", largeRequest) + `"}`
	p := newProvider(t, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, nil)
	for range 2 { // the second on a reused connection
		if resp, text := s.post(t, "/v1/messages", body); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
	}
	for _, r := range p.requests() {
		if r.body != body {
			t.Errorf("%d bytes arrived of %d", len(r.body), len(body))
		}
	}
}

func TestCacheWritesHaveTheirOwnPrice(t *testing.T) {
	for _, c := range []struct {
		price config.Price
		kept  string
		want  float64
	}{
		{config.Price{Model: "m", Input: 4}, ``, 1000 * 5},
		{config.Price{Model: "m", Input: 4, CacheWrite: 6}, ``, 1000 * 6},
		{config.Price{Model: "m", Input: 4}, `,"cache_creation":{"ephemeral_1h_input_tokens":500}`, 500*5 + 500*8},
	} {
		p := newProvider(t, plain(200, fmt.Sprintf(`{"type":"message","stop_reason":"end_turn","usage":{"cache_creation_input_tokens":1000%s}}`, c.kept)))
		s := open(t, Anthropic, p.URL, func(g *Grant) { g.Provider.Prices = []config.Price{c.price} })
		s.post(t, "/v1/messages", `{"model":"m"}`)
		if u := s.settled(); math.Abs(u.CostUSD-c.want/1e6) > 1e-12 {
			t.Errorf("%+v%s: %g", c.price, c.kept, u.CostUSD)
		}
	}
}
