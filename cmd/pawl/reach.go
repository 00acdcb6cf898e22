package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// reach is the way to GitHub's API, and remembers whether anybody answers there.
// The look for missed deliveries uses it every few minutes, so it is never old.
type reach struct {
	way http.RoundTripper
	now func() time.Time

	mu             sync.Mutex
	heard, unheard time.Time // the last answer, and the last request without any
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
	switch {
	case err == nil:
		r.heard = r.now()
	case !errors.Is(err, context.Canceled):
		r.unheard, r.why = r.now(), err
	}
	return answer, err
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
		return false, fmt.Sprintf("no answer %s ago: %v", ago(r.unheard), r.why)
	}
	return true, fmt.Sprintf("answered %s ago", ago(r.heard))
}
