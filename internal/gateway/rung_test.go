package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// script is what a model says in one answer, for any protocol.
type script struct {
	thinking, text, tool string // tool is the name of the tool that is called
	cut                  bool   // the stream ends before the answer does
}

// wire writes a script as a protocol's stream, and reads a stream back strictly.
type wire struct {
	protocol Protocol
	path     string
	request  string
	stream   func(id string, s script) []string
	check    func(events []string) (heard, error)
}

// heard is what an agent took from a stream.
type heard struct {
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

// The usage that every scripted answer ends with.
const scriptInput, scriptOutput = 100, 20

func withNoAnswer(most int) func(*Grant) {
	return func(g *Grant) { g.NoAnswer.MaxBytes = most }
}

// eventsOf parts a stream into the data of its events.
func eventsOf(stream string) []string {
	var events []string
	for _, e := range strings.Split(stream, "\n\n") {
		if d := dataOf([]byte(e + "\n")); d != nil {
			events = append(events, string(d))
		}
	}
	return events
}

func TestAStreamIsPassedOnAsItIsWhereNothingIsWrong(t *testing.T) {
	for name, w := range wires() {
		for _, said := range []script{{text: "a short answer"}, {thinking: "hm", tool: "sh"}, {thinking: strings.Repeat("x", 40), text: "yes", tool: "sh"}} {
			stream := w.stream("a", said)
			p := newProvider(t, sse(stream...))
			s := open(t, w.protocol, p.URL, withNoAnswer(100))
			if _, body := s.post(t, w.path, w.request); body != strings.Join(stream, "") {
				t.Errorf("%s: %s", name, body)
			}
			if u := s.settled(); u.NoAnswer.Times != 0 || u.Turns != 1 || u.Input != scriptInput || u.Output != scriptOutput {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}

func TestAnEmptyAnswerIsTriedOnceMore(t *testing.T) {
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
			s := open(t, w.protocol, p.URL, withNoAnswer(1000))
			_, body := s.post(t, w.path, w.request)
			got, err := w.check(eventsOf(body))
			want := heard{script{c.first.thinking + c.second.thinking, c.second.text, c.second.tool, false}, 2 * scriptInput, 2 * scriptOutput}
			if err != nil || got != want {
				t.Errorf("%s: %+v, want %+v, error %v\n%s", name, got, want, err, body)
			}
			u := s.settled()
			if u.NoAnswer != (Fired{1, c.recovered, scriptInput + scriptOutput}) || u.Requests != 2 || u.Turns != 1 || u.Input != 2*scriptInput || u.Output != 2*scriptOutput || u.Estimated != 0 {
				t.Errorf("%s: %+v", name, u)
			}
			if second := p.requests()[1].body; !strings.Contains(second, nudge) {
				t.Errorf("%s: the second try is %s", name, second)
			}
		}
	}
}

func TestALongStretchOfProseIsHaltedAndTriedOnceMore(t *testing.T) {
	for name, w := range wires() {
		for _, first := range []script{{thinking: strings.Repeat("let me think ", 30)}, {text: strings.Repeat("I could do this ", 30)}} {
			halted := make(chan struct{})
			stream := w.stream("a", script{thinking: first.thinking, text: first.text, cut: true})
			p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
				sse(stream...)(rw, r)
				<-r.Context().Done() // it would go on for ever
				close(halted)
			}, sse(w.stream("b", script{text: "Done.", tool: "sh"})...))
			s := open(t, w.protocol, p.URL, withNoAnswer(200))
			_, body := s.post(t, w.path, w.request)
			got, err := w.check(eventsOf(body))
			// What was passed on before the halt is some part of what was said.
			if err != nil || got.tool != "sh" || !strings.HasSuffix(got.text, "Done.") || len(got.thinking+got.text) < 200 {
				t.Errorf("%s: %+v, error %v\n%s", name, got, err, body)
			}
			<-halted
			u := s.settled()
			if u.NoAnswer.Times != 1 || u.NoAnswer.Recovered != 1 || u.Turns != 1 || u.Estimated == 0 || u.Input < scriptInput || u.Output <= scriptOutput {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}

func TestIfTheSecondTryFailsTheFirstAnswerGoesOn(t *testing.T) {
	long := script{text: strings.Repeat("I could do this ", 30)}
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
			for _, first := range []script{{}, {thinking: "hm"}, long} {
				stream := w.stream("a", first)
				p := newProvider(t, sse(stream...), failure)
				s := open(t, w.protocol, p.URL, withNoAnswer(100))
				_, body := s.post(t, w.path, w.request)
				if body != strings.Join(stream, "") {
					t.Errorf("%s, %s: %s", name, kind, body)
				}
				u := s.settled()
				if u.NoAnswer.Times != 1 || u.NoAnswer.Recovered != 0 || u.Turns != 1 || u.Input != scriptInput {
					t.Errorf("%s, %s: %+v", name, kind, u)
				}
				if kind == "limit" && (u.Limit == nil || len(s.limits) != 1) {
					t.Errorf("%s: the limit of the second try got lost: %+v", name, u)
				}
			}
		}
	}
}

func TestTheSecondTryIsLeftOutWhereItMayNotBe(t *testing.T) {
	for name, w := range wires() {
		for why, c := range map[string]struct {
			change  func(*Grant)
			request string
			first   []string
		}{
			"no tools":        {withNoAnswer(10), strings.ReplaceAll(w.request, `"tools":[`, `"toolz":[`), w.stream("a", script{})},
			"off":             {nil, w.request, w.stream("a", script{})},
			"budget":          {func(g *Grant) { g.NoAnswer.MaxBytes, g.MaxTokens = 10, scriptInput }, w.request, w.stream("a", script{})},
			"the breaker":     {breakerOpensAfterOne(), w.request, w.stream("a", script{})},
			"error in stream": {withNoAnswer(10), w.request, []string{data(`{"type":"error","error":{"message":"x"}}`)}},
		} {
			p := newProvider(t, sse(c.first...))
			s := open(t, w.protocol, p.URL, c.change)
			if _, body := s.post(t, w.path, c.request); body != strings.Join(c.first, "") {
				t.Errorf("%s, %s: %s", name, why, body)
			}
			if u := s.settled(); len(p.requests()) != 1 || u.NoAnswer != (Fired{}) {
				t.Errorf("%s, %s: %+v", name, why, u)
			}
		}
	}
}

// TestAnAnswerThatBreaksOffIsALostConnection has the provider end its stream in
// order before its answer is at its end.
func TestAnAnswerThatBreaksOffIsALostConnection(t *testing.T) {
	for name, w := range wires() {
		for why, grant := range map[string]func(*Grant){"watched": withNoAnswer(1000), "not watched": nil} {
			cut := w.stream("a", script{thinking: "x", cut: true})
			p := newProvider(t, sse(cut...))
			s := open(t, w.protocol, p.URL, grant)
			resp, err := http.DefaultClient.Do(s.request(t, "POST", w.path, w.request))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil || string(body) != strings.Join(cut, "") {
				t.Errorf("%s, %s: %v after %s", name, why, err, body)
			}
			if u := s.settled(); len(p.requests()) != 1 || u.NoAnswer != (Fired{}) || u.Turns != 0 {
				t.Errorf("%s, %s: %+v", name, why, u)
			}
		}
	}
}

func breakerOpensAfterOne() func(*Grant) {
	asked := 0
	return func(g *Grant) {
		g.NoAnswer.MaxBytes = 10
		g.Limited = limitedAfter(&asked)
	}
}

func TestTwoAnswersMakeOneWhateverTheyAre(t *testing.T) {
	words := rapid.StringMatching(`[a-z<>&"é ]{0,60}`)
	for name, w := range wires() {
		rapid.Check(t, func(r *rapid.T) {
			first := script{thinking: words.Draw(r, "thinking"), text: words.Draw(r, "text")}
			second := script{thinking: words.Draw(r, "thinking2"), text: words.Draw(r, "text2"), tool: rapid.SampledFrom([]string{"", "sh"}).Draw(r, "tool")}
			at := rapid.IntRange(0, 120).Draw(r, "halt at")
			got, err := w.check(spliced(t, w, first, second, at))
			if err != nil || got.tool != second.tool || !strings.HasSuffix(got.text, second.text) || !strings.HasSuffix(got.thinking, second.thinking) {
				r.Fatalf("%s: %+v, error %v", name, got, err)
			}
		})
	}
}

// spliced joins two scripts without the network: the first is halted as soon as
// it has said more than so many bytes, or at its end.
func spliced(t *testing.T, w wire, first, second script, most int) []string {
	t.Helper()
	kind := kindOf(w)
	join, read := splicerOf(kind), readerOf(kind)
	var a, b answer
	var out strings.Builder
	for _, e := range eventsOf(strings.Join(w.stream("a", first), "")) {
		before := a
		if read([]byte(e), &a); a.ended && !before.ended || a.over {
			break
		}
		join.note([]byte(e))
		out.WriteString("data: " + e + "\n\n")
		if a.prose > most {
			break
		}
	}
	a.settle(0)
	out.Write(join.join())
	for _, e := range eventsOf(strings.Join(w.stream("b", second), "")) {
		read([]byte(e), &b)
		if f := objectOf([]byte(e)); f != nil {
			out.Write(join.second(f, &a, &b))
		} else {
			out.WriteString("data: " + e + "\n\n")
		}
	}
	return eventsOf(out.String())
}

func kindOf(w wire) callKind {
	r, err := http.NewRequest("POST", "http://x"+w.path, nil)
	if err != nil {
		return ""
	}
	found, _ := routeOf(r)
	return found.kind
}

func TestReasoningThatWasHaltedIsTakenOutOfLaterRequests(t *testing.T) {
	for path, c := range map[string][2]string{
		"/v1/messages":  {`{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"` + marker + `"}]},{"role":"assistant","content":[{"type":"thinking","signature":"real"},{"type":"thinking","signature":"` + marker + `"},{"type":"text","text":"` + marker + `"}]}]}`, `{"messages":[{"role":"user","content":"go"},{"content":[{"type":"thinking","signature":"real"},{"type":"text","text":"` + marker + `"}],"role":"assistant"}]}`},
		"/v1/responses": {`{"input":[{"type":"reasoning","encrypted_content":"` + marker + `"},{"type":"message","content":"x"}]}`, `{"input":[{"type":"message","content":"x"}]}`},
	} {
		protocol, body := OpenAI, `{}`
		if path == "/v1/messages" {
			protocol, body = Anthropic, okMessage
		}
		p := newProvider(t, plain(200, body))
		s := open(t, protocol, p.URL, nil)
		s.post(t, path, c[0])
		if got := p.requests()[0].body; got != c[1] {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestAHaltedTurnGoesOnWithoutThinking has the agent send results of tools after
// an answer whose reasoning was halted.
func TestAHaltedTurnGoesOnWithoutThinking(t *testing.T) {
	halted := `{"role":"assistant","content":[{"type":"thinking","signature":"` + marker + `"},{"type":"tool_use","id":"a"}]}`
	const result, own, tool = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`, `{"role":"user","content":"go"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"b"}]}`
	const remind = `{"role":"user","content":[{"type":"text","text":"remember"}]}`
	for name, c := range map[string]struct {
		turns []string
		off   bool
	}{
		"the next request":      {[]string{own, halted, result}, true},
		"with a reminder":       {[]string{own, halted, result, remind}, true},
		"later in the turn":     {[]string{own, halted, result, tool, result}, true},
		"the user speaks again": {[]string{own, halted, result, tool, own}, false},
		"in the turn after":     {[]string{own, halted, own, tool, result}, false},
	} {
		p := newProvider(t, plain(200, okMessage))
		s := open(t, Anthropic, p.URL, nil)
		s.post(t, "/v1/messages", `{"thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},"messages":[`+strings.Join(c.turns, ",")+`]}`)
		got := p.requests()[0].body
		if strings.Contains(got, `"thinking":{"type":"disabled"}`) != c.off || strings.Contains(got, "clear_thinking") == c.off || strings.Contains(got, marker) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestTheThinkingModeIsTurnedRound(t *testing.T) {
	say := `{"content":[{"text":"` + nudge + `","type":"input_text"}],"role":"developer","type":"message"}`
	text := `{"text":"` + nudge + `","type":"text"}`
	for _, c := range []struct {
		kind       callKind
		model      string
		body, want string // want "" means that it cannot be turned
	}{
		{responses, "gpt-5", `{"input":[],"reasoning":{"effort":"high","summary":"auto"}}`, `{"input":[` + say + `],"reasoning":{"effort":"minimal","summary":"auto"}}`},
		{responses, "gpt-5.2", `{"input":"go"}`, `{"input":[{"content":"go","role":"user","type":"message"},` + say + `],"reasoning":{"effort":"none"}}`},
		{responses, "o3", `{"input":[],"reasoning":{"effort":"none"}}`, `{"input":[` + say + `],"reasoning":{"effort":"medium"}}`},
		{responses, "o3", `{"input":[],"store":true}`, ``},
		{responses, "o3", `{"input":[],"previous_response_id":"r"}`, ``},
		{chat, "m", `{"messages":[1],"reasoning_effort":"minimal"}`, `{"messages":[1,{"content":"` + nudge + `","role":"user"}],"reasoning_effort":"medium"}`},
		{chat, "m", `{"messages":[1],"chat_template_kwargs":{"enable_thinking":true}}`, `{"chat_template_kwargs":{"enable_thinking":false},"messages":[1,{"content":"` + nudge + `","role":"user"}]}`},
		{chat, "m", `{"messages":[1],"n":2}`, ``},
		{messages, "m", `{"messages":[{"role":"user","content":"go"}],"thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}}`, `{"messages":[{"content":[{"text":"go","type":"text"},` + text + `],"role":"user"}],"thinking":{"type":"disabled"}}`},
		{messages, "m", `{"max_tokens":3000,"temperature":0,"messages":[{"role":"assistant","content":"go"}]}`, `{"max_tokens":3000,"messages":[{"role":"assistant","content":"go"},{"content":[` + text + `],"role":"user"}],"thinking":{"budget_tokens":1500,"type":"enabled"}}`},
		{messages, "m", `{"max_tokens":3000,"output_config":{"effort":"low"},"messages":[{"role":"user","content":[]}]}`, `{"max_tokens":3000,"messages":[{"content":[` + text + `],"role":"user"}],"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}`},
		{messages, "m", `{"model":"claude-opus-4-7","max_tokens":3000,"messages":[{"role":"user","content":[]}]}`, `{"max_tokens":3000,"messages":[{"content":[` + text + `],"role":"user"}],"model":"claude-opus-4-7","thinking":{"type":"adaptive"}}`},
		{messages, "m", `{"model":"claude-sonnet-4-5-20250929","max_tokens":3000,"messages":[{"role":"user","content":[]}]}`, `{"max_tokens":3000,"messages":[{"content":[` + text + `],"role":"user"}],"model":"claude-sonnet-4-5-20250929","thinking":{"budget_tokens":1500,"type":"enabled"}}`},
		{messages, "m", `{"max_tokens":1024,"messages":[{"role":"user","content":"go"}]}`, ``},
		{generate, "gemini-2.5-flash", `{"contents":[1]}`, `{"contents":[1,{"parts":[{"text":"` + nudge + `"}],"role":"user"}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`},
		{generate, "gemini-2.5-pro", `{"contents":[1],"generationConfig":{"thinkingConfig":{"thinkingBudget":128}}}`, `{"contents":[1,{"parts":[{"text":"` + nudge + `"}],"role":"user"}],"generationConfig":{"thinkingConfig":{"thinkingBudget":-1}}}`},
		{generate, "gemini-3-pro", `{"contents":[1],"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}}`, `{"contents":[1,{"parts":[{"text":"` + nudge + `"}],"role":"user"}],"generationConfig":{"thinkingConfig":{"thinkingLevel":"high"}}}`},
	} {
		got, ok := opposite(request{body: []byte(c.body), model: c.model}, c.kind)
		if string(got) != c.want || ok != (c.want != "") {
			t.Errorf("%s of %s: %s", c.body, c.model, got)
		}
	}
}

func jsonOf(v any) string { return string(encoded(v)) }

func decoded(text string) (map[string]any, error) {
	var m map[string]any
	err := json.Unmarshal([]byte(text), &m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return m, nil
}

func FuzzSplicers(f *testing.F) {
	for _, w := range wires() {
		events := eventsOf(strings.Join(w.stream("a", script{thinking: "hm", text: "so", tool: "sh"}), ""))
		for i := range events {
			f.Add([]byte(events[i]), []byte(events[len(events)-1-i]))
		}
	}
	f.Add([]byte(`{"type":"content_block_start","index":1e12}`), []byte(`{"type":"message_delta","usage":3}`))
	f.Add([]byte(`{"type":"response.output_item.added","output_index":1e12,"item":7}`), []byte(`{"type":"response.completed","response":{"output":7,"usage":[]}}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		for _, kind := range []callKind{responses, chat, messages, generate} {
			join, read := splicerOf(kind), readerOf(kind)
			var a, b answer
			read(one, &a)
			join.note(one)
			join.note(one)
			joined := join.join()
			read(two, &b)
			if e := objectOf(two); e != nil {
				joined = append(joined, join.second(e, &a, &b)...)
			}
			for _, e := range eventsOf(string(joined)) {
				if !json.Valid([]byte(e)) {
					t.Errorf("%s: %s", kind, e)
				}
			}
			opposite(request{body: two, model: "gpt-5"}, kind)
			if json.Valid(two) {
				whole := `{"input":` + string(two) + `,"messages":` + string(two) + `,"x":"` + marker + `"}`
				if got := unmarked(kind, []byte(whole)); !json.Valid(got) {
					t.Errorf("%s: %s", kind, got)
				}
			}
		}
	})
}
