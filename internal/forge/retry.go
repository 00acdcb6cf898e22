package forge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
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

// errEmptyAnswer is a success without the thing it is about.
var errEmptyAnswer = errors.New("the answer holds no id")

// credentials says as whom a request is sent.
type credentials int

const (
	asInstallation credentials = iota
	asApp
	anonymous
	asToken
)

// request is one call to GitHub.
type request struct {
	method string
	// route is the path with its variable parts in braces, for the counts.
	route string
	as    credentials
	// repo is the repository whose token is used with asInstallation; with
	// asToken only its installation counts, as the one whose limits apply.
	repo Repo
	// token is what is sent with asToken.
	token string
	// urgency is what it waits behind.
	urgency urgency
	// once says that the answer is not read again, and not worth keeping.
	once bool
	// send does the call once.
	send func(ctx context.Context, gh *github.Client) error
	// done looks up whether a creation whose answer was lost has been done. Nil
	// means that doing it again changes nothing.
	done func(ctx context.Context) (bool, error)
	// explain replaces the function explain for the request's final answers;
	// nil keeps it.
	explain func(answer) (hint string, kind error)
}

// writes says whether it changes something at GitHub.
func (r request) writes() bool {
	return r.method != http.MethodGet && r.method != http.MethodHead && r.method != http.MethodOptions
}

func (r request) limitKey() int64 {
	switch r.as {
	case asApp:
		return asAppKey
	case anonymous:
		return anonymousKey
	default:
		return r.repo.Installation
	}
}

// do sends a request until it is done, refused, or out of tries.
func (c *Client) do(ctx context.Context, r request) error {
	renewals, patience := 0, c.patience(r)
	for try := 1; ; try++ {
		w, a, err := c.try(ctx, r, &patience)
		if err != nil {
			return err
		}
		switch judge(a) {
		case fine:
			return nil
		case unauthorized:
			if renewals++; r.as != asInstallation || renewals > 1 && w.waited < staleToken || renewals > maxTries {
				return c.failure(r, w, a)
			}
			// Revoked or expired before its time: one fresh token, and another one
			// when that may have been revoked while it waited for its place. This try
			// does not count.
			c.tokens.drop(r.repo, w.token)
			try--
		case limited:
			if err := c.backOff(r, w, a, try); err != nil {
				return err
			}
		case unknown:
			found, err := c.afterFailure(ctx, r, w, a, try)
			if found || err != nil {
				return err
			}
		default:
			return c.failure(r, w, a)
		}
	}
}

// staleToken is the wait for a place after which a token that is refused may have
// been good when it was taken.
const staleToken = 5 * time.Second

// try sends a request once, when the limits allow it, and takes what it waited
// for them from the patience. The token is taken before the place, so that
// nothing comes between the place and the request.
func (c *Client) try(ctx context.Context, r request, patience *time.Duration) (*wire, answer, error) {
	began := c.now()
	if err := c.pass(ctx, r, *patience); err != nil {
		return nil, answer{}, err
	}
	*patience -= c.now().Sub(began)
	w, err := c.wire(ctx, r)
	if err != nil {
		return nil, answer{}, err
	}
	g := c.governor(r.limitKey())
	if until, short := g.short(); short && r.urgency == background {
		return nil, answer{}, &RateLimited{Method: r.method, Path: r.route, Until: until}
	}
	a, leave, err := c.sendInPlace(ctx, r, w, g, *patience)
	if err != nil {
		return nil, answer{}, err
	}
	defer leave()
	*patience -= w.waited
	g.spend(r, w)
	g.note(a.header)
	if a.err != nil && ctx.Err() != nil {
		return nil, answer{}, fmt.Errorf("%s %s: %w", r.method, r.route, ctx.Err())
	}
	if a.err != nil && a.status < 300 {
		c.cache.drop(w.kept)
	}
	// A refusal is noted before the place is left: nobody may follow.
	switch reset, ok := resetTime(a.header); {
	case judge(a) == limited, ok && exhausted(a.header) && reset.After(c.now()):
		g.limited(ctx, a)
	case a.err == nil:
		g.fine(ctx)
	}
	return w, a, nil
}

// sendInPlace sends a request at its place among those of all nodes. One that
// comes too late for it, because the process stood still or the fence took its
// time, is not sent: it takes another place, and after maxTries the caller waits.
// leave gives the place back, when the answer was noted.
func (c *Client) sendInPlace(ctx context.Context, r request, w *wire, g *governor, patience time.Duration) (a answer, leave func(), err error) {
	began := c.now()
	for range maxTries {
		var at time.Time
		if leave, at, err = g.enter(ctx, r, patience-c.now().Sub(began)); err != nil {
			return answer{}, nil, err
		}
		w.waited = c.now().Sub(began)
		// By the clock on the wall, which goes on while the machine is suspended.
		late := func() time.Duration { return c.now().Round(0).Sub(at.Round(0)) }
		w.late = func() bool { return late() > g.tolerance(r) }
		trying, cancel := context.WithTimeout(ctx, tryTimeout)
		a = newAnswer(w, r.send(trying, c.github(w)))
		cancel()
		if !errors.Is(a.err, errLate) {
			return a, leave, nil
		}
		leave()
		c.log.Info().Str("method", r.method).Str("route", r.route).Dur("late", late()).Msg("too late for its place among the requests to GitHub; taking another")
	}
	return answer{}, nil, &RateLimited{Method: r.method, Path: r.route, Until: c.now().Add(clockSkew), Secondary: true}
}

