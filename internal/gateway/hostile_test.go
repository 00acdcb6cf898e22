package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// resets breaks the connection after the written bytes.
func resets(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// behaviour describes what a provider, a proxy or a network does, and the expected report.
type behaviour struct {
	answer func(wire) http.HandlerFunc
	last   policy.Ending
	limit  policy.Ending
	in     time.Duration // time until the reset; zero if unknown
	spoke  bool          // a model answered
}

func behaviours() map[string]behaviour {
	const tool = "sh"
	page := func(status int) http.HandlerFunc {
		return plain(status, "<!doctype html><title>Just a moment...</title>")
	}
	refused := func(header ...string) func(wire) http.HandlerFunc {
		return func(wire) http.HandlerFunc { return plain(429, `{"error":{"message":"slow down"}}`, header...) }
	}
	says := func(s script) func(wire) http.HandlerFunc {
		return func(w wire) http.HandlerFunc { return sse(w.stream("a", s)...) }
	}
	always := func(h http.HandlerFunc) func(wire) http.HandlerFunc { return func(wire) http.HandlerFunc { return h } }
	stopped := map[string]map[string]string{ // how each protocol ends an answer by its token limit and by a filter
		"length": {
			"responses": ev("response.incomplete", `"response":{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`),
			"chat":      data(`{"choices":[{"delta":{},"finish_reason":"length"}]}`) + data("[DONE]"),
			"messages":  ev("message_delta", `"delta":{"stop_reason":"max_tokens"}`) + ev("message_stop", ""),
			"gemini":    data(`{"candidates":[{"finishReason":"MAX_TOKENS"}]}`),
		},
		"filter": {
			"responses": ev("response.incomplete", `"response":{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"}}`),
			"chat":      data(`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`) + data("[DONE]"),
			"messages":  ev("message_delta", `"delta":{"stop_reason":"refusal"}`) + ev("message_stop", ""),
			"gemini":    data(`{"candidates":[{"finishReason":"SAFETY"}]}`),
		},
	}
	ends := func(how string) func(wire) http.HandlerFunc {
		return func(w wire) http.HandlerFunc {
			for name, other := range wires() {
				if other.path == w.path {
					return sse(append(w.stream("a", script{text: "half a sent", cut: true}), stopped[how][name])...)
				}
			}
			return nil
		}
	}
	return map[string]behaviour{
		"a page, 200":                {answer: always(page(200)), last: policy.Disconnected},
		"a page, 401":                {answer: always(page(401)), last: policy.Disconnected},
		"a page, 403":                {answer: always(page(403)), last: policy.Disconnected},
		"a page, 502":                {answer: always(page(502)), last: policy.Disconnected},
		"a redirect":                 {answer: always(plain(302, "", "Location", "http://169.254.169.254/")), last: policy.Disconnected},
		"nothing at all":             {answer: always(plain(200, "")), last: policy.Disconnected},
		"no content":                 {answer: always(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }), last: policy.Disconnected},
		"garbage":                    {answer: always(plain(200, "\x00\xff{{{]")), last: policy.Disconnected},
		"garbage events":             {answer: always(sse("data: \x00\xff{]\n\n", "event: x\n\n", ":\n\n", "data:\n\n")), last: policy.Disconnected},
		"brackets without end":       {answer: always(sse("data: " + strings.Repeat("[", 1<<20) + "\n\n")), last: policy.Disconnected},
		"a reset before the headers": {answer: always(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), last: policy.Disconnected},
		"a reset before an event":    {answer: always(func(w http.ResponseWriter, r *http.Request) { sse(": hello\n\n")(w, r); resets(w) }), last: policy.Disconnected},
		"a reset within an answer": {answer: func(w wire) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				sse(w.stream("a", script{text: "half a sent", cut: true})...)(rw, r)
				resets(rw)
			}
		}, last: policy.Disconnected, spoke: true},
		"an orderly end too early":             {answer: says(script{text: "half a sent", cut: true}), last: policy.Disconnected, spoke: true},
		"a compression that was not requested": {answer: always(plain(200, "xx", "Content-Encoding", "br")), last: policy.Disconnected},
		"gzip":                                 {answer: inGzip, last: policy.Completed, spoke: true},
		"gzip, broken":                         {answer: always(plain(200, "no gzip", "Content-Encoding", "gzip")), last: policy.Disconnected},
		"byte by byte":                         {answer: byBytes, last: policy.Completed, spoke: true},
		"429 without a body":                   {answer: always(plain(429, "")), limit: policy.RateLimited},
		"429, seconds":                         {answer: refused("Retry-After", "20"), limit: policy.RateLimited, in: 20 * time.Second},
		"429, a date":                          {answer: refused("Retry-After", testNow().Add(40*time.Second).Format(http.TimeFormat)), limit: policy.RateLimited, in: 40 * time.Second},
		"429, milliseconds to wait":            {answer: refused("Retry-After-Ms", "1500"), limit: policy.RateLimited, in: 1500 * time.Millisecond},
		"429, an epoch":                        {answer: refused("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(testNow().Add(30*time.Second).Unix())), limit: policy.RateLimited, in: 30 * time.Second},
		"429, an epoch in ms":                  {answer: refused("X-RateLimit-Reset", fmt.Sprint(testNow().Add(30*time.Second).UnixMilli())), limit: policy.RateLimited, in: 30 * time.Second},
		"429, a window":                        {answer: refused("X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6m0s"), limit: policy.RateLimited, in: 6 * time.Minute},
		"429, a long wait":                     {answer: refused("Retry-After", "7200"), limit: policy.UsageLimit, in: 2 * time.Hour},
		"429, an invalid wait":                 {answer: refused("Retry-After", "-1", "X-RateLimit-Reset", "NaN"), limit: policy.RateLimited},
		"429, by a CDN's page":                 {answer: always(plain(429, "<html>error 1015</html>", "Retry-After", "30")), limit: policy.RateLimited, in: 30 * time.Second},
		"402":                                  {answer: always(plain(402, `{"error":"no credits"}`)), limit: policy.UsageLimit},
		"500":                                  {answer: always(plain(500, `{"error":{"message":"x"}}`)), limit: policy.Overloaded},
		"503, plain text":                      {answer: always(plain(503, "upstream connect error")), limit: policy.Overloaded},
		"529":                                  {answer: always(plain(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)), limit: policy.Overloaded},
		"401":                                  {answer: always(plain(401, `{"error":{"message":"Incorrect API key provided: sk-provider-***"}}`)), limit: policy.Auth},
		"404":                                  {answer: always(plain(404, `{"error":{"message":"no such model"}}`))},
		"an error within the stream":           {answer: always(sse(data(`{"type":"error","error":{"code":503,"type":"overloaded_error","message":"Overloaded"}}`))), limit: policy.Overloaded},
		"cut by the token limit":               {answer: ends("length"), last: policy.CutOff, spoke: true},
		"stopped by a filter":                  {answer: ends("filter"), last: policy.NoAnswer, spoke: true},
		"empty":                                {answer: says(script{}), last: policy.NoAnswer, spoke: true},
		"reasoning alone":                      {answer: says(script{thinking: "hm, what could it be"}), last: policy.NoAnswer, spoke: true},
		"a word":                               {answer: says(script{text: "Dönê. ✓"}), last: policy.Completed, spoke: true},
		"a call of a tool":                     {answer: says(script{tool: tool}), last: policy.Completed, spoke: true},
		"an answer with a comment of a megabyte": {answer: func(w wire) http.HandlerFunc {
			return sse(append([]string{": " + strings.Repeat("x", 1<<20) + "\n\n"}, w.stream("a", script{text: "Done."})...)...)
		}, last: policy.Completed, spoke: true},
	}
}

