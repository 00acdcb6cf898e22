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
	headerTime = 10 * time.Second // for a local client's headers
	// idleTime closes an idle connection. Agents that run tools for longer open a new one.
	idleTime = 2 * time.Minute
	// maxHeader limits headers in bytes.
	maxHeader = 64 << 10
	// maxConns limits an attempt's connections; an agent with ten subagents holds about twelve.
	maxConns = 256
)

type Options struct {
	Now func() time.Time
	Log zerolog.Logger
	// Transport reaches the providers. It must not request compression, which hides tokens, nor limit the time to the
	// first byte.
	Transport http.RoundTripper
}

// Gateway serves all attempts' sessions. Use New.
type Gateway struct {
	Options
	large chan struct{} // slots of calls with large bodies
}

func New(o Options) *Gateway { return &Gateway{Options: o, large: make(chan struct{}, maxLarge)} }

// Open returns a session with a token for the grant's provider.
func (g *Gateway) Open(grant Grant) *Session {
	secret := make([]byte, 32)
	rand.Read(secret) // documented never to fail
	s := &Session{
		gateway: g, grant: grant, token: "pawl-" + base64.RawURLEncoding.EncodeToString(secret),
		open: map[*call]bool{}, answered: map[string]int64{}, slots: make(chan struct{}, maxCalls), large: make(chan struct{}, 1),
	}
	s.usage.CostKnown = true
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: log.New(g.Log, "", 0)}
	return s
}

// Serve serves the attempt's listener until Close.
func (s *Session) Serve(ln net.Listener) { _ = s.server.Serve(netutil.LimitListener(ln, maxConns)) }

// Listen serves a free loopback port for agents without their own network and returns its URL.
func (s *Session) Listen() (url string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for an agent: %w", err)
	}
	go s.Serve(ln)
	return "http://" + ln.Addr().String(), nil
}
