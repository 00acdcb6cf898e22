package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

const testKey = "sk-provider-SECRET-0123456789abcdef"

// net/http waits half a second in closeWriteAndWait after it has refused an oversized body.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// sent is a request as the provider saw it.
type sent struct {
	path, query string
	header      http.Header
	body        string
}

// provider is a small provider on loopback. It records requests and sends the test's answers, the last one
// repeatedly.
type provider struct {
	*httptest.Server
	mu      sync.Mutex
	seen    []sent
	answers []http.HandlerFunc
}

func newProvider(t testing.TB, answers ...http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{answers: answers}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		n := len(p.seen)
		p.seen = append(p.seen, sent{r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Clone(), string(body)})
		p.mu.Unlock()
		p.answers[min(n, len(p.answers)-1)](w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) requests() []sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]sent(nil), p.seen...)
}

// stand is a gateway with one session in front of a provider.
type stand struct {
	*Gateway
	*Session
	url    string
	log    *lockedBuffer
	limits chan policy.Limit
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

const OpenAI, Anthropic, Gemini = config.OpenAI, config.Anthropic, config.Google

func neverLimited(context.Context) (policy.Limit, bool) { return policy.Limit{}, false }

func testNow() time.Time { return time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC) }

// open starts a gateway for the provider at base; change may alter the grant.
func open(t testing.TB, protocol string, base string, change func(*Grant)) *stand {
	t.Helper()
	s := &stand{log: &lockedBuffer{}, limits: make(chan policy.Limit, 64)}
	transport := &http.Transport{DisableCompression: true}
	s.Gateway = New(Options{Now: testNow, Log: zerolog.New(s.log).Level(zerolog.DebugLevel), Transport: transport})
	if protocol == OpenAI && !strings.HasSuffix(base, "/v1") {
		base += "/v1"
	}
	g := Grant{Attempt: "o/r#1/1", Provider: config.Provider{Name: "test", Protocol: protocol, BaseURL: base, Key: config.NewSecret(testKey)}, Limited: neverLimited, OnLimit: func(l policy.Limit) { s.limits <- l }}
	if change != nil {
		change(&g)
	}
	s.Session = s.Gateway.Open(g)
	var err error
	if s.url, err = s.Session.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Session.Close()
		transport.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
		if strings.Contains(s.log.String(), testKey) || strings.Contains(s.log.String(), s.Token()) {
			t.Error("a secret is in the log")
		}
	})
	return s
}

// request builds a call of the session; headers are name, value, name, value.
func (s *stand) request(t testing.TB, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Token())
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do sends a request and returns the answer with its whole body.
func do(t testing.TB, r *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("after %q: %v", body, err)
	}
	return resp, string(body)
}

func (s *stand) post(t testing.TB, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	return do(t, s.request(t, "POST", path, body, headers...))
}

// tries sends a request whose answer may break off, and returns the result.
func (s *stand) tries(t testing.TB, path, body string) (string, error) {
	t.Helper()
	resp, err := http.DefaultClient.Do(s.request(t, "POST", path, body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// sse answers with a stream of whole events.
func sse(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

// data returns an event without a name, ev one named by its type.
func data(text string) string { return "data: " + text + "\n\n" }

func ev(kind, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "}\n\n"
}

// plain answers with a status, a body and headers.
func plain(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// settled returns the usage after all calls have ended.
func (s *stand) settled() Usage { return s.Session.Close() }
