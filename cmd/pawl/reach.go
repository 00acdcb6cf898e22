package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// reach is the way to GitHub's API, and remembers whether it answers there. A server
// that says that it is down does not, nor does one that refuses the App.
// The look for missed deliveries uses it every few minutes, so it is never old.
type reach struct {
	way http.RoundTripper
	now func() time.Time

	mu             sync.Mutex
	heard, unheard time.Time // the last answer, and the last request without a good one
	why            error     // of the latter
}

// newReach goes as the environment says (HTTPS_PROXY and the like).
func newReach(now func() time.Time) *reach {
	way, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return &reach{way: http.DefaultTransport, now: now}
	}
	way = way.Clone()
	way.MaxIdleConnsPerHost = 16
	return &reach{way: way, now: now}
}

// RoundTrip implements http.RoundTripper.
func (r *reach) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := r.way.RoundTrip(q)
	r.mu.Lock()
	defer r.mu.Unlock()
	why := err
	if err == nil {
		why = refusal(q, answer.StatusCode)
	}
	switch {
	case why == nil:
		r.heard = r.now()
	case !errors.Is(err, context.Canceled):
		r.unheard, r.why = r.now(), why
	}
	return answer, err
}

// refusal is what a status says of the server or of the App's credentials, and of
// nothing that was asked for; nil for any other.
func refusal(q *http.Request, status int) error {
	path := q.URL.Path
	named := strings.Contains(path, "/repos/") || strings.Contains(path, "/users/") // by people, who may call anything "app"
	self := strings.HasSuffix(path, "/app")
	switch {
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("it answers %d %s", status, http.StatusText(status))
	case named:
	case status == http.StatusUnauthorized && (self || strings.Contains(path, "/app/")), status == http.StatusNotFound && self:
		return fmt.Errorf("it refuses the App's credentials (%d)", status)
	}
	return nil
}

// state says whether GitHub answered last.
func (r *reach) state() (ok bool, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ago := func(t time.Time) string { return r.now().Sub(t).Round(time.Second).String() }
	switch {
	case r.heard.IsZero() && r.unheard.IsZero():
		return true, "not asked yet"
	case r.heard.Before(r.unheard):
		return false, fmt.Sprintf("no good answer %s ago: %v", ago(r.unheard), r.why)
	}
	return true, fmt.Sprintf("answered %s ago", ago(r.heard))
}
