package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
)

func dial(t *testing.T, s *stand) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// One attempt opens too many connections while another works.
func TestAttemptsConnectionsAreLimited(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s, other := open(t, Anthropic, p.URL, nil), open(t, Anthropic, p.URL, nil)
	for range maxConns {
		dial(t, s)
	}
	late := dial(t, s)
	if err := late.SetDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(late, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if n, err := late.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection above the limit gets an answer: %d, %v", n, err)
	}
	if resp, body := other.post(t, "/v1/messages", `{}`); resp.StatusCode != 200 {
		t.Errorf("another attempt: %d %s", resp.StatusCode, body)
	}
}

// The bodies have unknown lengths, and the answers take long.
func TestSentLargeBodiesReleaseTheirSlots(t *testing.T) {
	hold := make(chan struct{})
	arrived := make(chan struct{}, 10)
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-hold
		plain(200, okMessage)(w, nil)
	})
	s := open(t, Anthropic, p.URL, nil)
	over := make(chan int, maxLarge+1)
	for range maxLarge + 1 {
		r := s.request(t, "POST", "/v1/messages", "")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(`{"model":"m"}`)), -1
		go func() {
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				over <- 0
				return
			}
			resp.Body.Close()
			over <- resp.StatusCode
		}()
	}
	for range maxLarge + 1 {
		<-arrived // all requests are at the provider at the same time
	}
	close(hold)
	for range maxLarge + 1 {
		if got := <-over; got != 200 {
			t.Errorf("status %d", got)
		}
	}
}

// One attempt sends several endless bodies while another sends its own.
func TestAttemptHasOneLargeBodySlot(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, nil)
	other := &stand{Session: s.Gateway.Open(Grant{Provider: config.Provider{Protocol: Anthropic, BaseURL: p.URL}, Limited: neverLimited})}
	defer other.Close()
	var err error
	if other.url, err = other.Listen(); err != nil {
		t.Fatal(err)
	}
	for range maxLarge + 1 {
		c := dial(t, s)
		if _, err := io.WriteString(c, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.Token()+"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	r := other.request(t, "POST", "/v1/messages", "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(`{"model":"m"}`)), -1
	if resp, body := do(t, r); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
