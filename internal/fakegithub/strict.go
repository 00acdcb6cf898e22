package fakegithub

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Violation is one request that broke GitHub's documented limits.
type Violation struct {
	Caller string // installation:<id>
	Rule   string // what was broken, in words
	Method string
	Path   string
	At     time.Time
}

// strictness holds what Strict turned on. Its zero value checks nothing.
type strictness struct {
	mu      sync.Mutex
	on      bool
	wardens map[string]*Warden
	banned  map[string]bool
	found   []Violation
}

// Strict checks every REST request of every installation against GitHub's
// secondary limits from now on: 100 at once, 900 points a minute, 80 writes a
// minute and 500 an hour, a second between two writes, and no request while a
// refusal asks for a wait. Who breaks one gets 403 for the rest of the server's
// life, and the request is listed in Violations.
func (s *Server) Strict() {
	s.strict.mu.Lock()
	defer s.strict.mu.Unlock()
	s.strict.on, s.strict.wardens, s.strict.banned = true, map[string]*Warden{}, map[string]bool{}
}

// Violations lists what Strict found, oldest first. Requests of a caller that
// is banned already are not listed.
func (s *Server) Violations() []Violation {
	s.strict.mu.Lock()
	defer s.strict.mu.Unlock()
	return slices.Clone(s.strict.found)
}

// visit is one request under the eyes of a warden; nil is one that nobody
// watches.
type visit struct {
	strict *strictness
	warden *Warden
	now    func() time.Time
	gone   bool
	banned bool
}

// arrive notes a request before anything delays it.
func (s *Server) arrive(r *http.Request, path string) *visit {
	s.strict.mu.Lock()
	on := s.strict.on
	s.strict.mu.Unlock()
	if !on {
		return nil
	}
	s.mu.Lock()
	who, refused := s.authenticate(r)
	s.mu.Unlock()
	caller := who.name()
	if refused != nil || !strings.HasPrefix(caller, "installation:") {
		return nil
	}
	s.strict.mu.Lock()
	defer s.strict.mu.Unlock()
	v := &visit{strict: &s.strict, warden: s.strict.wardens[caller], now: s.now}
	if v.warden == nil {
		v.warden = new(Warden)
		s.strict.wardens[caller] = v.warden
	}
	if rule := v.warden.Arrive(s.now(), r.Method); rule != "" && !s.strict.banned[caller] {
		s.strict.banned[caller] = true
		s.strict.found = append(s.strict.found, Violation{Caller: caller, Rule: rule, Method: r.Method, Path: path, At: s.now()})
	}
	v.banned = s.strict.banned[caller]
	return v
}

// refusal is the answer to who is banned.
func (v *visit) refusal() *reply {
	if v == nil || !v.banned {
		return nil
	}
	return problem(http.StatusForbidden, "This App was blocked for breaking the limits; see Violations.")
}

// leave notes the answer, nil when the connection is cut. Only the first call
// counts.
func (v *visit) leave(rep *reply) {
	if v == nil || v.gone {
		return
	}
	v.gone = true
	v.strict.mu.Lock()
	defer v.strict.mu.Unlock()
	if rep == nil {
		v.warden.Leave(v.now(), 0, nil, "")
		return
	}
	message := ""
	if body, ok := rep.body.(obj); ok {
		message, _ = body["message"].(string)
	}
	v.warden.Leave(v.now(), rep.status, rep.header, message)
}