// TestHostileProviderIsReported tries each behaviour in each protocol. It checks the last call's ending and limit,
// and that nothing is booked without a model's answer.
func TestHostileProviderIsReported(t *testing.T) {
	for what, c := range behaviours() {
		for name, w := range wires() {
			for _, held := range []int{0, 1 << 20} {
				t.Run(fmt.Sprintf("%s/%s/%d", what, name, held), func(t *testing.T) {
					t.Parallel()
					p := newProvider(t, c.answer(w))
					s := open(t, w.protocol, p.URL, withNoAnswer(held))
					if resp, err := http.DefaultClient.Do(s.request(t, "POST", w.path, w.request)); err == nil {
						body, _ := io.ReadAll(resp.Body)
						resp.Body.Close()
						if strings.Contains(string(body), testKey) || len(resp.Header.Values("Location")) > 0 {
							t.Errorf("the agent sees %.300s", body)
						}
					}
					u := s.settled()
					if u.Last.Ending != c.last {
						t.Errorf("the last answer was classified as %q (%s), want %q", u.Last.Ending, u.Last.Why, c.last)
					}
					got := policy.Limit{}
					if u.Limit != nil {
						got = *u.Limit
					}
					if got.Kind != c.limit || c.in == 0 != got.ResetsAt.IsZero() || c.in != 0 && !got.ResetsAt.Equal(testNow().Add(c.in)) {
						t.Errorf("the limit is %+v, want %s in %s", got, c.limit, c.in)
					}
					if spoke := u.Input+u.Output > 0; spoke != c.spoke {
						t.Errorf("booked %+v, a model answered: %v", u.Tokens, c.spoke)
					}
				})
			}
		}
	}
}

func inGzip(w wire) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.Header().Set("Content-Encoding", "gzip")
		io.WriteString(rw, inZip(strings.Join(w.stream("a", script{text: "Done."}), "")))
	}
}

// byBytes splits a stream inside characters and lines.
func byBytes(w wire) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, b := range []byte(strings.Join(w.stream("a", script{text: "Dönê ✓."}), "")) {
			rw.Write([]byte{b})
			_ = http.NewResponseController(rw).Flush()
		}
	}
}
