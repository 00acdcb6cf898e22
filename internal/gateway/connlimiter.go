package gateway

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

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

func newConnLimiter() *connLimiter {
	return &connLimiter{owners: map[net.Conn]*Session{}}
}

type connKey struct{}

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

// know takes a connection from those that have not shown a token.
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

// release makes the connections of a session that is over unknown again.
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
