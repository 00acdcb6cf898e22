package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

func dial(t *testing.T, s *stand) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestConnectionsWithoutATokenDoNotKeepOthersOut(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, nil)
	oldest := dial(t, s)
	for range 600 {
		dial(t, s)
	}
	if resp, body := s.post(t, "/v1/messages", `{}`); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if _, err := oldest.Read(make([]byte, 1)); err == nil {
		t.Error("the oldest connection is still there")
	}
}

func TestAnAttemptKeepsOnlySoManyConnections(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, nil)
	kept := 0
	for range maxConns + 3 {
		c := dial(t, s)
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}
		resp, err := transport.RoundTrip(s.request(t, "POST", "/v1/messages", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%d, %v", resp.StatusCode, err)
		}
		resp.Body.Close()
		if !resp.Close {
			kept++
		}
		defer transport.CloseIdleConnections()
	}
	if kept != maxConns {
		t.Errorf("%d are kept, want %d", kept, maxConns)
	}
	s.Session.Close()
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	if len(s.conns.owners) != 0 {
		t.Errorf("%d connections still belong to an attempt that is over", len(s.conns.owners))
	}
}

// TestLargeBodiesThatWereSentMakeRoom has calls with bodies of unknown length
// answered for long.
func TestLargeBodiesThatWereSentMakeRoom(t *testing.T) {
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
		<-arrived // all are with the provider at the same time
	}
	close(hold)
	for range maxLarge + 1 {
		if got := <-over; got != 200 {
			t.Errorf("status %d", got)
		}
	}
}

// TestAnAttemptHoldsOnePlaceForLargeBodies has an attempt send two bodies that
// do not end, and another one send its own.
func TestAnAttemptHoldsOnePlaceForLargeBodies(t *testing.T) {
	p := newProvider(t, plain(200, okMessage))
	s := open(t, Anthropic, p.URL, nil)
	other := s.Gateway.Open(Grant{Provider: config.Provider{Protocol: Anthropic, BaseURL: p.URL}, Limited: neverLimited})
	defer other.Close()
	for range maxLarge + 1 {
		c := dial(t, s)
		if _, err := io.WriteString(c, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.Token()+"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	r := s.request(t, "POST", "/v1/messages", "", "Authorization", "Bearer "+other.Token())
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(`{"model":"m"}`)), -1
	if resp, body := do(t, r); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
