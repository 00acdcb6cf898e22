package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// headerTime is how long a client may take to send its headers; it sits on
	// the same machine.
	headerTime = 10 * time.Second
	// idleTime is how long a kept connection may wait for its next call. Agents
	// run tools for minutes between calls and open a new one then.
	idleTime = 2 * time.Minute
	// maxHeader bounds the headers of a request in bytes.
	maxHeader = 64 << 10
)

// Options are what a Gateway needs. The zero value works: the clock of the
// machine, no log, and connections to providers without a proxy.
type Options struct {
	Now func() time.Time
	Log zerolog.Logger
	// Transport reaches the providers. Nil means one of our own, which verifies
	// TLS and ignores the proxy variables of the environment.
	Transport http.RoundTripper
}

// Gateway is the proxy. Make it with New, start it with Listen.
type Gateway struct {
	now       func() time.Time
	log       zerolog.Logger
	transport http.RoundTripper
	large     chan struct{} // taken by calls that send a large body
	conns     *connLimiter

	mu       sync.Mutex
	url      string
	server   *http.Server
	served   chan struct{}
	sessions map[[sha256.Size]byte]*Session
}

// New makes a gateway that does not listen yet.
func New(o Options) *Gateway {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	return &Gateway{
		now: o.Now, log: o.Log, transport: o.Transport, large: make(chan struct{}, maxLarge), conns: newConnLimiter(),
		sessions: map[[sha256.Size]byte]*Session{},
	}
}

// newTransport has no limit on the time to the first byte: a model may think for
// minutes, and the agent's own limits and the attempt's end it.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// Listen takes a free port of the loopback and serves it until the context is
// done or Close is called. It returns as soon as the port is there.
func (g *Gateway) Listen(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.server != nil {
		return errors.New("listen for agents: the gateway listens already")
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for agents: %w", err)
	}
	g.url = "http://" + ln.Addr().String()
	g.server = &http.Server{
		Handler: g, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: log.New(g.log, "", 0),
		ConnState: g.conns.onState, ConnContext: withConn,
	}
	g.served = make(chan struct{})
	server, served := g.server, g.served
	go func() {
		defer close(served)
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error().Err(err).Msg("the gateway no longer listens")
		}
	}()
	context.AfterFunc(ctx, func() { server.Close() })
	return nil
}

// URL is where agents reach the gateway, without a path; empty before Listen.
func (g *Gateway) URL() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.url
}

// Close ends all calls and stops listening.
func (g *Gateway) Close() error {
	g.mu.Lock()
	server, served := g.server, g.served
	g.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close()
	<-served
	return err
}

// Open lets the holder of a new token call the provider of the grant. The caller
// must Close the session when the attempt is over.
func (g *Gateway) Open(grant Grant) *Session {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails, by its documentation
	s := &Session{
		gateway: g, grant: grant, token: "pawl-" + base64.RawURLEncoding.EncodeToString(secret),
		done: make(chan struct{}), slots: make(chan struct{}, maxCalls), large: make(chan struct{}, 1),
	}
	s.hash = sha256.Sum256([]byte(s.token))
	s.usage.CostKnown = true
	g.mu.Lock()
	g.sessions[s.hash] = s
	g.mu.Unlock()
	return s
}

// find gives the session of a token. Tokens are looked up by hash, so the time
// of a miss tells nothing about the tokens that exist.
func (g *Gateway) find(tokens []string) *Session {
	for _, token := range tokens {
		hash := sha256.Sum256([]byte(token))
		g.mu.Lock()
		s := g.sessions[hash]
		g.mu.Unlock()
		if s != nil && subtle.ConstantTimeCompare([]byte(s.token), []byte(token)) == 1 {
			return s
		}
	}
	return nil
}
