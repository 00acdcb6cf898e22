package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// rawProvider answers each request with the same bytes, headers included, and closes the connection.
func rawProvider(t *testing.T, answer string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					io.Copy(io.Discard, r.Body)
					io.WriteString(conn, answer)
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

func chunked(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(body), body) }

func inZip(body string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, body)
	z.Close()
	return b.String()
}

var figure = regexp.MustCompile(`((?:_tokens|TokenCount)":)\d+`)

// lie is a provider's false answer, built from a good one, and the expected report.
type lie struct {
	answer func(stream string) string
	last   policy.Ending
	spoke  bool // a model answered
	// guessed means that usage is estimated, since the provider's figures are impossible
	guessed bool
}

func lies() map[string]lie {
	const events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	head := func(header, body string) string { return "HTTP/1.1 200 OK\r\n" + header + "\r\n" + body }
	framed := func(edit func(string) string) func(string) string {
		return func(stream string) string { return events + "\r\n" + edit(stream) }
	}
	as := func(header string) func(string) string {
		return func(stream string) string { return head(header, stream) }
	}
	figures := func(n string) func(string) string {
		return framed(func(s string) string {
			return figure.ReplaceAllString(s, "${1}"+n)
		})
	}
	good := func(answer func(string) string) lie { return lie{answer: answer, last: policy.Completed, spoke: true} }
	lost := func(answer func(string) string) lie { return lie{answer: answer, last: policy.Disconnected} }
	says := func(answer string) func(string) string { return func(string) string { return answer } }
	return map[string]lie{
		// Allowed by HTTP but rarely sent.
		"a trailer": good(func(s string) string {
			return events + "Transfer-Encoding: chunked\r\nTrailer: X-Ratelimit-Reset, Set-Cookie\r\n\r\n" + chunked(s) + "X-Ratelimit-Reset: 1\r\nSet-Cookie: a=b\r\n\r\n"
		}),
		"early hints": good(func(s string) string {
			return "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nSet-Cookie: a=b\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + events + "\r\n" + s
		}),
		"lines that end with CR":   good(framed(func(s string) string { return strings.ReplaceAll(s, "\n", "\r") })),
		"lines that end with CRLF": good(framed(func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") })),
		"a byte order mark":        good(framed(func(s string) string { return byteOrderMark + s })),
		"data over many lines":     good(framed(func(s string) string { return strings.ReplaceAll(s, `{"`, "{\ndata: \"") })),
		"comments, numbers and retries": good(framed(func(s string) string {
			return ": hi\n\nid: 1\nretry: 5\n\n" + strings.ReplaceAll(s, "data:", ": no\nid: 1\ndata:")
		})),
		"no type":                good(as("")),
		"a page's type":          good(as("Content-Type: text/html\r\n")),
		"a type in capitals":     good(as("CONTENT-TYPE: TEXT/EVENT-STREAM\r\n")),
		"JSON's type":            good(as("Content-Type: application/json\r\n")),
		"JSON's type and a mark": good(func(s string) string { return head("Content-Type: application/json\r\n", byteOrderMark+s) }),
		"a gzip bomb": good(func(s string) string {
			return events + "Content-Encoding: gzip\r\n\r\n" + inZip(": "+strings.Repeat("\x00", 20<<20)+"\n\n"+s)
		}),
		"a header of half a megabyte": good(func(s string) string {
			return events + "X-Ratelimit-Note: " + strings.Repeat("x", 512<<10) + "\r\n\r\n" + s
		}),
		// Data after the end.
		"the same answer again": good(framed(func(s string) string { return s + s })),
		"an error after the end": good(framed(func(s string) string {
			return s + "data: [DONE]\n\n" + data(`{"type":"error","error":{"code":429,"type":"rate_limit_error","message":"slow down"}}`)
		})),
		"a length beyond the end": good(func(s string) string { return events + "Content-Length: 999999\r\n\r\n" + s }),
		// Impossible figures.
		"figures beyond any model":  {answer: figures("1e300"), last: policy.Completed, spoke: true, guessed: true},
		"figures that overflow":     {answer: figures("9223372036854775808"), last: policy.Completed, spoke: true, guessed: true},
		"negative figures":          {answer: figures("-7"), last: policy.Completed},
		"figures that are not JSON": {answer: figures("NaN"), last: "", spoke: true, guessed: true},
		"figures in text":           {answer: figures(`"100"`), last: policy.Completed},
		"figures in the wrong place": {answer: framed(func(s string) string {
			return data(`{"type":"other","usage_total":{"input_tokens":5},"output_tokens":1e9}`) + s
		}), last: policy.Completed, spoke: true},
		// Other data instead of an answer.
		"to switch protocols":      lost(says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello")),
		"the status 099":           lost(says("HTTP/1.1 099 Nothing\r\nContent-Length: 0\r\n\r\n")),
		"the status 000":           lost(says("HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n")),
		"a status in words":        lost(says("HTTP/1.1 good OK\r\n\r\n")),
		"an old HTTP version":      lost(says("HTTP/0.9\r\n")),
		"two lengths":              lost(says(events + "Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello")),
		"a negative length":        lost(says(events + "Content-Length: -1\r\n\r\nhello")),
		"a length that cuts":       lost(func(s string) string { return events + "Content-Length: 9\r\n\r\n" + s }),
		"garbage for a chunk":      lost(says(events + "Transfer-Encoding: chunked\r\n\r\nZZZ\r\nhello")),
		"a chunk beyond 64 bits":   lost(says(events + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello")),
		"an unknown framing":       lost(says(events + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")),
		"headers of 11 megabytes":  lost(says(events + "X: " + strings.Repeat("x", 11<<20) + "\r\n\r\n")),
		"a header without a name":  lost(says(events + ": x\r\n\r\n")),
		"brotli":                   lost(func(s string) string { return events + "Content-Encoding: br\r\n\r\n" + s }),
		"zstd":                     lost(func(s string) string { return events + "Content-Encoding: zstd\r\n\r\n" + s }),
		"gzip in gzip":             lost(func(s string) string { return events + "Content-Encoding: gzip, gzip\r\n\r\n" + inZip(inZip(s)) }),
		"gzip only in the header":  lost(func(s string) string { return events + "Content-Encoding: gzip\r\n\r\n" + s }),
		"gzip that breaks off":     lost(func(s string) string { return events + "Content-Encoding: gzip\r\n\r\n" + inZip(s)[:20] }),
		"a stream of another kind": lost(framed(func(string) string { return data(`{"jsonrpc":"2.0","result":{}}`) })),
	}
}

// TestLyingProviderIsHandled tries each lie in each protocol, with and without delayed answers. A usable answer
// works; anything else is reported as a lost connection. Nothing is booked that did not happen.
func TestLyingProviderIsHandled(t *testing.T) {
	for what, c := range lies() {
		for name, w := range wires() {
			for _, held := range []int{0, 1 << 20} {
				t.Run(fmt.Sprintf("%s/%s/%d", what, name, held), func(t *testing.T) {
					t.Parallel()
					s := open(t, w.protocol, rawProvider(t, c.answer(strings.Join(w.stream("a", script{text: "Done."}), ""))), withNoAnswer(held))
					resp, err := http.DefaultClient.Do(s.request(t, "POST", w.path, w.request))
					if err != nil && c.last != policy.Disconnected {
						t.Fatal(err)
					}
					if err != nil { // the connection is lost for the agent, too
						resp = &http.Response{StatusCode: 200, Body: http.NoBody}
					}
					body, _ := io.ReadAll(resp.Body) // some answers break off
					resp.Body.Close()
					u := s.settled()
					if resp.StatusCode != 200 && !strings.Contains(string(body), "the provider cannot be reached: ") || len(resp.Trailer) > 0 || resp.Header.Get("Set-Cookie") != "" {
						t.Errorf("the agent sees %d %.300s, trailers %v", resp.StatusCode, body, resp.Trailer)
					}
					if c.last == policy.Completed && c.spoke && resp.StatusCode == 200 && !strings.Contains(string(body), "Done.") {
						t.Errorf("the answer was lost: %.300q", body)
					}
					if c.last != "" && u.Last.Ending != c.last || u.Limit != nil {
						t.Errorf("the last answer was classified as %q (%s), want %q; the limit is %+v", u.Last.Ending, u.Last.Why, c.last, u.Limit)
					}
					switch {
					case !c.spoke && u.Input+u.Output > 0, c.guessed && u.Estimated != u.Input+u.Output, u.Input+u.Output > 1000:
						t.Errorf("booked %+v", u.Tokens)
					case c.spoke && !c.guessed && (u.Input != scriptInput || u.Output != scriptOutput || u.Estimated != 0):
						t.Errorf("booked %+v, want the answer's", u.Tokens)
					}
				})
			}
		}
	}
}

// TestProvidersSpeakHTTP2 answers each protocol over HTTP/2: completely, with trailers on both sides, and broken off.
func TestProvidersSpeakHTTP2(t *testing.T) {
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			p := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if asked++; r.ProtoMajor != 2 || len(r.Trailer) > 0 {
					t.Errorf("the provider sees %s with trailers %v", r.Proto, r.Trailer)
				}
				rw.Header().Set("Trailer", "X-Ratelimit-Reset")
				if asked == 1 {
					sse(w.stream("a", script{text: "Done."})...)(rw, r)
					rw.Header().Set("X-Ratelimit-Reset", "1")
					return
				}
				sse(w.stream("a", script{text: "half a sent", cut: true})...)(rw, r)
				resets(rw)
			}))
			p.EnableHTTP2 = true
			p.StartTLS()
			defer p.Close()
			s := open(t, w.protocol, p.URL, withNoAnswer(1<<20))
			transport := p.Client().Transport.(*http.Transport).Clone()
			transport.DisableCompression, transport.ForceAttemptHTTP2 = true, true
			transport.TLSClientConfig = &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs}
			defer transport.CloseIdleConnections()
			s.Gateway.Transport = transport
			for _, want := range []policy.Ending{policy.Completed, policy.Disconnected} {
				r := s.request(t, "POST", w.path, "")
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(w.request)), -1
				r.Trailer = http.Header{"Openai-Organization": {"another"}}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				for s.Usage().Last.Ending != want {
					select {
					case <-t.Context().Done():
						t.Fatalf("%+v; want %s: %.300s", s.Usage().Last, want, body)
					case <-time.After(5 * time.Millisecond):
					}
				}
				if len(resp.Trailer) > 0 {
					t.Errorf("the agent sees %v", resp.Trailer)
				}
			}
		})
	}
}

