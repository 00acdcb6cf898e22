package fakegithub

import (
	"maps"
	"sync"
	"time"
)

// Request is one request that the fake GitHub received. Status is 0 when the
// connection was cut. It holds no credentials.
type Request struct {
	Method string
	Path   string // without /api/v3
	Query  string
	Route  string // the route as documented, empty when GitHub has none such
	Status int
	Caller string // anonymous, app, installation:<id> or user:<login>
	At     time.Time
	Body   string // its first 4 KiB
}

const (
	keptRequests = 10_000  // the newest ones
	keptBody     = 4 << 10 // bytes of a body
)

type requestLog struct {
	mu     sync.Mutex
	list   []Request
	counts map[string]int
}

func (l *requestLog) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[r.Route]++
	if len(l.list) == keptRequests {
		l.list = append(l.list[:0], l.list[keptRequests/2:]...)
	}
	l.list = append(l.list, r)
}

func cut(body []byte) string { return string(body[:min(len(body), keptBody)]) }

// Requests lists what was received, oldest first, at most the newest 10,000.
func (s *Server) Requests() []Request {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return append([]Request(nil), s.requests.list...)
}

// Unknown lists the requests that no documented route answers.
func (s *Server) Unknown() []Request {
	var out []Request
	for _, r := range s.Requests() {
		if r.Route == "" {
			out = append(out, r)
		}
	}
	return out
}

// Calls counts requests by route since the start or the last ResetCalls; unknown
// routes count under the empty string, git requests under their own routes.
func (s *Server) Calls() map[string]int {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return maps.Clone(s.requests.counts)
}

// ResetCalls forgets the request log and its counts.
func (s *Server) ResetCalls() {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	s.requests.list, s.requests.counts = nil, nil
}
