package gateway

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

func TestAnAttemptThatGetsNowhereIsToldOnce(t *testing.T) {
	const (
		nothing = `{"choices":[{"message":{"role":"assistant","content":"","tool_calls":null},"finish_reason":"stop"}]}`
		text    = `{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`
		tool    = `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"ls"}}]},"finish_reason":"tool_calls"}]}`
		page    = `<html>sign in</html>`
	)
	request := func(i int) string { return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}]}`, i) }
	for name, tc := range map[string]struct {
		answers []string
		status  int
		request func(i int) string
		want    int32 // how often that is told in twelve calls; never in four
	}{
		"empty answers":               {[]string{nothing}, 200, request, 1},
		"pages that are no answer":    {[]string{page}, 200, request, 1},
		"a text now and then":         {[]string{nothing, nothing, nothing, nothing, text}, 200, request, 0},
		"calls of tools":              {[]string{tool}, 200, request, 0},
		"the same request":            {[]string{tool}, 200, func(int) string { return request(1) }, 1},
		"the same request, in turns":  {[]string{tool}, 200, func(i int) string { return request(i % 2) }, 0},
		"the same request, refused":   {[]string{`{"error":{"message":"overloaded"}}`}, 529, func(int) string { return request(1) }, 0},
		"an error within the answers": {[]string{`{"error":{"message":"overloaded"}}`}, 200, func(int) string { return request(1) }, 0},
	} {
		for calls, want := range map[int]int32{fruitless - 1: 0, 12: tc.want} {
			n := 0
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) { plain(tc.status, tc.answers[n%len(tc.answers)])(w, r) })
			var told atomic.Int32
			s := open(t, OpenAI, p.URL, func(g *Grant) { g.OnFruitless = func(string) { told.Add(1) } })
			for ; n < calls; n++ {
				s.post(t, "/v1/chat/completions", tc.request(n))
			}
			if s.settled(); told.Load() != want {
				t.Errorf("%s: told %d times in %d calls, want %d", name, told.Load(), calls, want)
			}
		}
	}
}
