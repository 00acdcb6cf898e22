package fakegithub

import (
	"context"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// Fault is what goes wrong with the next requests that match. With several
// fields set, the latency comes first.
type Fault struct {
	// Route is a route as documented ("POST /repos/{owner}/{repo}/check-runs"),
	// or a method and a glob over the path ("PATCH /repos/*/*/pulls/*"), where
	// "*" as method stands for any and "**" as glob for every path. Git requests
	// are "GET /{owner}/{repo}.git/info/refs", "POST …/git-upload-pack" and
	// "POST …/git-receive-pack". Paths do not include /api/v3.
	Route string
	// Skip lets that many matching requests pass first.
	Skip int
	// Times is how many requests are hit; zero means one, negative all.
	Times int
	// Status answers instead of GitHub; zero means that the request is processed.
	Status int
	// Message is the error message of the answer; empty means the status text.
	Message string
	// DocumentationURL marks a secondary limit for clients that look there.
	DocumentationURL string
	// Header is added to the answer (retry-after, x-ratelimit-remaining …).
	Header http.Header
	// Latency is waited before anything else.
	Latency time.Duration
	// AbortBefore cuts the connection before the request is processed. Go's
	// client repeats a GET by itself when this happens on a reused connection.
	AbortBefore bool
	// AbortAfter processes the request and then cuts the connection.
	AbortAfter bool
}

type faultList struct {
	mu   sync.Mutex
	list []*Fault
}

// Inject adds a fault. Faults are looked through in the order they were added.
func (s *Server) Inject(f Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults.list = append(s.faults.list, &f)
}

// ClearFaults removes every fault and tells how many had hits left.
func (s *Server) ClearFaults() int {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	left := 0
	for _, f := range s.faults.list {
		if f.Times > 0 {
			left++
		}
	}
	s.faults.list = nil
	return left
}

// take returns the fault that hits this request; the zero Fault hits nothing.
func (l *faultList) take(method, requestPath, route string) Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.list {
		if f.Times == 0 || !f.matches(method, requestPath, route) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		return *f
	}
	return Fault{}
}

func (f *Fault) matches(method, requestPath, route string) bool {
	if f.Route == route {
		return true
	}
	wanted, glob, _ := strings.Cut(f.Route, " ")
	if wanted != "*" && wanted != method {
		return false
	}
	if glob == "**" {
		return true
	}
	hit, err := path.Match(glob, requestPath)
	return err == nil && hit
}

// before waits and tells whether the request may go on; false means that the
// connection is to be cut.
func (f Fault) before(ctx context.Context) bool {
	if f.Latency > 0 {
		timer := time.NewTimer(f.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	return !f.AbortBefore
}

// reply is the scripted answer, nil when the request is to be processed.
func (f Fault) reply() *reply {
	if f.Status == 0 {
		return nil
	}
	message := f.Message
	if message == "" {
		message = http.StatusText(f.Status)
	}
	rep := problem(f.Status, message)
	if f.DocumentationURL != "" {
		rep.body.(obj)["documentation_url"] = f.DocumentationURL
	}
	for key, values := range f.Header {
		rep.header[http.CanonicalHeaderKey(key)] = values
	}
	return rep
}
