package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlbot/pawl/policy"
)

// Shared keeps small values that all nodes of one Pawl see.
type Shared interface {
	// UpdateShared replaces the value under key by what f makes of it, as one atomic read-modify-write.
	// now is by a clock that is the same for all nodes. old is empty when there is no value; with nil
	// as its answer the value stays. f may be called more than once, and must not keep old.
	UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
}

// Keys of limiters beside installation ids, as GitHub counts these requests apart.
const (
	asAppKey     int64 = 0
	anonymousKey int64 = -1
)

// urgency is what a request may take of the limits, and how long it waits for them. Zero is for what
// the work needs or a person waits for.
type urgency int

const (
	needed urgency = iota
	// cosmetic shows how the work stands. It waits for cosmeticWait only, and leaves a fifth of every limit.
	cosmetic
	// background is work for which nobody waits. It leaves a fifth of every limit, of the hour by
	// GitHub's count too.
	background

	urgencies = iota
)

const (
	// cosmeticWait bounds the wait of one cosmetic request: the caller shows the newest state later.
	cosmeticWait = 10 * time.Second
	// backgroundWait is how long background work waits: a little more than the 60 s that GitHub asks
	// for after a secondary limit without a time.
	backgroundWait = 90 * time.Second
	// sharedWait bounds one use of what the nodes share.
	sharedWait = 5 * time.Second
)

// patience is how long one call waits for limits, over all its tries.
func (c *Client) patience(r request) time.Duration {
	switch r.urgency {
	case cosmetic:
		return min(cosmeticWait, c.maxWait)
	case background:
		return max(backgroundWait, c.maxWait)
	}
	return c.maxWait
}

// limiter keeps one installation's requests within GitHub's limits. What they have used is in memory,
// or shared by the nodes; where it cannot be reached the limiter goes on with what it last saw. Each
// waiting request runs in its caller's goroutine.
type limiter struct {
	*Client
	key string
	// underWay has a place for each request that may be at GitHub at the same time.
	underWay chan struct{}
	// turns let one request of each kind look for room at a time, in the order in which they came. So a
	// write that waits for its minute holds up no read, and what is cosmetic nothing that is needed.
	turns [2 * urgencies]chan struct{}

	mu     sync.Mutex
	usage  usage     // by this node's clock
	apart  bool      // the last update of usage could not be shared
	scarce time.Time // until then less than a fifth is left of the hour, as GitHub last said

	points prometheus.Counter // for people to see
}

func (c *Client) limiter(key int64) *limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.limiters[key]
	if l == nil {
		most := atOnce
		if c.cfg.Shared != nil {
			most = atOnceShared
		}
		name := strconv.FormatInt(key, 10)
		l = &limiter{Client: c.Fenced(nil), key: "github-limits-" + name, underWay: make(chan struct{}, most), points: c.points.WithLabelValues(name)}
		for i := range l.turns {
			l.turns[i] = make(chan struct{}, 1)
		}
		c.limiters[key] = l
	}
	return l
}

// need is what a request takes. GitHub counts neither a check run nor a token as content.
func (r request) need() need {
	n := need{points: readPoints, spare: r.urgency != needed}
	if r.writes() {
		n.points, n.content = writePoints, r.as != asApp && !strings.Contains(r.route, "/check-runs")
	}
	return n
}

