package forge

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlbot/pawl/policy"
)

// Keys of the limiters that belong to no installation. GitHub counts their requests separately.
const (
	asAppKey     int64 = 0
	anonymousKey int64 = -1
)

// urgency orders requests within the limits. The zero value is for work and for users who wait.
type urgency int

const (
	needed urgency = iota
	// cosmetic shows progress. It waits at most cosmeticWait and leaves a fifth of every limit to other requests.
	cosmetic
	// background is work that no user waits for. It leaves a fifth of every limit, including GitHub's hourly limit.
	background

	urgencies = iota
)

const (
	// cosmeticWait limits a cosmetic request's wait; the caller retries with newer state.
	cosmeticWait = 10 * time.Second
	// backgroundWait exceeds the 60 s that GitHub asks for after a secondary limit without a reset time.
	backgroundWait = 90 * time.Second
)

// patience limits a call's total wait over all tries.
func (c *Client) patience(r request) time.Duration {
	switch r.urgency {
	case cosmetic:
		return min(cosmeticWait, c.maxWait)
	case background:
		return max(backgroundWait, c.maxWait)
	}
	return c.maxWait
}

// limiter keeps this node's requests to one installation within GitHub's limits.
type limiter struct {
	cfg *Config
	// inFlight holds one element for each request in flight.
	inFlight chan struct{}
	// turns let one request of each kind wait for room, in order of arrival. Waiting writes do not delay reads, and
	// cosmetic requests do not delay others.
	turns [2 * urgencies]chan struct{}

	mu     sync.Mutex
	limits *limits
	scarce time.Time // until then less than a fifth of the hourly limit remains

	points prometheus.Counter
}

func (c *Client) limiter(key int64) *limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.limiters[key]
	if l == nil {
		l = &limiter{
			cfg:      &c.cfg,
			inFlight: make(chan struct{}, atOnce),
			limits:   newLimits(),
			points:   c.points.WithLabelValues(strconv.FormatInt(key, 10)),
		}
		for i := range l.turns {
			l.turns[i] = make(chan struct{}, 1)
		}
		c.limiters[key] = l
	}
	return l
}

// need returns a request's cost. Check runs and tokens are not content.
func (r request) need() need {
	n := need{points: readPoints, spare: r.urgency != needed}
	if r.writes() {
		n.points = writePoints
		n.content = r.as != asApp && !strings.Contains(r.route, "/check-runs")
	}
	return n
}

func (l *limiter) turn(r request) chan struct{} {
	if r.writes() {
		return l.turns[urgencies+r.urgency]
	}
	return l.turns[r.urgency]
}

// maxLateness is how late a request may use its slot (our choice). limits.go allows 6.6 s.
const maxLateness = 500 * time.Millisecond

// errLate means that a request was ready too long after its slot.
var errLate = errors.New("too late for its slot")

// pacing sends a request at its slot within the limits. A late request takes one more slot.
type pacing struct{ next http.RoundTripper }

func (p pacing) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callOf(req)
	c.last = answer{path: req.URL.Path}
	c.mayBeLate = false
	resp, err := p.try(c, req)
	if errors.Is(err, errLate) {
		c.mayBeLate = true
		return p.try(c, req)
	}
	return resp, err
}

func (p pacing) try(c *call, req *http.Request) (*http.Response, error) {
	l := c.limiter(c.limitKey())
	ctx := req.Context()
	began := c.cfg.Now()
	err := l.enter(ctx, c.request, c.patience)
	c.placed = c.cfg.Now()
	c.patience -= c.placed.Sub(began)
	if err != nil {
		return nil, err
	}
	defer func() { l.leave(c.request, c.last) }()
	return p.next.RoundTrip(req)
}

// enter waits until the request may be sent. If patience is too short, it returns a *RateLimited, at once if the wait is
// known. After success the caller must call leave.
func (l *limiter) enter(ctx context.Context, r request, patience time.Duration) error {
	began := l.cfg.Now()
	if scarce := l.scarceUntil(); r.urgency == background && scarce.After(began) {
		return &RateLimited{Method: r.method, Path: r.route, Until: scarce.Add(time.Second)}
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	turn := l.turn(r)
	// The queue did not move within patience, so a retry needs at least as long.
	if !acquire(patient, turn) {
		return l.rateLimited(r, patience)
	}
	defer func() { <-turn }()
	for {
		if !acquire(patient, l.inFlight) {
			return l.rateLimited(r, patience)
		}
		wait := l.admit(r.need())
		if wait == 0 {
			return nil
		}
		<-l.inFlight
		if l.cfg.Now().Add(wait).Sub(began) > patience || endsWithin(ctx, wait) {
			return l.rateLimited(r, wait)
		}
		if l.cfg.Sleep(patient, wait) != nil {
			return l.rateLimited(r, patience)
		}
	}
}

func (l *limiter) admit(n need) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits.admit(l.cfg.Now(), n)
}

func (l *limiter) scarceUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scarce
}

func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && time.Until(deadline) < d
}

// acquire takes a free slot, even after the context ended, or waits for one.
func acquire(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *limiter) rateLimited(r request, wait time.Duration) *RateLimited {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	hold := l.limits.holdEnd(now)
	return &RateLimited{
		Method:    r.method,
		Path:      r.route,
		Until:     policy.Later(hold, now.Add(wait)),
		Secondary: l.limits.secondary || !hold.After(now),
	}
}

// leave records the answer and then frees the slot.
func (l *limiter) leave(r request, a answer) {
	l.mu.Lock()
	l.noteHour(a.header)
	l.limits.answered(l.cfg.Now(), a)
	l.mu.Unlock()
	if a.sent && a.status != http.StatusNotModified {
		l.points.Add(float64(r.need().points))
	}
	<-l.inFlight
}

// noteHour records whether less than a fifth of the hourly limit remains (docs.github.com, "Checking the status of
// your rate limit"). The caller holds l.mu.
func (l *limiter) noteHour(header http.Header) {
	limit, limitErr := strconv.Atoi(header.Get("X-Ratelimit-Limit"))
	remaining, remainingErr := strconv.Atoi(header.Get("X-Ratelimit-Remaining"))
	reset, ok := resetTime(header)
	if limitErr != nil || remainingErr != nil || !ok {
		return
	}
	if remaining >= limit/5 {
		reset = time.Time{}
	}
	// Later resets come from a wrong clock.
	l.scarce = policy.Earlier(reset, l.cfg.Now().Add(longestWait))
}