// TestLyingClientIsHandled sends bytes that no HTTP library sends.
func TestLyingClientIsHandled(t *testing.T) {
	const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	post := func(headers, body string) string {
		return "POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: TOKEN\r\n" + headers + "\r\n" + body
	}
	sized := func(body string) string { return post(fmt.Sprintf("Content-Length: %d\r\n", len(body)), body) }
	nested := func(before, after string, n int) string {
		return sized(`{"model":"m","messages":` + strings.Repeat(before, n) + strings.Repeat(after, n) + `}`)
	}
	for what, c := range map[string]struct {
		request string
		status  int    // of the answer
		want    string // a part of it
	}{
		"a good one":                   {sized(body), 200, ""},
		"expects 100-continue":         {post(fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n", len(body)), body), 100, "200 OK"},
		"expects something else":       {post("Expect: a miracle\r\nContent-Length: 2\r\n", "{}"), 417, ""},
		"a length and chunks":          {post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)), 200, ""},
		"two lengths":                  {post("Content-Length: 2\r\nContent-Length: 3\r\n", "{} "), 400, ""},
		"an unknown framing":           {post("Transfer-Encoding: identity, chunked\r\n", "0\r\n\r\n"), 501, ""},
		"a request within a request":   {sized(body + sized(body)), 400, "the body is not a JSON object"},
		"a body that ends early":       {post("Content-Length: 999\r\n", body), 400, "the body ended early"},
		"a space before a colon":       {post("Content-Length : 2\r\n", "{}"), 400, ""},
		"a folded line":                {post("X-A: b\r\n Content-Length: 2\r\n", "{}"), 400, ""},
		"two tokens, the second wrong": {post(fmt.Sprintf("X-Api-Key: other\r\nContent-Length: %d\r\n", len(body)), body), 200, ""},
		"another method by header":     {strings.Replace(sized(body), "POST", "GET", 1) + "", 404, "no such path for agents: GET /v1/messages"},
		"two method overrides":         {post(fmt.Sprintf("X-HTTP-Method-Override: DELETE\r\nContent-Length: %d\r\n", len(body)), body), 200, ""},
		"a websocket":                  {post(fmt.Sprintf("Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: %d\r\n", len(body)), body), 200, ""},
		"two slashes":                  {strings.Replace(sized(body), "/v1/", "//v1/", 1), 404, "no such path"},
		"a dot, escaped":               {strings.Replace(sized(body), "/v1/", "/v1/%2e/", 1), 404, "no such path"},
		"a path with ..":               {strings.Replace(sized(body), "/v1/", "/v1/files/../", 1), 404, "no such path"},
		"parameters of a path":         {strings.Replace(sized(body), "messages", "messages;v=1", 1), 404, "no such path"},
		"an absolute URL":              {strings.Replace(sized(body), "/v1/", "http://169.254.169.254/v1/", 1), 200, ""},
		"an authority":                 {"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\nX-Api-Key: TOKEN\r\nConnection: close\r\n\r\n", 404, "no such path"},
		"headers of 100 KiB":           {post("X-A: "+strings.Repeat("x", 100<<10)+"\r\nContent-Length: 2\r\n", "{}"), 431, ""},
		"a model twice":                {sized(`{"model":"m","model":"dear","messages":[]}`), 400, "appears twice"},
		"tools twice, by escapes":      {sized(`{"tools":[{"name":"a"}],"to\u006fls":[{"type":"web_search_20250305"}]}`), 400, "appears twice"},
		"a tool with two types":        {sized(`{"tools":[{"type":"web_search_20250305","type":"custom"}]}`), 400, "are not allowed"},
		"a list for a tool":            {sized(`{"tools":[[{"type":"web_search_20250305"}]]}`), 400, "are not allowed"},
		"a text for a tool":            {sized(`{"tools":["web_search_20250305"]}`), 400, "are not allowed"},
		"an object for messages":       {sized(`{"messages":{"content":{"source":{"type":"url","url":"http://x"}}}}`), 400, "in messages is not allowed"},
		"an object for a system":       {sized(`{"system":{"content":[{"source":{"type":"file","file_id":"f"}}]}}`), 400, "in system is not allowed"},
		"100,000 brackets":             {nested("[", "]", 100_000), 400, "the body is not a JSON object"},
		"100,000 objects":              {nested(`{"content":`, `}`, 100_000), 400, "the body is not a JSON object"},
		"60,000 objects with a file":   {sized(`{"messages":[{"file_id":1},` + strings.Repeat(`{"content":`, 60_000) + "1" + strings.Repeat("}", 60_000) + `]}`), 400, "in messages is not allowed"},
		"60,000 objects before a file": {sized(`{"messages":[` + strings.Repeat(`{"content":`, 60_000) + "1" + strings.Repeat("}", 60_000) + `,{"url":1}]}`), 400, "levels in messages"},
		"60,000 tools in tools":        {sized(`{"tools":[` + strings.Repeat(`{"tools":[`, 30_000) + strings.Repeat("]}", 30_000) + `]}`), 400, "are not allowed"},
		"not a number":                 {sized(`{"max_tokens":NaN}`), 400, "the body is not a JSON object"},
		"a number without end":         {sized(`{"model":"m","max_tokens":1e999,"messages":[]}`), 200, ""},
		"half a character":             {sized("{\"model\":\"m\xff\",\"messages\":[]}"), 200, ""},
		"a name with line breaks":      {sized(`{"model":"m\r\nX-Api-Key: x","messages":[]}`), 200, ""},
		"a list":                       {sized("[]"), 400, "the body is not a JSON object"},
		"nothing":                      {sized(""), 400, "the body is not a JSON object"},
		"two documents":                {sized(body + body), 400, "the body is not a JSON object"},
		"a byte order mark":            {sized(byteOrderMark + body), 400, "the body is not a JSON object"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, plain(200, okMessage))
			s := open(t, Anthropic, p.URL, nil)
			conn := dial(t, s)
			began := time.Now()
			io.WriteString(conn, strings.ReplaceAll(c.request, "TOKEN", s.Token()))
			if c.want == "the body ended early" {
				conn.(*net.TCPConn).CloseWrite()
			}
			answer, _ := io.ReadAll(conn) // unread bytes cause a reset
			if !strings.HasPrefix(string(answer), fmt.Sprintf("HTTP/1.1 %d ", c.status)) || !strings.Contains(string(answer), c.want) {
				t.Errorf("%.400s", answer)
			}
			for _, r := range p.requests() {
				if r.path != "/v1/messages" || r.header.Get("X-Api-Key") != testKey || r.header.Get("Upgrade")+r.header.Get("X-Http-Method-Override") != "" {
					t.Errorf("the provider sees %s %v", r.path, r.header)
				}
			}
			u := s.settled()
			if asked := c.status <= 200; asked != (len(p.requests()) == 1) || asked != (u.Input+u.Output > 0) {
				t.Errorf("%d requests, booked %+v", len(p.requests()), u.Tokens)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// FuzzRequests checks that each body is refused with a message, or passed on as JSON that a second try can change.
func FuzzRequests(f *testing.F) {
	for _, w := range wires() {
		f.Add([]byte(w.request))
	}
	f.Add([]byte(`{"model":"m","tools":[{"type":"namespace","tools":[{}]},[]],"input":[{"t\u006fols":[{"type":"mcp"}]}],"stream_options":7,"stream":true,"messages":[]}`))
	f.Add([]byte(`{"input":"x","messages":[{"content":7}],"contents":[{}],"reasoning":3,"context_management":{"edits":[{"type":"clear_thinking"}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for kind, path := range map[callKind]string{responses: OpenAI, chat: OpenAI, messages: Anthropic, countTokens: Anthropic, generate: Gemini} {
			r, err := readRequest(route{kind: kind, protocol: path, model: "m", stream: true}, string(body), Grant{})
			if err != nil {
				if err.Error() == "" {
					t.Error("refused without a message")
				}
				continue
			}
			sure := kind.sureOf(r.body)
			turned, _ := r.opposite(kind, config.Provider{})
			for _, out := range []string{r.body, sure, turned} {
				if _, ok := parsed(out); !ok {
					t.Errorf("%s: %q became %q", kind, body, out)
				}
			}
		}
	})
}
