package fakegithub

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// Fault changes the answers to the next matching requests. Latency precedes the other effects.
type Fault struct {
	// Route is a documented route ("POST /repos/{owner}/{repo}/check-runs"), or a method and a glob over the path
	// without /api/v3 ("PATCH /repos/*/*/pulls/*"). "*" matches any method, "**" any path. Git's routes are "GET
	// /{owner}/{repo}.git/info/refs", "POST …/git-upload-pack" and "POST …/git-receive-pack".
	Route string
	// Skip is the number of matching requests that pass unchanged first.
	Skip int
	// Times is the number of affected requests; zero means one, a negative number all.
	Times int
	// Status is the answer's status; zero means that the request is processed.
	Status int
	// Message is the answer's error message; empty means the status text.
	Message string
	// Header is added to the answer (retry-after, x-ratelimit-remaining …).
	Header  http.Header
	Latency time.Duration
	// AbortBefore cuts the connection before processing. Go's client then repeats a GET on a reused connection.
	AbortBefore bool
	// AbortAfter cuts the connection after processing.
	AbortAfter bool
	// Answer replaces GitHub, after the latency; github is the original handler. The request log then has status 0.
	Answer func(w http.ResponseWriter, r *http.Request, github http.Handler)
}

type faultList struct {
	mu   sync.Mutex
	list []*Fault
}

// Inject adds a fault. The first matching fault applies.
func (l *faultList) Inject(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	l.list = append(l.list, &f)
}

// ClearFaults removes every fault, and returns how many were not used up.
func (l *faultList) ClearFaults() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := 0
	for _, f := range l.list {
		if f.Times > 0 {
			left++
		}
	}
	l.list = nil
	return left
}

// take returns the fault for a request, or the zero Fault.
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

// before waits for the latency. It returns false if the connection must be cut.
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

// reply returns the scripted answer; nil to process the request.
func (f Fault) reply() *reply {
	if f.Status == 0 {
		return nil
	}
	rep := problem(f.Status, cmp.Or(f.Message, http.StatusText(f.Status)))
	for key, values := range f.Header {
		rep.header[http.CanonicalHeaderKey(key)] = values
	}
	return rep
}

// Request is one received request, without credentials. Status is 0 if the connection was cut.
type Request struct {
	Method string
	Path   string // without /api/v3
	Query  string
	Route  string // the documented route; empty if there is none
	Status int
	Caller string // anonymous, app, installation:<id> or user:<login>
	At     time.Time
	Body   string // first 4 KiB
}

const (
	keptRequests = 10_000  // newest
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

// Requests lists the newest 10,000 requests, oldest first.
func (l *requestLog) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Request(nil), l.list...)
}

// Unknown lists the requests without a documented route.
func (l *requestLog) Unknown() []Request {
	var out []Request
	for _, r := range l.Requests() {
		if r.Route == "" {
			out = append(out, r)
		}
	}
	return out
}

// Calls counts requests by route since the last ResetCalls; unknown routes under the empty string.
func (l *requestLog) Calls() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

func (l *requestLog) ResetCalls() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.counts = nil, nil
}
