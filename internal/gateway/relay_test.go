package gateway

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

const nodeToken = "token-of-the-worker-node"

// relayTo starts a gateway for other nodes, over TLS, in front of a provider. It returns the provider as a node's
// configuration has it, and the node's transport.
func relayTo(t *testing.T, p config.Provider) (onNode config.Provider, transport http.RoundTripper) {
	t.Helper()
	keys := &config.Server{Providers: []config.Provider{p}}
	nodes := []config.GatewayNode{
		{Name: "other", Token: config.NewSecret("token-of-another-node")},
		{Name: "worker", Token: config.NewSecret(nodeToken)},
	}
	out := &http.Transport{DisableCompression: true}
	log := &lockedBuffer{}
	relay := New(Options{Now: testNow, Log: zerolog.New(log), Transport: out}).Relay(nodes, func() *config.Server { return keys })
	server := httptest.NewUnstartedServer(relay)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		out.CloseIdleConnections()
		if strings.Contains(log.String(), testKey) || strings.Contains(log.String(), nodeToken) {
			t.Error("a secret is in the gateway's log")
		}
	})
	onNode = config.Provider{
		Name:     p.Name,
		Protocol: p.Protocol,
		Relay:    config.Relay{URL: server.URL + "/" + p.Name, Token: config.NewSecret(nodeToken)},
	}
	return onNode, server.Client().Transport
}

// openOverRelay is like open, but the session is on a node without the key.
func openOverRelay(t *testing.T, protocol, base string, change func(*Grant)) *stand {
	t.Helper()
	if protocol == OpenAI {
		base += "/v1"
	}
	onNode, transport := relayTo(t, config.Provider{Name: "p", Protocol: protocol, BaseURL: base, Key: config.NewSecret(testKey)})
	s := open(t, protocol, base, func(g *Grant) {
		g.Provider = onNode
		if change != nil {
			change(g)
		}
	})
	s.Gateway.Transport = transport
	return s
}

// asNode sends a request to the gateway and returns the answer with its whole body.
func asNode(t *testing.T, transport http.RoundTripper, method, address, token string, body io.Reader) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestNodesCallsGetTheKeyAtTheGateway(t *testing.T) {
	for path, c := range map[string]struct{ protocol, seen, header, key string }{
		"/v1/responses":                       {OpenAI, "/v1/responses", "Authorization", "Bearer " + testKey},
		"/v1/chat/completions":                {OpenAI, "/v1/chat/completions", "Authorization", "Bearer " + testKey},
		"/v1/messages?beta=true":              {Anthropic, "/v1/messages", "X-Api-Key", testKey},
		"/v1/messages/count_tokens?beta=true": {Anthropic, "/v1/messages/count_tokens", "X-Api-Key", testKey},
		"/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse": {Gemini, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", "X-Goog-Api-Key", testKey},
	} {
		p := newProvider(t, plain(200, `{}`))
		s := openOverRelay(t, c.protocol, p.URL, nil)
		resp, body := s.post(t, path, `{"model":"m"}`, "Cookie", "a=b", "X-Stainless-Lang", "js")
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
			continue
		}
		got := p.requests()[0]
		if got.path != c.seen || got.header.Get(c.header) != c.key || got.header.Get("X-Stainless-Lang") != "js" {
			t.Errorf("%s: the provider saw %+v", path, got)
		}
		_, query, _ := strings.Cut(path, "?")
		if got.query != query {
			t.Errorf("%s: the provider saw the query %q", path, got.query)
		}
		all := fmt.Sprint(got)
		for _, hidden := range []string{s.Token(), nodeToken, "a=b"} {
			if strings.Contains(all, hidden) {
				t.Errorf("%s: %s went to the provider", path, hidden)
			}
		}
	}
}

