package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"
)

const (
	// maxGuests bounds the connections that have not shown a token yet. An agent
	// sends it at once, so the one that waited longest gives way to the next.
	maxGuests = 256
	// maxConns bounds the kept connections of one attempt; one more is closed
	// after its call. One agent with ten parallel helpers of its own holds about
	// twelve.
	maxConns = 64
)

// guests knows whose the connections are, so that nobody can take them from
// the others by opening many.
type guests struct {
	mu     sync.Mutex
	order  []net.Conn // without a token, the oldest first
	owners map[net.Conn]*Session
	held   map[*Session]int
}

func newGuests() *guests {
	return &guests{owners: map[net.Conn]*Session{}, held: map[*Session]int{}}
}

// guestKey is the key of a request's connection in its context.
type guestKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, c)
}

// watch is told each change of a connection by the server.
func (g *guests) watch(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if oldest := g.arrive(c); oldest != nil {
			oldest.Close() // the server notices and says nothing
		}
	case http.StateClosed, http.StateHijacked:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.disown(c)
		g.order = without(g.order, c)
	}
}

func (g *guests) arrive(c net.Conn) (oldest net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.order = append(g.order, c)
	if len(g.order) <= maxGuests {
		return nil
	}
	oldest = g.order[0]
	g.order = g.order[1:]
	return oldest
}

// admit notes that a connection showed the token of a session. It answers false
// where the session holds enough others: the connection must end with its call.
func (g *guests) admit(r *http.Request, s *Session) bool {
	c, ok := r.Context().Value(guestKey{}).(net.Conn)
	if !ok {
		return true // not served by Listen
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.order = without(g.order, c)
	if g.owners[c] == s {
		return true
	}
	g.disown(c)
	g.owners[c] = s
	g.held[s]++
	return g.held[s] <= maxConns
}

// leave makes the connections of a session that is over guests again.
func (g *guests) leave(s *Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c, owner := range g.owners {
		if owner == s {
			g.disown(c)
			g.order = append(g.order, c)
		}
	}
}

func (g *guests) disown(c net.Conn) {
	s := g.owners[c]
	if s == nil {
		return
	}
	delete(g.owners, c)
	if g.held[s]--; g.held[s] == 0 {
		delete(g.held, s)
	}
}

func without(list []net.Conn, c net.Conn) []net.Conn {
	for i, other := range list {
		if other == c {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}
