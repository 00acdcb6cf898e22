package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// maxTries is how often one call is sent when GitHub fails or holds it back.
const maxTries = 3

// Waits between tries after a failure: full jitter up to retryBase, doubled
// each time, at most retryCap. A creation that may have been done waits at
// least settle first, so that looking it up finds what GitHub was still doing.
const (
	retryBase = 500 * time.Millisecond
	retryCap  = 8 * time.Second
	settle    = time.Second
)

// retries is the transport that sends a request again which GitHub held back or
// did not answer properly, and looks up first whether a creation was done.
type retries struct {
	*call
	next http.RoundTripper
}

// RoundTrip returns GitHub's last word, or what the call ends with.
func (t retries) RoundTrip(req *http.Request) (_ *http.Response, err error) {
	defer func() { t.ended = err }()
	ctx := req.Context()
	for try := 1; ; try++ {
		resp, err := t.next.RoundTrip(rewound(req))
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("%s %s: %w", t.method, t.route, ctx.Err())
		case err != nil && !t.last.sent && t.last.err == nil:
			return nil, err // no place within the limits, or no token
		}
		switch t.last.class() {
		case limited:
			err = t.heldBack(try)
		case unknown:
			err = t.afterFailure(ctx, try)
		default:
			return resp, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// rewound is a request with its whole body, whoever has sent it before.
func rewound(req *http.Request) *http.Request {
	req = req.Clone(req.Context())
	if req.GetBody != nil {
		req.Body, _ = req.GetBody() // in memory, which cannot fail
	}
	return req
}

// heldBack says whether a call goes on that GitHub answered with a limit; the
// next try waits for it.
func (t retries) heldBack(try int) error {
	until, secondary := t.limiter(t.limitKey()).held(t.now())
	t.log.Warn().Str("method", t.method).Str("path", t.last.path).Int("status", t.last.status).
		Time("until", until).Bool("secondary", secondary).Msg("GitHub's rate limit reached")
	if try < maxTries {
		return nil
	}
	return &RateLimited{Method: t.method, Path: t.last.path, Until: until, Secondary: secondary}
}

// afterFailure waits after a try with an unknown result and looks up whether
// a creation was done. It returns errFound when the call is done after all, and
// another error when there is nothing left to try.
func (t retries) afterFailure(ctx context.Context, try int) error {
	a := t.last
	failure := t.failure()
	last := try >= maxTries
	if t.find == nil && last {
		return failure
	}
	pause := policy.Retry(try, retryBase, retryCap, rand.Float64())
	if t.find != nil {
		pause += settle
	}
	if a.wantsPause(t.now()) {
		pause = 0 // the next request waits as long as GitHub wants
	}
	t.log.Info().Str("method", t.method).Str("path", a.path).Int("status", a.status).
		Int("try", try).Dur("pause", pause).AnErr("error", failure).Msg("GitHub failed, trying again")
	if pause > 0 {
		if err := t.sleep(ctx, pause); err != nil {
			return fmt.Errorf("%w (then %w)", failure, err)
		}
	}
	if t.find != nil {
		found, err := t.find(ctx)
		if err != nil {
			return fmt.Errorf("%w (whether it was done could not be looked up: %w)", failure, err)
		}
		if found {
			return errFound
		}
	}
	if last {
		return failure
	}
	return nil
}

// places is the transport that keeps requests within GitHub's limits: it sends
// each at its place among those of all nodes.
type places struct {
	*call
	next http.RoundTripper
}

// lateMost is how long after it was admitted a request may still be sent. It takes
// another place after that.
const lateMost = 2 * time.Second

// errLate says that a request was not sent, because its place had gone by.
var errLate = errors.New("too late for its place within GitHub's limits")

// RoundTrip sends one request. One that comes too late for its place, because the
// process stood still or the fence took its time, is not sent: it takes another
// place, and after maxTries the caller waits. A token that GitHub refuses was
// revoked or expired before its time: then it takes one fresh token, and a place
// for it.
func (t places) RoundTrip(req *http.Request) (*http.Response, error) {
	renewed := false
	for late := 0; late < maxTries; {
		resp, token, err := t.send(req)
		switch {
		case errors.Is(err, errLate):
			late++
			t.log.Info().Str("method", t.method).Str("route", t.route).Msg("too late for its place among the requests to GitHub; taking another")
		case err == nil && resp.StatusCode == http.StatusUnauthorized && t.as == asInstallation && !renewed:
			renewed = true
			t.minted.drop(t.repo, token)
			req = rewound(req)
		default:
			return resp, err
		}
	}
	return nil, &RateLimited{Method: t.method, Path: t.route, Until: t.now().Add(lateMost), Secondary: true}
}

// send sends a request at its next place, with the token that is good then.
func (t places) send(req *http.Request) (resp *http.Response, token string, err error) {
	l, ctx := t.limiter(t.limitKey()), req.Context()
	n := l.needOf(t.request)
	t.last = answer{path: req.URL.Path}
	began := t.now()
	at, err := l.enter(ctx, t.request, n, t.patience)
	t.patience -= t.now().Sub(began)
	if err != nil {
		return nil, "", err
	}
	defer func() { l.leave(ctx, n, t.last) }()
	if req, token, err = t.authorized(req); err != nil {
		return nil, "", err
	}
	trying, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	req = req.WithContext(trying)
	if t.newest != nil {
		if err := setBody(req, t.newest(trying)); err != nil {
			return nil, "", err
		}
	}
	if t.fence != nil && t.writes() {
		if err := t.fence(trying); err != nil {
			t.last.err = err
			return nil, "", err
		}
	}
	// By the clock on the wall, which goes on while the machine is suspended.
	if t.now().Round(0).Sub(at.Round(0)) > lateMost {
		return nil, "", errLate
	}
	resp, err = t.next.RoundTrip(req)
	return resp, token, err
}

func setBody(req *http.Request, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	// net/http asks for the body again when a connection was closed while it was idle.
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	req.Body, err = req.GetBody()
	req.ContentLength = int64(len(text))
	return err
}

// Fenced is the client for somebody who may lose the right to write while a request
// waits, or while the process is stopped: right before each request that changes
// something is sent, after all waiting for limits and places, fence is asked, and its
// error keeps the request from being sent. A fence that will never let anything
// through again should end the request's context, so that no further try is made.
func (c *Client) Fenced(fence func(context.Context) error) *Client {
	fenced := *c
	fenced.fence = fence
	return &fenced
}