// wire prepares one try with the credentials it needs.
func (c *Client) wire(ctx context.Context, r request) (*wire, error) {
	w := &wire{base: c.plain, cache: &c.cache, once: r.once, caller: r.limitKey(), sent: func() { c.stats.add(r.method, r.route) }, path: r.route}
	switch r.as {
	case asApp:
		w.base = c.signed
	case asToken:
		w.token = r.token
	case asInstallation:
		token, err := c.Token(ctx, r.repo)
		if err != nil {
			return nil, err
		}
		w.token = token
	}
	return w, nil
}

// backOff says when a call goes on that GitHub answered with a limit; the next
// try waits for it.
func (c *Client) backOff(r request, w *wire, a answer, try int) error {
	until, secondary := c.governor(r.limitKey()).held(c.now())
	c.log.Warn().Str("method", r.method).Str("path", w.path).Int("status", a.status).
		Time("until", until).Bool("secondary", secondary).Msg("GitHub's rate limit reached")
	if try < maxTries {
		return nil
	}
	return &RateLimited{Method: r.method, Path: w.path, Until: until, Secondary: secondary}
}

// afterFailure waits after a try with an unknown result and looks up whether
// a creation was done. It returns found when the call is done after all, and
// an error when there is nothing left to try.
func (c *Client) afterFailure(ctx context.Context, r request, w *wire, a answer, try int) (found bool, err error) {
	failure := c.failure(r, w, a)
	last := try >= maxTries
	if r.done == nil && last {
		return false, failure
	}
	pause := rand.N(min(retryBase<<(try-1), retryCap)) + 1
	if r.done != nil {
		pause += settle
	}
	if after, ok := retryAfter(a.header, c.now()); ok && a.status != 0 {
		pause = max(pause, after)
	}
	if pause > c.maxWait {
		g := c.governor(r.limitKey())
		g.limited(ctx, a) // whoever asks meanwhile is told the same
		until, secondary := g.held(c.now())
		return false, &RateLimited{Method: r.method, Path: w.path, Until: until, Secondary: secondary}
	}
	c.log.Info().Str("method", r.method).Str("path", w.path).Int("status", a.status).
		Int("try", try).Dur("pause", pause).Str("error", Redact(a.err.Error())).Msg("GitHub failed, trying again")
	if err := c.sleep(ctx, pause); err != nil {
		return false, fmt.Errorf("%w (then %w)", failure, err)
	}
	if r.done != nil {
		found, err := r.done(ctx)
		if err != nil {
			return false, fmt.Errorf("%w (whether it was done could not be looked up: %w)", failure, err)
		}
		if found {
			return true, nil
		}
	}
	if last {
		return false, failure
	}
	return false, nil
}

// redirected tells a repository or an issue that is elsewhere now from the redirect of
// a proxy or a page for logging in, which says nothing about either. GitHub points
// to "repositories/ID/…" of its own API.
func (c *Client) redirected(r request, w *wire, a answer) error {
	to := a.header.Get("Location")
	if at, err := c.api.Parse(to); err == nil && at.Host == c.api.Host && at.Path != w.path {
		rest, ok := strings.CutPrefix(at.Path, c.api.Path)
		if ok && (strings.HasPrefix(rest, "repositories/") || strings.HasPrefix(rest, "repos/")) {
			return &Moved{Method: r.method, Path: w.path, To: to}
		}
	}
	return &Error{Method: r.method, Path: w.path, Status: a.status, Message: "redirected to " + Redact(Clip(to, 200)), Kind: ErrUnavailable,
		Hint: "that is no answer of GitHub's API; look at github.v3_api_url and at the proxies on the way"}
}

// failure makes the error for an answer that ends the call.
func (c *Client) failure(r request, w *wire, a answer) error {
	if a.status >= 300 && a.status < 400 {
		return c.redirected(r, w, a)
	}
	read := explain
	if r.explain != nil {
		read = r.explain
	}
	hint, kind := read(a)
	if isPage(a) {
		hint, kind = "this is a page and no answer of GitHub's API; look at github.v3_api_url and at the proxies on the way", ErrUnavailable
	}
	e := &Error{Method: r.method, Path: w.path, Status: a.status, Message: a.message, Kind: kind, Hint: hint}
	if a.status < 300 {
		e.Cause = a.err // no answer, or one that broke off
	}
	return e
}
