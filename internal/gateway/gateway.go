package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"
)

const (
	headerTime = 10 * time.Second // for a client to send its headers; it is on the same machine
	// idleTime is how long a kept connection may wait for its next call. Agents run tools for minutes between calls
	// and open a new one then.
	idleTime = 2 * time.Minute
	// maxHeader bounds the headers of a request in bytes.
	maxHeader = 64 << 10
	// maxConns bounds the connections of one attempt; one agent with ten helpers holds about twelve.
	maxConns = 256
)

type Options struct {
	Now func() time.Time
	Log zerolog.Logger
	// Transport reaches the providers. It must not ask for compressed answers, whose tokens could not be counted,
	// nor limit the time to the first byte: a model may think for minutes.
	Transport http.RoundTripper
}

// Gateway is shared by all attempts' sessions. Use New.
type Gateway struct {
	Options
	large chan struct{} // taken by calls that send a large body
}

func New(o Options) *Gateway { return &Gateway{Options: o, large: make(chan struct{}, maxLarge)} }

// Open makes a token for the grant's provider, until the session closes.
func (g *Gateway) Open(grant Grant) *Session {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails, by its documentation
	s := &Session{
		gateway: g, grant: grant, token: "pawl-" + base64.RawURLEncoding.EncodeToString(secret),
		open: map[*call]bool{}, answered: map[string]int64{}, slots: make(chan struct{}, maxCalls), large: make(chan struct{}, 1),
	}
	s.usage.CostKnown = true
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: log.New(g.Log, "", 0)}
	return s
}

// Serve answers on the attempt's own listener, until Close.
func (s *Session) Serve(ln net.Listener) { _ = s.server.Serve(netutil.LimitListener(ln, maxConns)) }

// Listen serves a free port of the host's loopback, for an agent without its own network, and returns its URL.
func (s *Session) Listen() (url string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for an agent: %w", err)
	}
	go s.Serve(ln)
	return "http://" + ln.Addr().String(), nil
}
