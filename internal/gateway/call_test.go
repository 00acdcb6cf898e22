package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
)

const okMessage = `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":7}}`

func TestKeyReplacesTheTokenInEveryHeader(t *testing.T) {
	for _, c := range []struct {
		protocol          string
		path, header      string
		wantName, wantKey string
	}{
		{OpenAI, "/v1/responses", "Authorization", "Authorization", "Bearer " + testKey},
		{OpenAI, "/v1/chat/completions", "X-Api-Key", "Authorization", "Bearer " + testKey},
		{Anthropic, "/v1/messages?beta=true", "X-Api-Key", "X-Api-Key", testKey},
		{Anthropic, "/v1/messages", "Authorization", "X-Api-Key", testKey},
		{Gemini, "/v1beta/models/gemini-2.5-pro:generateContent", "X-Goog-Api-Key", "X-Goog-Api-Key", testKey},
		{Gemini, "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=TOKEN", "", "X-Goog-Api-Key", testKey},
	} {
		p := newProvider(t, plain(200, `{}`))
		s := open(t, c.protocol, p.URL, nil)
		r := s.request(t, "POST", strings.ReplaceAll(c.path, "TOKEN", s.Token()), `{"model":"m"}`,
			"Cookie", "a=b", "Openai-Organization", "org-x", "Anthropic-Beta", "context-1m", "X-Stainless-Lang", "js", "Proxy-Authorization", "x", "X-Forwarded-For", "1.2.3.4")
		r.Header.Del("Authorization")
		switch c.header {
		case "":
		case "Authorization":
			r.Header.Set(c.header, "Bearer "+s.Token())
		default:
			r.Header.Set(c.header, s.Token())
		}
		if resp, body := do(t, r); resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", c.path, resp.StatusCode, body)
		}
		got := p.requests()[0]
		if v := got.header.Get(c.wantName); v != c.wantKey {
			t.Errorf("%s: %s is %q", c.path, c.wantName, v)
		}
		if all := fmt.Sprint(got); strings.Contains(all, s.Token()) || strings.Count(all, testKey) != 1 {
			t.Errorf("%s: the token went to the provider, or the key twice: %s", c.path, all)
		}
		for _, name := range []string{"Cookie", "Openai-Organization", "Proxy-Authorization", "X-Forwarded-For"} {
			if got.header.Get(name) != "" {
				t.Errorf("%s: %s passed", c.path, name)
			}
		}
		if got.header.Get("Anthropic-Beta") == "" || got.header.Get("X-Stainless-Lang") == "" {
			t.Errorf("%s: headers that agents need are missing: %v", c.path, got.header)
		}
	}
}

func TestOnlyListedPathsAreServed(t *testing.T) {
	p := newProvider(t, plain(200, `{}`))
	for _, c := range []struct {
		protocol string
		method   string
		path     string
	}{
		{OpenAI, "POST", "/v1/files"}, {OpenAI, "GET", "/v1/responses"}, {OpenAI, "POST", "/v1/responses/"}, {OpenAI, "POST", "//v1/responses"},
		{OpenAI, "POST", "/v1/x/../responses"}, {OpenAI, "POST", "/v1%2fresponses"}, {OpenAI, "POST", "/v1/respons%65s"}, {OpenAI, "POST", "/v1/messages"},
		{OpenAI, "GET", "/"}, {OpenAI, "HEAD", "/v1/models"}, {OpenAI, "DELETE", "/v1/models"},
		{Anthropic, "POST", "/v1/responses"}, {Anthropic, "POST", "/v1/messages/batches"}, {Anthropic, "GET", "/v1/models"},
		{Gemini, "POST", "/v1beta/models/..%2fx:generateContent"}, {Gemini, "POST", "/v1beta/models/../files:generateContent"},
		{Gemini, "POST", "/v1beta/models/a..b:generateContent"}, {Gemini, "POST", "/v1beta/models/m:embedContent"}, {Gemini, "POST", "/v1beta/files"},
	} {
		s := open(t, c.protocol, p.URL, nil)
		r := s.request(t, c.method, "/", `{}`)
		r.URL.Opaque = "//" + strings.TrimPrefix(s.url, "http://") + c.path // unchanged, with its escapes
		resp, body := do(t, r)
		if resp.StatusCode != 404 {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, body)
		}
		if !strings.Contains(body, `"error"`) && c.method != "HEAD" {
			t.Errorf("%s: %s", c.path, body)
		}
	}
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d requests were forwarded", n)
	}
}

