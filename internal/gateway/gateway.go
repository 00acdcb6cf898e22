package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	headerTime = 10 * time.Second // how long a client may take to send its headers; it sits on the same machine
	// idleTime is how long a kept connection may wait for its next call. Agents
	// run tools for minutes between calls and open a new one then.
	idleTime = 2 * time.Minute
	// maxHeader bounds the headers of a request in bytes.
	maxHeader = 64 << 10
)

type Options struct {
	Now func() time.Time
	Log zerolog.Logger
	// Transport reaches the providers. It must not ask for compressed answers, whose tokens could not be
	// counted, nor limit the time to the first byte: a model may think for minutes.
	Transport http.RoundTripper
}

// Gateway is the proxy. Start makes it.
type Gateway struct {
	Options
	large  chan struct{} // taken by calls that send a large body
	conns  *connLimiter
	url    string
	server *http.Server
	served chan struct{} // closed when the server has ended

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]*Session
}

// Start takes a free port of the loopback and serves it until Close. It returns as soon as the port is there.
func Start(o Options) (*Gateway, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	g := &Gateway{
		Options: o, large: make(chan struct{}, maxLarge), conns: &connLimiter{owners: map[net.Conn]*Session{}},
		url: "http://" + ln.Addr().String(), served: make(chan struct{}), sessions: map[[sha256.Size]byte]*Session{},
	}
	g.server = &http.Server{
		Handler: g, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: log.New(g.Log, "", 0),
		ConnState: g.conns.onState,
		BaseContext: func(ln net.Listener) context.Context {
			return context.WithValue(context.Background(), listenerKey{}, ln)
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	go func() {
		defer close(g.served)
		if err := g.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			g.Log.Error().Err(err).Msg("the gateway no longer listens")
		}
	}()
	return g, nil
}

// URL is where agents reach the gateway, without a path.
func (g *Gateway) URL() string { return g.url }

func (g *Gateway) Close() error {
	err := g.server.Close()
	<-g.served
	return err
}

// Open gives a token for the provider of the grant, until the caller closes the session.
func (g *Gateway) Open(grant Grant) *Session {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails, by its documentation
	s := &Session{
		gateway: g, grant: grant, token: "pawl-" + base64.RawURLEncoding.EncodeToString(secret),
		open: map[*call]bool{}, answered: map[string]int64{}, slots: make(chan struct{}, maxCalls), large: make(chan struct{}, 1),
	}
	s.hash = sha256.Sum256([]byte(s.token))
	s.usage.CostKnown = true
	g.mu.Lock()
	g.sessions[s.hash] = s
	g.mu.Unlock()
	return s
}

// find gives the session of a token, by its hash, so the time of a miss tells nothing about those that exist.
func (g *Gateway) find(tokens []string) *Session {
	for _, token := range tokens {
		hash := sha256.Sum256([]byte(token))
		g.mu.Lock()
		s := g.sessions[hash]
		g.mu.Unlock()
		if s != nil {
			return s
		}
	}
	return nil
}

const (
	// maxUnknown bounds the connections that have not shown a token yet. An agent
	// sends it at once, so the one that waited longest gives way to the next.
	maxUnknown = 256
	// maxConns bounds the kept connections of one attempt; one agent with ten helpers holds about twelve.
	maxConns = 64
)

// connLimiter knows whose the connections are, so that nobody takes them from the others by opening many.
type connLimiter struct {
	mu      sync.Mutex
	unknown []net.Conn // without a token, the oldest first
	owners  map[net.Conn]*Session
}

type (
	connKey     struct{} // of the connection, in a request's context
	listenerKey struct{} // of the listener
)

func (l *connLimiter) onState(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		l.unknown = append(l.unknown, c)
		if len(l.unknown) > maxUnknown {
			l.unknown[0].Close() // the server notices and says nothing
			l.unknown = l.unknown[1:]
		}
	case http.StateClosed, http.StateHijacked:
		delete(l.owners, c)
		l.know(c)
	}
}

func (l *connLimiter) know(c net.Conn) {
	l.unknown = slices.DeleteFunc(l.unknown, func(other net.Conn) bool { return other == c })
}

// admit notes that a connection showed the token of a session. It answers false
// where the session holds enough others: the connection must end with its call.
func (l *connLimiter) admit(r *http.Request, s *Session) bool {
	c := r.Context().Value(connKey{}).(net.Conn) // Start has put it there
	l.mu.Lock()
	defer l.mu.Unlock()
	l.know(c)
	if l.owners[c] == s {
		return true
	}
	l.owners[c] = s
	held := 0
	for _, owner := range l.owners {
		if owner == s {
			held++
		}
	}
	return held <= maxConns
}

func (l *connLimiter) release(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, owner := range l.owners {
		if owner == s {
			delete(l.owners, c)
			l.unknown = append(l.unknown, c)
		}
	}
}
