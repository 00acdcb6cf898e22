package forge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// maxTries limits the tries of one call.
const maxTries = 3

// Waits between tries: full jitter up to retryBase, doubled up to retryCap. A creation waits at least settle before
// it is looked up.
const (
	retryBase = 500 * time.Millisecond
	retryCap  = 8 * time.Second
	settle    = time.Second
)

// retrying repeats throttled and unanswered requests. It looks up creations first.
type retrying struct{ next http.RoundTripper }

func (t retrying) RoundTrip(req *http.Request) (_ *http.Response, err error) {
	c := callOf(req)
	defer func() { c.ended = err }()
	ctx := req.Context()
	for try := 1; ; try++ {
		resp, err := t.next.RoundTrip(req)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", c.method, c.route, ctx.Err())
		}
		if err != nil && c.notSent() {
			return nil, err // no slot or no token
		}
		switch c.last.class() {
		case limited: // the next try waits
			limit := c.limitReached()
			if try >= maxTries {
				return nil, limit
			}
		case unknown:
			if err := c.afterFailure(ctx, try); err != nil {
				return nil, err
			}
		default:
			if !c.mayLag(try) {
				return resp, nil
			}
			if err := c.cfg.Sleep(ctx, settle); err != nil {
				return nil, fmt.Errorf("%w (then %w)", c.failure(), err)
			}
		}
	}
}

// mayLag reports whether a later try may find the object.
func (c *call) mayLag(try int) bool {
	if !c.lags || try >= maxTries {
		return false
	}
	return c.last.status == http.StatusNotFound && !isNoUser(c.failure())
}

// notSent reports whether the request stopped before wire.
func (c *call) notSent() bool { return !c.last.sent && c.last.err == nil }

func (c *call) limitReached() *RateLimited {
	limit := c.limiter(c.limitKey()).rateLimited(c.request, 0)
	limit.Path = c.last.path
	c.cfg.Log.Warn().
		Str("method", c.method).
		Str("path", limit.Path).
		Int("status", c.last.status).
		Time("until", limit.Until).
		Bool("secondary", limit.Secondary).
		Msg("GitHub's rate limit reached")
	return limit
}

// afterFailure waits after an unknown result and looks for a creation. It returns errFound if the creation was done,
// or another error if no tries are left.
func (c *call) afterFailure(ctx context.Context, try int) error {
	failure := c.failure()
	last := try >= maxTries
	if c.find == nil && last {
		return failure
	}
	pause := policy.Retry(try, retryBase, retryCap, rand.Float64())
	if c.find != nil {
		pause += settle
	}
	if c.last.wantsPause(c.cfg.Now()) {
		pause = 0 // the next request waits as GitHub asks
	}
	c.cfg.Log.Info().Str("method", c.method).Str("path", c.last.path).Int("status", c.last.status).
		Int("try", try).Dur("pause_ms", pause).AnErr("error", failure).Msg("GitHub failed, trying again")
	if pause > 0 && c.cfg.Sleep(ctx, pause) != nil {
		return fmt.Errorf("%w (then %w)", failure, ctx.Err())
	}
	if c.find != nil {
		found, err := c.find(ctx)
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

// refreshing repeats a request once with a fresh token.
type refreshing struct{ next http.RoundTripper }

func (t refreshing) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callOf(req)
	resp, err := t.next.RoundTrip(req)
	if err != nil || c.as != asInstallation {
		return resp, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		c.drop(c.repo, c.token)
		return t.next.RoundTrip(req)
	}
	return resp, nil
}

// authorizing adds the token and calls the fence. It requests a token only after the request has a slot.
type authorizing struct{ next http.RoundTripper }

func (t authorizing) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callOf(req)
	err := c.mayBeSent(req.Context())
	if err != nil {
		return nil, err
	}
	if !c.mayBeLate && c.cfg.Now().Sub(c.placed) > maxLateness {
		return nil, errLate
	}
	ctx, cancel := context.WithTimeout(req.Context(), TryTimeout)
	defer cancel()
	req = req.Clone(ctx)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if req.GetBody != nil { // tries resend the body
		req.Body, _ = req.GetBody() // reads memory and never fails
	}
	return t.next.RoundTrip(req)
}

func (c *call) mayBeSent(ctx context.Context) (err error) {
	if c.as == asInstallation {
		c.token, err = c.Apps.Token(ctx, c.repo)
		if err != nil {
			return err
		}
	}
	if c.fence == nil || !c.writes() {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, TryTimeout)
	defer cancel()
	c.last.err = c.fence(asking)
	return c.last.err
}

// Fenced returns a client that calls fence before each write, after all waiting; an error stops the request. A fence
// that fails for good should also end the context.
func (c *Client) Fenced(fence func(context.Context) error) *Client {
	fenced := *c
	fenced.fence = fence
	fenced.services()
	return &fenced
}