// The node counts tokens, reads usage windows and masks secrets, as with a key of its own.
func TestNodeReadsAnswersOfTheGateway(t *testing.T) {
	answer := `{"type":"message","role":"assistant","content":[{"type":"text","text":"` + testKey + nodeToken + `"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":3}}`
	p := newProvider(t,
		plain(200, answer, "Anthropic-Ratelimit-Unified-5h-Utilization", "0.92", "Set-Cookie", "a=b", "Ratelimit-Reset", "60"),
		plain(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`),
	)
	var windows []policy.Window
	s := openOverRelay(t, Anthropic, p.URL, func(g *Grant) {
		g.OnWindows = func(w []policy.Window) { windows = append(windows, w...) }
	})
	resp, body := s.post(t, "/v1/messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	if strings.Contains(body, testKey) || strings.Contains(body, nodeToken) || resp.Header.Get("Set-Cookie") != "" {
		t.Errorf("a secret passed: %s %v", body, resp.Header)
	}
	if got := resp.Header.Get("Ratelimit-Reset"); got != "60" {
		t.Errorf("Ratelimit-Reset is %q, want 60", got)
	}
	if u := s.Usage(); u.Tokens.Input != 7 || u.Tokens.Output != 3 {
		t.Errorf("counted %+v, want 7 and 3 tokens", u)
	}
	if len(windows) != 1 || windows[0].Used != 0.92 {
		t.Errorf("read %+v", windows)
	}
	s.post(t, "/v1/messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	if l := <-s.limits; l.Kind != policy.Auth || !strings.Contains(l.Message, "gateway.token, or the key of provider p") {
		t.Errorf("a refused key is %+v", l)
	}
}

func TestEventsPassTheGatewayImmediately(t *testing.T) {
	seen := make(chan struct{})
	words := []string{"one", "two", "three"}
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		for _, text := range words {
			sse(data(text))(w, r)
			<-seen // the next event is sent after this one has arrived
		}
	})
	s := openOverRelay(t, OpenAI, p.URL, nil)
	resp, err := http.DefaultClient.Do(s.request(t, "POST", "/v1/responses", `{"model":"m","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, text := range words {
		got := make([]byte, len(data(text)))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != data(text) {
			t.Fatalf("%q, %v", got, err)
		}
		seen <- struct{}{}
	}
}

// An attempt that ends on the node ends the call at the provider, too.
func TestEndedAttemptEndsItsCallAtTheProvider(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		sse(data("one"))(w, r)
		close(begun)
		<-r.Context().Done()
		close(ended)
	})
	s := openOverRelay(t, OpenAI, p.URL, nil)
	go func() {
		<-begun
		s.Session.Close()
	}()
	_, _ = s.tries(t, "/v1/responses", `{"model":"m","stream":true}`) // cut off
	<-ended
}

func TestGatewayServesOnlyModelCallsOfItsNodes(t *testing.T) {
	p := newProvider(t, plain(200, `{}`))
	onNode, transport := relayTo(t, config.Provider{Name: "p", Protocol: OpenAI, BaseURL: p.URL + "/v1", Key: config.NewSecret(testKey)})
	base := strings.TrimSuffix(onNode.Relay.URL, "/p")
	for _, c := range []struct {
		method, path, token string
		want                int
	}{
		{"POST", "/p/responses", nodeToken, 200},
		{"GET", "/p/models", nodeToken, 200},
		{"POST", "/p/responses", "", 401},
		{"POST", "/p/responses", nodeToken + "x", 401},
		{"POST", "/p/responses", testKey, 401},
		{"POST", "/q/responses", "", 401},
		{"POST", "/q/responses", nodeToken, 404},
		{"GET", "/p/responses", nodeToken, 404},
		{"POST", "/p/models", nodeToken, 404},
		{"POST", "/p/v1/messages", nodeToken, 404},
		{"POST", "/p/files", nodeToken, 404},
		{"DELETE", "/p/responses", nodeToken, 404},
		{"POST", "/p/responses/../files", nodeToken, 404},
		{"POST", "/p/..%2fadmin", nodeToken, 404},
		{"POST", "/p%2fresponses", nodeToken, 404},
		{"POST", "/", nodeToken, 404},
	} {
		resp, body := asNode(t, transport, c.method, base+c.path, c.token, strings.NewReader(`{"model":"m"}`))
		if resp.StatusCode != c.want {
			t.Errorf("%s %s with %q: %d %s, want %d", c.method, c.path, c.token, resp.StatusCode, body, c.want)
		}
	}
	if n := len(p.requests()); n != 2 {
		t.Errorf("%d calls reached the provider, want 2", n)
	}
}

