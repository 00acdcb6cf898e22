package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestFruitlessAttemptIsReportedOnce(t *testing.T) {
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
		want    int32 // reports in twelve calls; four calls cause none
	}{
		"empty answers":               {[]string{nothing}, 200, request, 1},
		"pages that are not answers":  {[]string{page}, 200, request, 1},
		"a text at times":             {[]string{nothing, nothing, nothing, nothing, text}, 200, request, 0},
		"calls of tools":              {[]string{tool}, 200, request, 0},
		"the same request":            {[]string{tool}, 200, func(int) string { return request(1) }, 1},
		"the same request, in turns":  {[]string{tool}, 200, func(i int) string { return request(i % 2) }, 0},
		"the same request, refused":   {[]string{`{"error":{"message":"overloaded"}}`}, 529, func(int) string { return request(1) }, 0},
		"an error within the answers": {[]string{`{"error":{"message":"overloaded"}}`}, 200, func(int) string { return request(1) }, 0},
	} {
		for calls, want := range map[int]int32{fruitless - 1: 0, 12: tc.want} {
			n := 0
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) { plain(tc.status, tc.answers[n%len(tc.answers)])(w, r) })
			var reports atomic.Int32
			s := open(t, OpenAI, p.URL, func(g *Grant) { g.OnFruitless = func(string, bool) { reports.Add(1) } })
			for ; n < calls; n++ {
				s.post(t, "/v1/chat/completions", tc.request(n))
			}
			if s.settled(); reports.Load() != want {
				t.Errorf("%s: reported %d times in %d calls, want %d", name, reports.Load(), calls, want)
			}
		}
	}
}

// An empty answer and its second try count as one: the agent sees only one.
func TestEmptyStreamsAreRecognisedInEachProtocol(t *testing.T) {
	for name, w := range wires() {
		empty, thinks, works := sse(w.stream("a", script{})...), sse(w.stream("a", script{thinking: "hm"})...), sse(w.stream("b", script{tool: "sh"})...)
		for _, tc := range []struct {
			what          string
			first, second http.HandlerFunc
			most          int // NoAnswerBytes; 0 disables second tries
			same          bool
			want          int32
		}{
			{"empty", empty, empty, 0, false, 1},
			{"empty, twice each", empty, empty, 1000, false, 1},
			{"only thoughts, twice each", thinks, thinks, 1000, false, 1},
			{"empty, twice each, to the same request", empty, empty, 1000, true, 1},
			{"no event", sse(), sse(), 1000, false, 1},
			{"no stream", plain(200, "{}"), plain(200, "{}"), 1000, false, 1},
			{"a page", plain(200, "<html>sign in</html>"), plain(200, "<html>sign in</html>"), 1000, false, 1},
			{"empty, and then the call of a tool", empty, works, 1000, false, 0},
		} {
			var tries, reports atomic.Int32
			p := newProvider(t, func(out http.ResponseWriter, r *http.Request) {
				if tries.Add(1)%2 == 1 {
					tc.first(out, r)
				} else {
					tc.second(out, r)
				}
			})
			s := open(t, w.protocol, p.URL, func(g *Grant) {
				g.NoAnswerBytes = tc.most
				g.OnFruitless = func(string, bool) { reports.Add(1) }
			})
			for n := range 2 * fruitless {
				request := w.request
				if !tc.same {
					request = strings.Replace(request, `"go"`, fmt.Sprintf(`"go %d"`, n), 1)
				}
				s.post(t, w.path, request)
			}
			if s.settled(); min(reports.Load(), 1) != tc.want {
				t.Errorf("%s: %s: reported %d times, want %d", name, tc.what, reports.Load(), tc.want)
			}
		}
	}
}

// Abandoned calls are not booked, so no budget limits them.
func TestAbandonedCallsCountAsFruitless(t *testing.T) {
	started := make(chan struct{})
	p := newProvider(t, func(_ http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-r.Context().Done()
	})
	reports := make(chan string, 1)
	s := open(t, OpenAI, p.URL, func(g *Grant) { g.OnFruitless = func(why string, _ bool) { reports <- why } })
	for n := range fruitless {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		if resp, err := http.DefaultClient.Do(s.request(t, "POST", "/v1/responses", fmt.Sprintf(`{"input":"%d"}`, n)).WithContext(ctx)); err == nil {
			resp.Body.Close()
		}
	}
	if why := <-reports; !strings.Contains(why, "hung up") {
		t.Errorf("reported %q", why)
	}
	if u := s.settled(); u.Input+u.Output != 0 || u.Requests != fruitless {
		t.Errorf("%+v", u)
	}
}