func TestBaseURLMayHaveAPath(t *testing.T) {
	p := newProvider(t, plain(200, `{}`))
	for _, c := range []struct {
		protocol         string
		base, path, want string
	}{
		{OpenAI, "/s/edit-success/v1", "/v1/responses", "/s/edit-success/v1/responses"},
		{Anthropic, "/llm/", "/v1/messages?beta=true&x=1", "/llm/v1/messages?beta=true"},
		{Gemini, "/g", "/v1beta/models/m:streamGenerateContent?alt=sse&upload=1", "/g/v1beta/models/m:streamGenerateContent?alt=sse"},
	} {
		s := open(t, c.protocol, p.URL+c.base, nil)
		s.post(t, c.path, `{}`)
		seen := p.requests()
		got := seen[len(seen)-1].path
		if q := seen[len(seen)-1].query; q != "" {
			got += "?" + q
		}
		if got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// A token is valid until its attempt ends.
func TestTokenIsValidOnItsListenerOnly(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s, other := open(t, Anthropic, p.URL, nil), open(t, Anthropic, p.URL, nil)
	if !strings.HasPrefix(s.url, "http://127.0.0.1:") || len(s.Token()) < 43 || s.Token() == other.Token() {
		t.Errorf("listens at %s; tokens are not random: %s, %s", s.url, s.Token(), other.Token())
	}
	for token, want := range map[string]int{s.Token(): 200, other.Token(): 401, "nonsense": 401} {
		resp, body := s.post(t, "/v1/messages", `{}`, "Authorization", "Bearer "+token)
		if resp.StatusCode != want || want == 401 && !strings.Contains(body, `"authentication_error"`) {
			t.Errorf("%q: %d %s", token, resp.StatusCode, body)
		}
	}
	s.Session.Close()
	if resp, err := http.DefaultClient.Do(s.request(t, "POST", "/v1/messages", `{}`)); err == nil {
		defer resp.Body.Close() // another test may have the port by then
		if resp.StatusCode != 401 {
			t.Errorf("a finished attempt gets an answer: %d", resp.StatusCode)
		}
	}
	if n := len(p.requests()); n != 1 {
		t.Errorf("%d calls reached the provider, want 1", n)
	}
}

// The listener cannot be reached at the machine's other addresses.
func TestListenerIsLocal(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		c, err := net.DialTimeout("tcp", net.JoinHostPort(ip.String(), port), 5*time.Second)
		if err == nil {
			c.Close()
			t.Errorf("the listener is reachable at %s", ip)
		}
	}
}

func TestCloseEndsCallsInFlightAndCountsThem(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		sse(ev("message_start", `"message":{"usage":{"input_tokens":11,"output_tokens":1}}`))(w, r)
		close(started)
		<-r.Context().Done()
		close(ended)
	})
	s := open(t, Anthropic, p.URL, nil)
	resp, err := http.DefaultClient.Do(s.request(t, "POST", "/v1/messages", `{"model":"m","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	<-started
	line := make([]byte, 5) // wait until the gateway has forwarded the event
	if _, err := io.ReadFull(resp.Body, line); err != nil {
		t.Fatal(err)
	}
	if u := s.settled(); u.Input != 11 || u.Turns != 0 || u.Requests != 1 {
		t.Errorf("%+v", u)
	}
	<-ended
	if rest, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the answer seems whole: %s", rest)
	}
	resp.Body.Close()
}

func TestEchoedKeyIsMasked(t *testing.T) {
	half := len(testKey) / 2
	p := newProvider(t,
		plain(400, `{"error":{"message":"Incorrect API key provided: `+testKey+`","type":"invalid_request_error","code":"invalid_api_key"}}`, "Set-Cookie", "a=b", "X-Request-Id", "r-"+testKey),
		func(w http.ResponseWriter, r *http.Request) {
			sse("data: {\"a\":\""+testKey[:half], testKey[half:]+"\"}\n\n", "data: "+testKey[:half]+"x\n\n")(w, r)
		})
	s := open(t, OpenAI, p.URL, nil)
	resp, body := s.post(t, "/v1/responses", `{}`)
	if strings.Contains(body, testKey) || !strings.Contains(body, "provided: ***") || resp.StatusCode != 400 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp.Header.Get("Set-Cookie") != "" || strings.Contains(resp.Header.Get("X-Request-Id"), testKey) || resp.Header.Get("X-Request-Id") == "" {
		t.Errorf("%v", resp.Header)
	}
	l := <-s.limits
	if l.Kind != policy.Auth || strings.Contains(l.Message, testKey) {
		t.Errorf("%+v", l)
	}
	want := "data: {\"a\":\"" + strings.Repeat("*", len(testKey)) + "\"}\n\ndata: " + testKey[:half] + "x\n\n"
	if _, body = s.post(t, "/v1/responses", `{"stream":true}`); body != want {
		t.Errorf("%s", cmp.Diff(want, body))
	}
}

// The provider redirects or refuses connections, or base_url is not an address: pawl run takes it unchecked from the
// environment.
func TestBadAddressIsABadGateway(t *testing.T) {
	p := newProvider(t, plain(307, ``, "Location", "/elsewhere"))
	closed := httptest.NewServer(nil)
	closed.Close()
	for base, want := range map[string]string{p.URL: "base_url", closed.URL: "server_error", "https://api.example.com\n": "base_url"} {
		s := open(t, OpenAI, base, nil)
		if resp, body := s.post(t, "/v1/responses", `{}`); resp.StatusCode != 502 || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s", base, resp.StatusCode, body)
		}
	}
	if n := len(p.requests()); n != 1 {
		t.Errorf("%d calls reached the provider, want none after the redirect", n)
	}
}

func TestUnreadableBodiesAreRefused(t *testing.T) {
	p := newProvider(t, plain(200, `{}`))
	s := open(t, OpenAI, p.URL, nil)
	if resp, body := s.post(t, "/v1/responses", strings.Repeat("x", 65<<20)); resp.StatusCode != 413 || !json.Valid([]byte(body)) {
		t.Errorf("65 MiB: %d %s", resp.StatusCode, body)
	}
	if resp, body := s.post(t, "/v1/responses", "x", "Content-Encoding", "zstd"); resp.StatusCode != 415 || !json.Valid([]byte(body)) {
		t.Errorf("zstd: %d %s", resp.StatusCode, body)
	}
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d requests were forwarded", n)
	}
}

func TestEventsPassImmediately(t *testing.T) {
	for most, kind := range map[int]string{0: "response.output_text.delta", 1 << 20: "response.function_call_arguments.delta"} {
		seen := make(chan struct{})
		p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			for _, text := range []string{"one", "two", "three"} {
				sse(ev(kind, `"delta":"`+text+`"`))(w, r)
				<-seen // the next event is sent after this one has arrived
			}
		})
		s := open(t, OpenAI, p.URL, withNoAnswer(most))
		resp, err := http.DefaultClient.Do(s.request(t, "POST", "/v1/responses", `{"model":"m","stream":true,"tools":[{}]}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"one", "two", "three"} {
			want := ev(kind, `"delta":"`+text+`"`)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
				t.Fatalf("%q, %v", got, err)
			}
			seen <- struct{}{}
		}
		resp.Body.Close()
	}
}

func TestAttemptCannotTakeAllConnections(t *testing.T) {
	hold := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		<-hold
		plain(200, okMessage)(w, r)
	})
	s := open(t, Anthropic, p.URL, nil)
	statuses := make(chan int)
	for range maxWaiting + 1 {
		r := s.request(t, "POST", "/v1/messages", `{}`)
		go func() {
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				statuses <- 0
				return
			}
			resp.Body.Close()
			statuses <- resp.StatusCode
		}()
	}
	if got := <-statuses; got != 429 { // all other slots are in use
		t.Errorf("one call above the limit: %d", got)
	}
	close(hold)
	for range maxWaiting {
		if got := <-statuses; got != 200 {
			t.Errorf("a call within the limit: %d", got)
		}
	}
	if u := s.settled(); u.Turns != maxWaiting || u.Refused != 1 {
		t.Errorf("%+v", u)
	}
}
