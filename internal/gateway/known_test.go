package gateway

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Property: what was looked at in one request and is left out of the look at the next changes nothing of what is read of
// that, of what the provider gets, and of what is refused.
func TestALookAtTheRestOfAConversationSeesAllOfIt(t *testing.T) {
	kinds := map[callKind]string{responses: OpenAI, chat: OpenAI, messages: Anthropic, generate: Gemini}
	items := []string{
		`{"role":"user","content":"some \"text\"\n[{"}`, `{"role":"assistant","content":[{"type":"text","text":"x"}]}`, `{}`, ` {"a":[[]]}`, `"text"`, `7`, `[]`, `null`, ``,
		`{"content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}`, `{"parts":[{"fileData":{"fileUri":"gs://x"}}]}`, `{"type":"item_reference"}`,
		`{"type":"additional_tools","tools":[{"type":"function"}]}`, `{"type":"additional_tools","tools":[{"type":"function"},{"type":"mcp"}]}`, `{"tools":{}}`, `{]`, `{"a":1}]`,
	}
	tools := []string{``, `"tools":[{"name":"a"}],`, `"tools":[{"type":"function"},{"type":"web_search"}],`, `"tools":[{"type":"mcp"}],`, `"model":"m",`, `"input":[],`, `"x":[{},{},`, ` `}
	ends := []string{`}`, `,"stream":true}`, `,"messages":[]}`, `,"model":"other"}`, `]}`, ``, ` , "max_tokens" : 7 } `}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]callKind{responses, chat, messages, generate}).Draw(t, "kind")
		r := route{kind: kind, protocol: kinds[kind], model: "m"}
		head := "{" + rapid.SampledFrom(tools).Draw(t, "before") + `"` + growing[kind] + `":[`
		s, all := &Session{}, []string(nil)
		for range 6 {
			if len(all) > 0 && rapid.Bool().Draw(t, "the end is another") {
				all = all[:rapid.IntRange(0, len(all)-1).Draw(t, "kept")]
			}
			good := rapid.IntRange(0, 9).Draw(t, "good") > 0
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				all = append(all, rapid.SampledFrom(items[:map[bool]int{true: 4, false: len(items)}[good]]).Draw(t, "item"))
			}
			body := head + strings.Join(all, ",") + "]" + rapid.SampledFrom(ends).Draw(t, "end")
			k := s.knows(kind, body)
			got, err := readRequest(r, body, Grant{Model: "m"}, k)
			want, wantErr := readRequest(r, body, Grant{Model: "m"}, known{})
			learn := got.looked
			got.looked, want.looked = known{}, known{}
			if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%s with %+v:\n%+v, %v; without\n%+v, %v", body, k, got, err, want, wantErr)
			}
			if err == nil {
				s.learns(learn)
			}
		}
	})
}

// TestTheBeginningOfAConversationIsLookedAtOnce also where the end of the last turn was another.
func TestTheBeginningOfAConversationIsLookedAtOnce(t *testing.T) {
	const turn = `{"role":"user","content":"some text"}`
	body := func(turns int, last string) string {
		return `{"model":"m","messages":[` + strings.Repeat(turn+",", turns) + last + `],"max_tokens":9}`
	}
	s := &Session{}
	for i, body := range []string{body(5, `{"content":"marked"}`), body(7, turn), body(7, `{"content":"another"}`), body(6, turn)} {
		k := s.knows(messages, body)
		if rest := len(k.rest(body)); i > 0 && rest > len(body)-3*len(turn) {
			t.Errorf("request %d: %d of %d bytes are looked at", i, rest, len(body))
		}
		if s.knows(chat, body) != (known{}) || s.knows(messages, strings.Replace(body, "some", "same", 1)) != (known{}) {
			t.Errorf("request %d is known of another kind, or with other words", i)
		}
		r, err := readRequest(route{kind: messages, protocol: Anthropic}, body, Grant{}, k)
		if err != nil {
			t.Fatal(err)
		}
		s.learns(r.looked)
	}
}
