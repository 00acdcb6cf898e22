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
	// Header is added to the answer (retry-after, x-ratelimit-remaining …).
	Header http.Header
	// Latency is waited before anything else.
	Latency time.Duration
	// AbortBefore cuts the connection before the request is processed. Go's
	// client repeats a GET by itself when this happens on a reused connection.
	AbortBefore bool
	// AbortAfter processes the request and then cuts the connection.
	AbortAfter bool
	// Answer answers in place of GitHub, after the latency; github is what would
	// have done it. In the request log such a request has status 0.
	Answer func(w http.ResponseWriter, r *http.Request, github http.Handler)
}

type faultList struct {
	mu   sync.Mutex
	list []*Fault
}

// Inject adds a fault. Faults are looked through in the order they were added.
func (l *faultList) Inject(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	l.list = append(l.list, &f)
}

// ClearFaults removes every fault and tells how many had hits left.
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
	rep := problem(f.Status, cmp.Or(f.Message, http.StatusText(f.Status)))
	for key, values := range f.Header {
		rep.header[http.CanonicalHeaderKey(key)] = values
	}
	return rep
}

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
func (l *requestLog) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Request(nil), l.list...)
}

// Unknown lists the requests that no documented route answers.
func (l *requestLog) Unknown() []Request {
	var out []Request
	for _, r := range l.Requests() {
		if r.Route == "" {
			out = append(out, r)
		}
	}
	return out
}

// Calls counts requests by route since the start or the last ResetCalls; unknown
// routes count under the empty string, git requests under their own routes.
func (l *requestLog) Calls() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// ResetCalls forgets the request log and its counts.
func (l *requestLog) ResetCalls() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.counts = nil, nil
}
