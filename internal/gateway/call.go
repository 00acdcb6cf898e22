package gateway

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/policy"
)

const (
	// maxRequest limits a request in bytes; a million tokens with pictures take about 20 MiB.
	maxRequest = 64 << 20
	// To limit memory, an attempt sends one large body at a time, and all attempts send maxLarge. A body is large from
	// largeRequest bytes or if its length is unknown.
	largeRequest = 8 << 20
	maxLarge     = 4
	// maxError limits an error's body in bytes.
	maxError = 1 << 20
	bodyTime = 2 * time.Minute // for reading a client's body
)

type call struct {
	*Session
	route  route
	in     *http.Request
	w      http.ResponseWriter
	rc     *http.ResponseController
	cancel context.CancelFunc
	req    request
	url    *url.URL // the provider's URL
	// number orders the session's calls.
	number   int64
	reserved share // reserved budget
	// bodySent releases a large body's slot. Repeated calls are harmless.
	bodySent func()
}

// ServeHTTP serves an attempt. It checks the token, since without separate networks other programs may reach the
// listener.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ro, known := routeOf(r)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{Session: s, route: ro, in: r, w: w, rc: http.NewResponseController(w), cancel: cancel}
	protocol, crowded, open := s.grant.Provider.Protocol, false, false
	if slices.ContainsFunc(tokensOf(r), s.isToken) {
		crowded, open = s.begin(c)
	}
	if !open {
		w.Header().Set("Connection", "close")
		refuse(protocol, http.StatusUnauthorized, "this token is unknown, or its attempt is over").write(w)
		return
	}
	defer s.end(c)
	switch {
	case crowded:
		w.Header().Set("Connection", "close")
		s.refuse(w, refuse(protocol, http.StatusTooManyRequests, fmt.Sprintf("more than %d calls at the same time", maxWaiting), retryInfo(1)...))
		return
	case !known, ro.protocol != protocol:
		s.refuse(w, refuse(protocol, http.StatusNotFound, fmt.Sprintf("no such path for agents: %s %s", r.Method, r.URL.Path)))
		return
	}
	c.serve(ctx)
}

func (s *Session) isToken(shown string) bool {
	return subtle.ConstantTimeCompare([]byte(shown), []byte(s.token)) == 1
}

// abort ends the call of a closed session, even if the client never reads.
func (c *call) abort() {
	c.cancel()
	_ = c.rc.SetReadDeadline(time.Unix(1, 0))
	_ = c.rc.SetWriteDeadline(time.Unix(1, 0))
}

func (s *Session) refuse(w http.ResponseWriter, no *refusal) {
	s.change(func(u *Usage) { u.Refused++ })
	no.write(w)
}

func (c *call) serve(ctx context.Context) {
	free := c.admit(ctx)
	if free == nil {
		return // the client left, or the attempt ended
	}
	defer free()
	refused := c.prepare()
	if refused == nil {
		refused = c.forbidden(ctx)
		defer func() { c.release(c.reserved) }()
	}
	if refused != nil {
		c.refuse(c.w, refused)
		return
	}
	if ctx.Err() != nil {
		return
	}
	c.change(func(*Usage) {
		c.numbered++
		c.number = c.numbered
	})
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // send adds the body
			r.Out.URL, r.Out.Host, r.Out.Header = c.url, "", outbound(c.in.Header, c.grant.Provider)
			r.Out.TransferEncoding, r.Out.Trailer = nil, nil
		},
		Transport:     roundTrip(func(out *http.Request) (*http.Response, error) { return c.exchange(ctx, out) }),
		ErrorHandler:  c.unreachable,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(c.w, c.in.WithContext(ctx))
}

// admit waits for the call's slots and returns a function that frees them, or nil if the call ended.
func (c *call) admit(ctx context.Context) (free func()) {
	places := []chan struct{}{c.slots}
	if n := c.in.ContentLength; n < 0 || n >= largeRequest {
		places = append(places, c.large, c.gateway.large)
	}
	leave := func(taken []chan struct{}) {
		for _, place := range taken {
			<-place
		}
	}
	for i, place := range places {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			leave(places[:i])
			return nil
		}
	}
	c.bodySent = sync.OnceFunc(func() { leave(places[1:]) })
	return func() {
		c.bodySent()
		<-c.slots
	}
}

// prepare reads the request and may return a refusal.
func (c *call) prepare() *refusal {
	body, refused := c.readBody()
	if refused != nil {
		return refused
	}
	var err error
	if c.req, err = readRequest(c.route, body, c.grant); err != nil {
		return refuse(c.route.protocol, http.StatusBadRequest, err.Error())
	}
	if c.grant.MinConfidence > 0 && c.guarded() {
		c.req.body = c.route.kind.sureOf(c.req.body)
	}
	if c.url, err = c.route.target(c.grant.Provider.Endpoint(), c.in.URL.Query()); err != nil {
		return refuse(c.route.protocol, http.StatusBadGateway, "the provider cannot be reached: correct base_url")
	}
	return nil
}

func (c *call) readBody() (string, *refusal) {
	if enc := c.in.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return "", refuse(c.route.protocol, http.StatusUnsupportedMediaType, "compressed requests are not read; turn request compression off")
	}
	_ = c.rc.SetReadDeadline(time.Now().Add(bodyTime)) // connections use the machine's clock
	var body strings.Builder
	body.Grow(int(min(max(c.in.ContentLength, 0), maxRequest)))
	_, err := io.Copy(&body, http.MaxBytesReader(c.w, c.in.Body, maxRequest))
	_ = c.rc.SetReadDeadline(time.Time{})
	if err == nil {
		return body.String(), nil
	}
	status, text := http.StatusBadRequest, "the body ended early"
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		status, text = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d MiB", maxRequest>>20)
	}
	return "", refuse(c.route.protocol, status, text)
}

func (s *Session) over() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gaveUp
}

// forbidden asks the breaker and the budget. Nil means that the call may proceed, or that it ended while waiting.
func (c *call) forbidden(ctx context.Context) *refusal {
	if c.route.kind == models {
		return nil
	}
	if why := c.over(); why != "" {
		return refuse(c.route.protocol, http.StatusForbidden, "the attempt is over: "+why)
	}
	now := c.gateway.Now()
	if c.route.kind != countTokens { // counting is free of charge
		wanted := c.grant.shareOf(c.req.model, tokens{input: inputOf(c.req.size), output: c.req.most})
		why, ok := c.reserve(ctx, wanted)
		if ok {
			c.reserved = wanted
		} else if why != "" {
			return c.route.refuseLimit(c.in.Header, policy.Limit{Kind: policy.UsageLimit}, "Pawl stopped it: "+why+".", now)
		}
	}
	l, closed := c.grant.Limited(ctx)
	if !closed {
		return nil
	}
	return c.route.refuseLimit(c.in.Header, l, cmp.Or(l.Message, "the account is limited ("+string(l.Kind)+")"), now)
}
