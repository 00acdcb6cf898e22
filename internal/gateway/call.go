package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// maxRequest bounds a request in bytes; a context of a million tokens with
	// some pictures has about 20 MiB.
	maxRequest = 64 << 20
	// A body from largeRequest on, or of unknown length, waits until no other of
	// its attempt and fewer than maxLarge of all are being read and sent, so that
	// no agent can fill the host's memory or keep the others waiting.
	largeRequest = 8 << 20
	maxLarge     = 4
	// maxError bounds the body of an error in bytes.
	maxError = 1 << 20
	// bodyTime is how long a client may take to send a body.
	bodyTime = 2 * time.Minute
)

// call is one request of an agent on its way.
type call struct {
	*Session
	route route
	in    *http.Request
	w     http.ResponseWriter
	rc    *http.ResponseController
	req   request
	// number orders the calls of the session as they were sent.
	number int64
	// reserved is what was set aside of the budget.
	reserved share
	// bodySent gives the place of a large body back; it may be called again.
	bodySent func()
}

// ServeHTTP answers one call of an agent.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ro, known := routeOf(r)
	s := g.find(tokensOf(r))
	crowded, open := false, false
	if s != nil {
		crowded, open = s.begin()
	}
	if !open {
		w.Header().Set("Connection", "close")
		refuse(shapeOf(r), http.StatusUnauthorized, "this token is not known, or its attempt is over").write(w)
		return
	}
	defer s.end()
	if !g.guests.admit(r, s) {
		w.Header().Set("Connection", "close")
	}
	protocol := s.grant.Provider.Protocol
	if crowded {
		s.change(func(u *Usage) { u.Refused++ })
		w.Header().Set("Connection", "close")
		tooFast(protocol, fmt.Sprintf("more than %d calls at the same time", maxWaiting), 1).write(w)
		return
	}
	if !known || ro.protocol != protocol {
		s.change(func(u *Usage) { u.Refused++ })
		refuse(protocol, http.StatusNotFound, fmt.Sprintf("no such path for agents: %s %s", r.Method, r.URL.Path)).write(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	rc := http.NewResponseController(w)
	defer s.whenClosed(func() {
		cancel()
		// A client that does not read could hold the call otherwise. That a
		// connection knows no deadlines changes nothing.
		_ = rc.SetReadDeadline(time.Unix(1, 0))
		_ = rc.SetWriteDeadline(time.Unix(1, 0))
	})()
	(&call{Session: s, route: ro, in: r, w: w, rc: rc}).serve(ctx)
}

// whenClosed calls f when the session is closed before the returned function is
// called, which waits until f can no longer run.
func (s *Session) whenClosed(f func()) (stop func()) {
	over, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-s.done:
			f()
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-left
	}
}

func (c *call) serve(ctx context.Context) {
	free := c.admit(ctx)
	if free == nil {
		return // the client left, or the attempt is over
	}
	defer free()
	refused := c.prepare()
	if refused == nil {
		refused = c.forbidden(ctx)
		defer func() { c.release(c.reserved) }()
	}
	if refused != nil {
		c.change(func(u *Usage) { u.Refused++ })
		refused.write(c.w)
		return
	}
	if ctx.Err() != nil {
		return
	}
	c.change(func(*Usage) { c.number = c.standing.begin() })
	first, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.send(first, c.req.body)
	c.bodySent()
	if err != nil {
		c.unreachable(ctx, err)
		return
	}
	defer resp.Body.Close()
	if c.req.size >= largeRequest { // rung 1 would need it, but an answer may take minutes
		c.req.body, resp.Request = nil, nil
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		c.unreachable(ctx, fmt.Errorf("it redirects (%d), which is not followed; correct base_url", resp.StatusCode))
	case resp.StatusCode >= 400:
		c.refused(resp)
	case isStream(resp):
		c.stream(ctx, resp, cancel)
	default:
		c.whole(resp)
	}
}

// admit waits until the call may have its place; nil when it ended before. The
// caller must call what it gives.
func (c *call) admit(ctx context.Context) (free func()) {
	taken := []chan struct{}{}
	free = func() {
		for _, place := range taken {
			<-place
		}
	}
	places := []chan struct{}{c.slots}
	if n := c.in.ContentLength; n < 0 || n >= largeRequest {
		places = append(places, c.large, c.gateway.large)
	}
	for _, place := range places {
		select {
		case place <- struct{}{}:
			taken = append(taken, place)
		case <-ctx.Done():
			free()
			return nil
		}
	}
	c.bodySent = sync.OnceFunc(func() {
		for _, place := range taken[1:] {
			<-place
		}
	})
	return func() {
		c.bodySent()
		<-c.slots
	}
}

// prepare reads the request; it gives how to refuse it, nil when it is good.
func (c *call) prepare() *refusal {
	body, refused := c.readBody()
	if refused != nil {
		return refused
	}
	var err error
	if c.req, err = readRequest(c.route, body, c.grant.HostedTools); err != nil {
		no := refuse(c.route.protocol, http.StatusBadRequest, err.Error())
		return &no
	}
	return nil
}

// readBody gives the body, or how to refuse it.
func (c *call) readBody() ([]byte, *refusal) {
	if enc := c.in.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		no := refuse(c.route.protocol, http.StatusUnsupportedMediaType, "compressed requests are not read; turn request compression off")
		return nil, &no
	}
	_ = c.rc.SetReadDeadline(time.Now().Add(bodyTime)) // of the connection, so by the machine's clock
	// Grow would write zeros also where the memory has them already.
	body := bytes.NewBuffer(make([]byte, 0, int(min(max(c.in.ContentLength, 0), maxRequest))+bytes.MinRead))
	_, err := body.ReadFrom(http.MaxBytesReader(c.w, c.in.Body, maxRequest))
	_ = c.rc.SetReadDeadline(time.Time{})
	if err == nil {
		return body.Bytes(), nil
	}
	status, text := http.StatusBadRequest, "the body ended early"
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		status, text = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d MiB", maxRequest>>20)
	}
	no := refuse(c.route.protocol, status, text)
	return nil, &no
}

// forbidden asks the breaker and the budget; nil means that the call may go, or
// that it ended while it waited for the budget.
func (c *call) forbidden(ctx context.Context) *refusal {
	if c.route.kind == models {
		return nil
	}
	now := c.gateway.now()
	if c.route.kind != countTokens { // which costs nothing
		wanted := c.grant.Provider.shareOf(c.req.model, tokens{input: inputOf(c.req.size), output: c.req.most})
		why, ok := c.reserve(ctx, wanted)
		if ok {
			c.reserved = wanted
		} else if why != "" {
			no := refuseLimit(c.route, c.in.Header, Limit{Kind: UsageLimit}, "Pawl stopped it: "+why+".", now)
			return &no
		}
	}
	if c.grant.Limited == nil {
		return nil
	}
	l, closed := c.grant.Limited(ctx)
	if !closed {
		return nil
	}
	message := l.Message
	if message == "" {
		message = "the account is limited (" + l.Kind + ")"
	}
	no := refuseLimit(c.route, c.in.Header, l, message, now)
	return &no
}