// enter waits until the request may be sent. A wait longer than patience or the context allows is a
// *RateLimited at once. Whoever is let in calls leave.
func (l *limiter) enter(ctx context.Context, r request, patience time.Duration) error {
	began := l.cfg.Now()
	l.mu.Lock()
	scarce := l.scarce
	l.mu.Unlock()
	if r.urgency == background && scarce.After(began) {
		return &RateLimited{Method: r.method, Path: r.route, Until: scarce.Add(time.Second)}
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	turn := l.turns[r.urgency]
	if r.writes() {
		turn = l.turns[urgencies+r.urgency]
	}
	// Those before it in the queue may take as long again as it has waited.
	if !take(patient, turn) {
		return l.rateLimited(r, patience)
	}
	defer func() { <-turn }()
	for {
		if !take(patient, l.underWay) {
			return l.rateLimited(r, patience)
		}
		var wait time.Duration
		err := l.update(patient, func(now time.Time, u usage) (next usage) {
			next, wait = u.admit(now, r.need())
			return next
		})
		if err == nil && wait <= 0 {
			return nil
		}
		<-l.underWay
		deadline, bounded := ctx.Deadline()
		if err == nil && (l.cfg.Now().Add(wait).Sub(began) > patience || bounded && time.Until(deadline) < wait) {
			return l.rateLimited(r, wait)
		}
		if err != nil || l.cfg.Sleep(patient, wait) != nil {
			return l.rateLimited(r, patience)
		}
	}
}

// take takes a free place, also when the context has ended, or waits for one until it does.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// rateLimited leaves a wait to the caller.
func (l *limiter) rateLimited(r request, wait time.Duration) *RateLimited {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	l.usage = l.usage.settle(now)
	hold := l.usage.Hold
	return &RateLimited{Method: r.method, Path: r.route, Until: policy.Later(hold, now.Add(wait)), Secondary: l.usage.Secondary || !hold.After(now)}
}

// leave ends a request that was let in. What its answer says is noted before another may follow.
func (l *limiter) leave(ctx context.Context, r request, a answer) {
	l.mu.Lock()
	l.noteHour(a.header)
	strikes := l.usage.Strikes
	l.mu.Unlock()
	if a.sent && a.status != http.StatusNotModified {
		l.points.Add(float64(r.need().points))
	}
	if a.wantsPause(l.cfg.Now()) || strikes > 0 {
		// The others must know it even if the caller gave up.
		_ = l.update(context.WithoutCancel(ctx), func(now time.Time, u usage) usage { return u.answered(now, a) })
	}
	<-l.underWay
}

// update changes the usage that the nodes share, or this node's own. f may be called again. The error
// is the context's.
func (l *limiter) update(ctx context.Context, f func(now time.Time, u usage) usage) error {
	if l.cfg.Shared != nil {
		err := l.updateShared(ctx, f)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		l.cfg.Log.Warn().Err(err).Str("key", l.key).Msg("the use of GitHub's limits cannot be shared; going on with what was last known of it")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	l.usage, l.apart = f(now, l.usage.settle(now)), true
	return nil
}

func (l *limiter) updateShared(ctx context.Context, f func(now time.Time, u usage) usage) error {
	ctx, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	l.mu.Lock()
	own, apart := l.usage, l.apart
	l.mu.Unlock()
	var next usage
	var ahead time.Duration // of the database's clock before this node's
	err := l.cfg.Shared.UpdateShared(ctx, l.key, func(now time.Time, old []byte) []byte {
		u, err := parseUsage(old)
		if err != nil {
			l.cfg.Log.Error().Err(err).Str("key", l.key).Msg("the shared use of GitHub's limits cannot be read; counting starts anew")
		}
		ahead = now.Sub(l.cfg.Now())
		if mine := own.by(ahead); apart && mine.Hold.After(u.Hold) {
			u.Hold, u.Secondary, u.Strikes = mine.Hold, mine.Secondary, max(u.Strikes, mine.Strikes)
		}
		next = f(now, u.settle(now))
		text, err := json.Marshal(next)
		if err != nil || bytes.Equal(text, old) {
			return nil // an error cannot happen: a number and times of this century
		}
		return text
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usage, l.apart = next.by(-ahead), false
	return nil
}

// noteHour keeps whether less than a fifth is left of the hourly limit (docs.github.com, "Checking the
// status of your rate limit"): that is for what people wait for, and for tokens. l.mu is held.
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
	// A reset after more than an hour is of a clock that is wrong.
	l.scarce = policy.Earlier(reset, l.cfg.Now().Add(longestWait))
}
