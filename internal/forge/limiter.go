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

// Keys of limiters other than installation ids, as GitHub counts these requests separately.
const (
	asAppKey     int64 = 0
	anonymousKey int64 = -1
)

// urgency is a request's share of the limits, and how long it waits for them. Zero is for the work's needs and
// waiting users.
type urgency int

const (
	needed urgency = iota
	// cosmetic shows the work's state. It waits for cosmeticWait only, and leaves a fifth of every limit.
	cosmetic
	// background is work that no user waits for. It leaves a fifth of every limit, also of the hour by GitHub's
	// count.
	background

	urgencies = iota
)

const (
	// cosmeticWait limits the wait of one cosmetic request: the caller shows the newest state later.
	cosmeticWait = 10 * time.Second
	// backgroundWait is background work's wait: a little more than the 60 s that GitHub asks for after a secondary
	// limit without a time.
	backgroundWait = 90 * time.Second
)

// patience is one call's total wait for limits, over all its tries.
func (c *Client) patience(r request) time.Duration {
	switch r.urgency {
	case cosmetic:
		return min(cosmeticWait, c.maxWait)
	case background:
		return max(backgroundWait, c.maxWait)
	}
	return c.maxWait
}

// limiter keeps this node's requests to one installation within GitHub's limits. A waiting request runs in its
// caller's goroutine.
type limiter struct {
	cfg *Config
	// underWay has a slot for each concurrent request.
	underWay chan struct{}
	// turns let one request of each kind at a time look for room, in order of arrival. So a write that waits for its
	// minute delays no read, and cosmetic requests delay no needed one.
	turns [2 * urgencies]chan struct{}

	mu     sync.Mutex
	limits *limits
	scarce time.Time // until then less than a fifth of the hour is left, by GitHub's last answer

	points prometheus.Counter // for people
}

func (c *Client) limiter(key int64) *limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.limiters[key]
	if l == nil {
		l = &limiter{
			cfg:      &c.cfg,
			underWay: make(chan struct{}, atOnce),
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

// need is a request's cost. GitHub counts neither a check run nor a token as content.
func (r request) need() need {
	n := need{points: readPoints, spare: r.urgency != needed}
	if r.writes() {
		n.points = writePoints
		n.content = r.as != asApp && !strings.Contains(r.route, "/check-runs")
	}
	return n
}

// turn is the queue of a request's kind.
func (l *limiter) turn(r request) chan struct{} {
	if r.writes() {
		return l.turns[urgencies+r.urgency]
	}
	return l.turns[r.urgency]
}

// slotHolds is how long after getting its slot a request may still be sent, as if it were on its way: our choice,
// far below the 6.6 s of limits.go.
const slotHolds = 500 * time.Millisecond

// errLate says that a request was not sent because it was ready too long after its slot.
var errLate = errors.New("too late for its slot")

// pacing is the RoundTripper that sends a request at its next slot within the limits. A late request takes another
// slot, once; the first stays spent.
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

// enter waits until the request may be sent. If the wait exceeds patience or the context's deadline, it returns a
// *RateLimited at once. The caller must call leave after success.
func (l *limiter) enter(ctx context.Context, r request, patience time.Duration) error {
	began := l.cfg.Now()
	if scarce := l.scarceUntil(); r.urgency == background && scarce.After(began) {
		return &RateLimited{Method: r.method, Path: r.route, Until: scarce.Add(time.Second)}
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	turn := l.turn(r)
	// Those before it in the queue may take as long again as it has waited.
	if !acquire(patient, turn) {
		return l.rateLimited(r, patience)
	}
	defer func() { <-turn }()
	for {
		if !acquire(patient, l.underWay) {
			return l.rateLimited(r, patience)
		}
		wait := l.admit(r.need())
		if wait == 0 {
			return nil
		}
		<-l.underWay
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

// acquire acquires a free slot, even after the context has ended, or waits for one until it ends.
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
	hold := l.limits.held(now)
	return &RateLimited{
		Method:    r.method,
		Path:      r.route,
		Until:     policy.Later(hold, now.Add(wait)),
		Secondary: l.limits.secondary || !hold.After(now),
	}
}

// leave ends an admitted request. Its answer is noted before another request may follow.
func (l *limiter) leave(r request, a answer) {
	l.mu.Lock()
	l.noteHour(a.header)
	l.limits.answered(l.cfg.Now(), a)
	l.mu.Unlock()
	if a.sent && a.status != http.StatusNotModified {
		l.points.Add(float64(r.need().points))
	}
	<-l.underWay
}

// noteHour keeps whether less than a fifth of the hourly limit is left (docs.github.com, "Checking the status of
// your rate limit"): that is for waiting users, and for tokens. l.mu is held.
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
	// A reset after more than an hour comes from a wrong clock.
	l.scarce = policy.Earlier(reset, l.cfg.Now().Add(longestWait))
}
