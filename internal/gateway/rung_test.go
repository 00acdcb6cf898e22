package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
)

// script is what a model says in one answer, for any protocol.
type script struct {
	thinking, text, tool string // tool is the name of the tool that is called
	cut                  bool   // the stream ends before the answer does
}

// wire writes a script as a protocol's stream, and reads a stream back strictly.
type wire struct {
	protocol string
	path     string
	request  string
	stream   func(id string, s script) []string
	check    func(events []string) (reply, error)
}

// reply is an answer that an agent read from a stream.
type reply struct {
	script
	input, output int64
}

func wires() map[string]wire {
	return map[string]wire{
		"responses": {OpenAI, "/v1/responses", `{"model":"gpt-5.2","stream":true,"store":false,"tools":[{"type":"function","name":"sh"}],"input":[{"role":"user","content":"go"}]}`, streamResponses, checkResponses},
		"chat":      {OpenAI, "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{}],"messages":[{"role":"user","content":"go"}]}`, streamChat, checkChat},
		"messages":  {Anthropic, "/v1/messages", `{"model":"m","stream":true,"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2048},"tools":[{}],"messages":[{"role":"user","content":"go"}]}`, streamMessages, checkMessages},
		"gemini":    {Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", `{"tools":[{}],"contents":[{"role":"user","parts":[{"text":"go"}]}]}`, streamGemini, checkGemini},
	}
}

// Every scripted answer reports this usage.
const scriptInput, scriptOutput = 100, 20

func withNoAnswer(most int) func(*Grant) {
	return func(g *Grant) { g.NoAnswerBytes = most }
}

// eventsOf returns the data of a stream's events.
func eventsOf(stream string) []string {
	var events []string
	for _, e := range strings.Split(stream, "\n\n") {
		if d := dataOf([]byte(e + "\n")); d != nil {
			events = append(events, string(d))
		}
	}
	return events
}

// answered returns the answer after the signs of life.
func answered(w wire, body string) string {
	for alive := forms[kindOf(w)].alive; strings.HasPrefix(body, alive); {
		body = strings.TrimPrefix(body, alive)
	}
	return body
}

func TestGoodStreamPassesUnchanged(t *testing.T) {
	for name, w := range wires() {
		for _, good := range []script{{text: "a short answer"}, {thinking: "hm", tool: "sh"}, {thinking: strings.Repeat("x", 40), text: "yes", tool: "sh"}} {
			stream := w.stream("a", good)
			p := newProvider(t, sse(stream...))
			s := open(t, w.protocol, p.URL, withNoAnswer(100))
			if _, body := s.post(t, w.path, w.request); answered(w, body) != strings.Join(stream, "") {
				t.Errorf("%s: %s", name, body)
			}
			if u := s.settled(); u.NoAnswer.Times != 0 || u.Turns != 1 || u.Input != scriptInput || u.Output != scriptOutput {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}

func TestEmptyAnswerIsRetriedOnce(t *testing.T) {
	for name, w := range wires() {
		for _, c := range []struct {
			first, second script
			recovered     int
		}{
			{script{}, script{text: "the answer"}, 1},
			{script{thinking: "long thoughts"}, script{thinking: "more", tool: "sh"}, 1},
			{script{}, script{}, 0},
			{script{thinking: "x"}, script{thinking: "y"}, 0},
		} {
			p := newProvider(t, sse(w.stream("a", c.first)...), sse(w.stream("b", c.second)...))
			s := open(t, w.protocol, p.URL, func(g *Grant) {
				g.NoAnswerBytes = 1000
				for _, model := range []string{"gpt-5.2", "m"} {
					g.Provider.Prices = append(g.Provider.Prices, config.Price{Model: model, Input: 10_000, CachedInput: 10_000, Output: 100_000})
				}
			})
			_, body := s.post(t, w.path, w.request)
			got, err := w.check(eventsOf(answered(w, body)))
			want := reply{c.second, scriptInput, scriptOutput}
			if err != nil || got != want {
				t.Errorf("%s: %+v, want %+v, error %v\n%s", name, got, want, err, body)
			}
			u := s.settled()
			counted := Usage{Requests: u.Requests, Turns: u.Turns, CostUSD: u.CostUSD, CostKnown: u.CostKnown, NoAnswer: u.NoAnswer}
			counted.Input, counted.Output, counted.Estimated = u.Input, u.Output, u.Estimated
			both := Usage{Requests: 2, Turns: 1, CostUSD: 6, CostKnown: true}
			both.NoAnswer = SecondTries{1, c.recovered, scriptInput + scriptOutput, scriptInput + scriptOutput, 3, 3}
			both.Input, both.Output = 2*scriptInput, 2*scriptOutput
			if diff := cmp.Diff(both, counted); diff != "" {
				t.Errorf("%s: usage (-want +got)\n%s", name, diff)
			}
			if second := p.requests()[1].body; !strings.Contains(second, nudge) {
				t.Errorf("%s: the second try is %s", name, second)
			}
		}
	}
}

// The answer never ends. Reasoning has no limit.
func TestLongProseEndsTheAttempt(t *testing.T) {
	long := strings.Repeat("I could do this ", 30)
	for name, w := range wires() {
		for what, c := range map[string]struct {
			script script
			want   bool
		}{
			"prose":                      {script{text: long, cut: true}, true},
			"reasoning, and then a tool": {script{thinking: long, tool: "sh"}, false},
			"reasoning, and then a text": {script{thinking: long, text: "Done."}, false},
			"a tool after less":          {script{text: long[:150], tool: "sh"}, false},
		} {
			ends := make(chan struct{})
			p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
				sse(w.stream("a", c.script)...)(rw, r)
				if c.want {
					<-r.Context().Done() // it never ends
				}
				close(ends)
			})
			var reports atomic.Int32
			s := open(t, w.protocol, p.URL, func(g *Grant) {
				g.NoAnswerBytes = 200
				g.OnFruitless = func(why string, effort bool) {
					if reports.Add(1); !effort || !strings.Contains(why, "200 bytes of prose") {
						t.Errorf("%s: %q, %v", name, why, effort)
					}
				}
			})
			body, err := s.tries(t, w.path, w.request)
			<-ends
			if c.want { // an agent that asks again before it is killed must not continue in a finished attempt
				if resp, said := s.post(t, w.path, w.request); resp.StatusCode != http.StatusForbidden {
					t.Errorf("%s, %s: the next call is answered with %d %s", name, what, resp.StatusCode, said)
				}
			}
			u := s.settled()
			if reports.Load() == 1 != c.want || err != nil != c.want {
				t.Errorf("%s, %s: reported %d times, %v after %s", name, what, reports.Load(), err, body)
			}
			if n := len(p.requests()); n != 1 || u.NoAnswer != (SecondTries{}) {
				t.Errorf("%s, %s: %d requests, second tries %+v, want one request only", name, what, n, u.NoAnswer)
			}
			if u.Output == 0 {
				t.Errorf("%s, %s: no output was counted", name, what)
			}
			if got := answered(w, body); !strings.HasPrefix(strings.Join(w.stream("a", c.script), ""), got) || !c.want && len(got) == 0 {
				t.Errorf("%s, %s: %s", name, what, got)
			}
		}
	}
}

// Log-probabilities are read if the operator requests them and the provider reports them.
func TestLowConfidenceEndsTheAttempt(t *testing.T) {
	wire := wires()
	streams := map[string]func(p float64) string{
		"chat": func(p float64) string {
			return data(fmt.Sprintf(`{"choices":[{"delta":{"content":"so "},"logprobs":{"content":[{"token":"so ","logprob":%g}]}}]}`, p))
		},
		"responses": func(p float64) string {
			return ev("response.output_text.delta", fmt.Sprintf(`"delta":"so ","logprobs":[{"token":"so ","logprob":%g}]`, p))
		},
		"gemini": func(p float64) string {
			return data(fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":"so "}]},"logprobsResult":{"chosenCandidates":[{"token":"so ","logProbability":%g}]}}]}`, p))
		},
	}
	asks := map[string]string{"chat": `"logprobs":true`, "responses": `"include":["message.output_text.logprobs"]`, "gemini": `"generationConfig":{"responseLogprobs":true}`}
	for name, event := range streams {
		for what, c := range map[string]struct {
			sure float64 // log-probability of each token
			n    int
			want int32
		}{"not sure": {-3, 100, 1}, "sure": {-0.1, 100, 0}, "not sure of a few words": {-3, 60, 0}, "nonsense": {7, 100, 0}} {
			w, reports := wire[name], atomic.Int32{}
			events := slices.Repeat([]string{event(c.sure)}, c.n)
			p := newProvider(t, sse(append(events, w.stream("a", script{text: "."})...)...))
			s := open(t, w.protocol, p.URL, func(g *Grant) {
				g.NoAnswerBytes, g.MinConfidence = 1<<20, 0.2
				g.OnFruitless = func(why string, _ bool) { reports.Add(1); t.Log(why) }
			})
			_, _ = s.tries(t, w.path, w.request) // some break off
			if s.settled(); reports.Load() != c.want || !strings.Contains(p.requests()[0].body, asks[name]) {
				t.Errorf("%s, %s: reported %d times; requested with %s", name, what, reports.Load(), p.requests()[0].body)
			}
		}
	}
}

func TestFailedSecondTryReturnsTheFirstAnswer(t *testing.T) {
	broken := func(w http.ResponseWriter, r *http.Request) {
		sse(": hello\n\n")(w, r)
		panic(http.ErrAbortHandler)
	}
	failures := map[string]http.HandlerFunc{
		"status":   plain(400, `{"error":{"message":"no such effort"}}`),
		"limit":    plain(429, `{"error":{"type":"usage_limit_reached","message":"x"}}`),
		"no sse":   plain(200, `{}`),
		"broken":   broken,
		"redirect": plain(302, ``),
	}
	for name, w := range wires() {
		failures["error event"] = sse(data(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded","code":503}}`))
		for kind, failure := range failures {
			for _, first := range []script{{}, {thinking: "hm"}} {
				stream := w.stream("a", first)
				p := newProvider(t, sse(stream...), failure)
				s := open(t, w.protocol, p.URL, withNoAnswer(100))
				_, body := s.post(t, w.path, w.request)
				if answered(w, body) != strings.Join(stream, "") {
					t.Errorf("%s, %s: %s", name, kind, body)
				}
				u := s.settled()
				if u.NoAnswer.Times != 1 || u.NoAnswer.Recovered != 0 || u.Turns != 1 || u.Input != scriptInput {
					t.Errorf("%s, %s: %+v", name, kind, u)
				}
				if kind == "limit" && (u.Limit == nil || len(s.limits) != 1) {
					t.Errorf("%s: the limit of the second try was lost: %+v", name, u)
				}
			}
		}
	}
}

func TestForbiddenSecondTryIsSkipped(t *testing.T) {
	for name, w := range wires() {
		for why, c := range map[string]struct {
			change  func(*Grant)
			request string
			first   []string
		}{
			"no tools":        {withNoAnswer(10), strings.ReplaceAll(w.request, `"tools":[`, `"toolz":[`), w.stream("a", script{})},
			"off":             {nil, w.request, w.stream("a", script{})},
			"budget":          {func(g *Grant) { g.NoAnswerBytes, g.MaxTokens = 10, scriptInput }, w.request, w.stream("a", script{})},
			"the breaker":     {breakerOpensAfterOne(), w.request, w.stream("a", script{})},
			"error in stream": {withNoAnswer(10), w.request, []string{data(`{"type":"error","error":{"message":"x"}}`)}},
		} {
			p := newProvider(t, sse(c.first...))
			s := open(t, w.protocol, p.URL, c.change)
			if _, body := s.post(t, w.path, c.request); answered(w, body) != strings.Join(c.first, "") {
				t.Errorf("%s, %s: %s", name, why, body)
			}
			if u := s.settled(); len(p.requests()) != 1 || u.NoAnswer != (SecondTries{}) || u.BudgetStopped != "" {
				t.Errorf("%s, %s: %+v", name, why, u)
			}
		}
	}
}

// The provider ends its stream before the answer's end, orderly or by a reset.
func TestBrokenAnswerIsALostConnection(t *testing.T) {
	for name, w := range wires() {
		for why, grant := range map[string]func(*Grant){"watched": withNoAnswer(1000), "unwatched": nil} {
			for _, reset := range []bool{false, true} {
				cut := w.stream("a", script{thinking: "x", cut: true})
				p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
					if sse(cut...)(rw, r); reset {
						resets(rw)
					}
				})
				s := open(t, w.protocol, p.URL, grant)
				body, err := s.tries(t, w.path, w.request)
				if err == nil || answered(w, body) != strings.Join(cut, "") {
					t.Errorf("%s, %s, reset %t: %v after %s", name, why, reset, err, body)
				}
				if u := s.settled(); len(p.requests()) != 1 || u.NoAnswer != (SecondTries{}) || u.Turns != 0 {
					t.Errorf("%s, %s, reset %t: %+v", name, why, reset, u)
				}
			}
		}
	}
}

func breakerOpensAfterOne() func(*Grant) {
	asked := 0
	return func(g *Grant) {
		g.NoAnswerBytes = 10
		g.Limited = limitedAfter(&asked)
	}
}

// The provider waits until the agent received a sign of life, and then calls a tool.
func TestDelayedAnswerSendsSignsOfLife(t *testing.T) {
	for name, w := range wires() {
		seen := make(chan struct{})
		stream := w.stream("a", script{thinking: "hm", tool: "sh"})
		p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
			sse(stream[0])(rw, r)
			<-seen
			sse(stream[1:]...)(rw, r)
		})
		s := open(t, w.protocol, p.URL, withNoAnswer(1000))
		resp, err := http.DefaultClient.Do(s.request(t, "POST", w.path, w.request))
		if err != nil {
			t.Fatal(err)
		}
		want := forms[kindOf(w)].alive
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		close(seen)
		rest, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || answered(w, string(rest)) != strings.Join(stream, "") {
			t.Errorf("%s: %v after %s", name, err, rest)
		}
	}
}

func kindOf(w wire) callKind {
	r, err := http.NewRequest("POST", "http://x"+w.path, nil)
	if err != nil {
		return ""
	}
	found, _ := routeOf(r)
	return found.kind
}

// The agent hangs up during the first or the second try.
func TestDelayedAnswerEndsIfTheAgentHangsUp(t *testing.T) {
	for name, w := range wires() {
		for second, first := range [][]string{w.stream("a", script{thinking: "hm", cut: true}), w.stream("a", script{})} {
			started, ended := make(chan struct{}), make(chan struct{})
			hang := func(rw http.ResponseWriter, r *http.Request) {
				sse(": hello\n\n")(rw, r)
				if second == 0 {
					sse(first...)(rw, r)
				}
				close(started)
				<-r.Context().Done()
				close(ended)
			}
			answers := [][]http.HandlerFunc{{hang}, {sse(first...), hang}}[second]
			p := newProvider(t, answers...)
			s := open(t, w.protocol, p.URL, withNoAnswer(1000))
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := http.DefaultClient.Do(s.request(t, "POST", w.path, w.request).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			<-started
			cancel()
			<-ended
			resp.Body.Close()
			if u := s.settled(); u.Requests != second+1 || u.NoAnswer.Times != second || u.NoAnswer.Recovered != 0 {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}

func TestThinkingModeIsSwitched(t *testing.T) {
	say := `{"content":[{"text":"` + nudge + `","type":"input_text"}],"role":"developer","type":"message"}`
	text := `{"text":"` + nudge + `","type":"text"}`
	for _, c := range []struct {
		kind       callKind
		model      string
		body, want string // want "" if the mode cannot be switched
	}{
		{responses, "gpt-5", `{"input":[],"reasoning":{"effort":"high","summary":"auto"}}`, `{"input":[` + say + `],"reasoning":{"effort":"minimal","summary":"auto"}}`},
		{responses, "gpt-5.2", `{"input":"go"}`, `{"input":[{"content":"go","role":"user","type":"message"},` + say + `],"reasoning":{"effort":"none"}}`},
		{responses, "o3", `{"input":[],"reasoning":{"effort":"none"}}`, `{"input":[` + say + `],"reasoning":{"effort":"medium"}}`},
		{responses, "o3", `{"input":[],"store":true}`, ``},
		{responses, "o3", `{"input":[],"previous_response_id":"r"}`, ``},
		{chat, "m", `{"messages":[1],"reasoning_effort":"minimal"}`, `{"messages":[1,{"content":"` + nudge + `","role":"user"}],"reasoning_effort":"medium"}`},
		{chat, "m", `{"messages":[1],"chat_template_kwargs":{"enable_thinking":true}}`, `{"chat_template_kwargs":{"enable_thinking":false},"messages":[1,{"content":"` + nudge + `","role":"user"}]}`},
		{chat, "m", `{"messages":[1],"n":2}`, ``},
		{chat, "own", `{"messages":[1],"reasoning_effort":"medium"}`, `{"messages":[1,{"content":"` + nudge + `","role":"user"}],"reasoning_effort":"tiny"}`},
		{chat, "own", `{"messages":[1],"reasoning_effort":"tiny"}`, `{"messages":[1,{"content":"` + nudge + `","role":"user"}],"reasoning_effort":"medium"}`},
		{messages, "m", `{"messages":[{"role":"user","content":"go"}],"thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}}`, `{"messages":[{"content":[{"text":"go","type":"text"},` + text + `],"role":"user"}],"thinking":{"type":"disabled"}}`},
		{messages, "m", `{"max_tokens":3000,"temperature":0,"messages":[{"role":"assistant","content":"go"}]}`, `{"max_tokens":3000,"messages":[{"role":"assistant","content":"go"},{"content":[` + text + `],"role":"user"}],"thinking":{"budget_tokens":1500,"type":"enabled"}}`},
		{messages, "m", `{"max_tokens":3000,"output_config":{"effort":"low"},"messages":[{"role":"user","content":[]}]}`, `{"max_tokens":3000,"messages":[{"content":[` + text + `],"role":"user"}],"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}`},
		{messages, "claude-opus-4-7", `{"model":"claude-opus-4-7","max_tokens":3000,"messages":[{"role":"user","content":[]}]}`, `{"max_tokens":3000,"messages":[{"content":[` + text + `],"role":"user"}],"model":"claude-opus-4-7","thinking":{"type":"adaptive"}}`},
		{messages, "claude-sonnet-4-5-20250929", `{"model":"claude-sonnet-4-5-20250929","max_tokens":3000,"messages":[{"role":"user","content":[]}]}`, `{"max_tokens":3000,"messages":[{"content":[` + text + `],"role":"user"}],"model":"claude-sonnet-4-5-20250929","thinking":{"budget_tokens":1500,"type":"enabled"}}`},
		{messages, "m", `{"max_tokens":1024,"messages":[{"role":"user","content":"go"}]}`, ``},
		{generate, "gemini-2.5-flash", `{"contents":[1]}`, `{"contents":[1,{"parts":[{"text":"` + nudge + `"}],"role":"user"}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`},
		{generate, "gemini-2.5-pro", `{"contents":[1],"generationConfig":{"thinkingConfig":{"thinkingBudget":128}}}`, `{"contents":[1,{"parts":[{"text":"` + nudge + `"}],"role":"user"}],"generationConfig":{"thinkingConfig":{"thinkingBudget":-1}}}`},
		{generate, "gemini-3-pro", `{"contents":[1],"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}}`, `{"contents":[1,{"parts":[{"text":"` + nudge + `"}],"role":"user"}],"generationConfig":{"thinkingConfig":{"thinkingLevel":"high"}}}`},
	} {
		got, ok := request{body: c.body, model: c.model}.opposite(c.kind, config.Provider{Efforts: map[string][]string{"own": {"tiny", "medium"}}})
		if ok != (c.want != "") || ok && !sameJSON(t, got, c.want) {
			t.Errorf("%s of %s: %s", c.body, c.model, got)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := decoded(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := decoded(b)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(one, other)
}

func decoded(text string) (map[string]any, error) {
	var m map[string]any
	err := json.Unmarshal([]byte(text), &m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return m, nil
}