func TestGatewayReportsAnUnreachableProvider(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	redirects := newProvider(t, plain(307, ``, "Location", "/elsewhere"))
	early := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 099 Early\r\nContent-Length: 0\r\n\r\n")
		conn.Close()
	})
	for base, want := range map[string]string{closed.URL: "refused", redirects.URL: "it redirects (307)", early.URL: "status 099"} {
		s := openOverRelay(t, OpenAI, base, nil)
		resp, body := s.post(t, "/v1/responses", `{}`)
		if resp.StatusCode != 502 || !strings.Contains(body, "the gateway reports: ") || !strings.Contains(body, want) {
			t.Errorf("%d %s, want %q", resp.StatusCode, body, want)
		}
		if last := s.Usage().Last; last.Ending != policy.Disconnected {
			t.Errorf("the last call ended %+v, want disconnected", last)
		}
		if len(s.limits) > 0 {
			t.Errorf("an unreachable provider is the limit %+v", <-s.limits)
		}
	}
	p := newProvider(t, plain(200, `{}`))
	onNode, transport := relayTo(t, config.Provider{Name: "p", Protocol: OpenAI, BaseURL: p.URL, Key: config.NewSecret(testKey)})
	body := bytes.NewReader(make([]byte, maxRequest+1))
	resp, _ := asNode(t, transport, "POST", onNode.Relay.URL+"/responses", nodeToken, body)
	if resp.StatusCode != 413 {
		t.Errorf("a body of 64 MiB and 1 byte: %d", resp.StatusCode)
	}
}

func TestNodeListsModelsThroughTheGateway(t *testing.T) {
	for protocol, want := range map[string]sent{
		OpenAI:    {path: "/models"},
		Anthropic: {path: "/v1/models", query: "limit=1000"},
		Gemini:    {path: "/v1beta/models", query: "pageSize=1000"},
	} {
		p := newProvider(t, plain(200, `{"data":[{"id":"m"}]}`))
		onNode, transport := relayTo(t, config.Provider{Name: "p", Protocol: protocol, BaseURL: p.URL, Key: config.NewSecret(testKey)})
		names, err := List(t.Context(), transport, onNode)
		if err != nil || !slices.Equal(names, []string{"m"}) {
			t.Errorf("%s: %v, %v", protocol, names, err)
			continue
		}
		if got := p.requests()[0]; got.path != want.path || got.query != want.query {
			t.Errorf("%s: the provider saw %s?%s", protocol, got.path, got.query)
		}
	}
}

func TestTrailersDoNotPassTheGateway(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Request-Id")
		io.WriteString(w, "{}")
		w.Header().Set("X-Request-Id", testKey)
	})
	onNode, transport := relayTo(t, config.Provider{Name: "p", Protocol: OpenAI, BaseURL: p.URL, Key: config.NewSecret(testKey)})
	resp, body := asNode(t, transport, "POST", onNode.Relay.URL+"/responses", nodeToken, strings.NewReader(`{}`))
	if body != "{}" {
		t.Errorf("the answer is %q", body)
	}
	if len(resp.Trailer) > 0 {
		t.Errorf("the node got the trailers %v", resp.Trailer)
	}
}

// A client without a token sends no body, although it announces one. Its connection ends after headerTime.
func TestUnknownClientCannotKeepAConnection(t *testing.T) {
	t.Parallel()
	p := newProvider(t, plain(200, `{}`))
	onNode, transport := relayTo(t, config.Provider{Name: "p", Protocol: OpenAI, BaseURL: p.URL, Key: config.NewSecret(testKey)})
	u, err := url.Parse(onNode.Relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	trusted := transport.(*http.Transport).TLSClientConfig.RootCAs
	conn, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: trusted, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /p/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "401 Unauthorized") {
		t.Errorf("%q, %v; want 401 and the end of the connection", answer, err)
	}
}
