package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Shared keeps small values that all nodes of one Pawl see, so that they keep
// GitHub's limits together. A store implements it for several nodes.
type Shared interface {
	// UpdateShared replaces the value under key by what f makes of it, as one atomic
	// read-modify-write. now is the time by a clock that is the same for all nodes,
	// read within it. old is empty when there is no value; with nil as its answer the
	// value stays. f may be called more than once, and must not keep old.
	UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
}

// Keys of limiters beside installation ids: GitHub counts requests with the
// App's JWT and without credentials apart.
const (
	asAppKey     int64 = 0
	anonymousKey int64 = -1
)

// urgency is what a request may take of the limits, and how long it waits for them.
// Its zero value is for what the work needs or a person waits for.
type urgency int

const (
	needed urgency = iota
	// cosmetic shows how the work stands. It waits for cosmeticWait only, and leaves
	// a fifth of every limit to the rest.
	cosmetic
	// background is work for which nobody waits. It leaves a fifth of every limit to
	// the rest, that of the hour by GitHub's own count too.
	background

	urgencies = iota
)

const (
	// cosmeticWait bounds the wait of one cosmetic request: the caller shows the
	// newest state later.
	cosmeticWait = 10 * time.Second
	// backgroundWait is how long work waits for limits for which nobody waits, and
	// which holds up no step: a little more than the 60 s that GitHub asks for after
	// a secondary limit without a time.
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

// limiter keeps one installation's requests within GitHub's limits. What they have
// used is in memory, or shared by the nodes; then the limiter has what it last saw of
// it, and goes on with that where it cannot be reached. Each waiting request runs in
// its caller's goroutine; there is no other.
type limiter struct {
	*Client
	key string
	// underWay has a place for each request that may be at GitHub at the same time.
	underWay chan struct{}
	// turns let one request of each kind look for room at a time, and the others wait
	// in the order in which they came. So a write that waits for its minute holds up
	// no read, and what is cosmetic nothing that is needed.
	turns [2 * urgencies]chan struct{}

	mu    sync.Mutex
	usage usage       // by this node's clock
	apart bool        // the last update of usage could not be shared
	used  int64       // points, for people to see
	hour  hourlyLimit // what GitHub last said is left
}

// limiters are the limiters of a client, one for each installation.
type limiters struct {
	mu    sync.Mutex
	byKey map[int64]*limiter
}

// limiter returns the limiter of a key, made when it is first asked for.
func (c *Client) limiter(key int64) *limiter {
	c.limiters.mu.Lock()
	defer c.limiters.mu.Unlock()
	l := c.limiters.byKey[key]
	if l == nil {
		most := atOnce
		if c.shared != nil {
			most = atOnceShared
		}
		l = &limiter{Client: c.Fenced(nil), key: "github-limits-" + strconv.FormatInt(key, 10), underWay: make(chan struct{}, most)}
		for i := range l.turns {
			l.turns[i] = make(chan struct{}, 1)
		}
		c.limiters.byKey[key] = l
	}
	return l
}

// needOf is what a request takes of the limits. A token is neither content nor
// spaced.
func (l *limiter) needOf(r request) need {
	n := need{points: readPoints, spare: r.urgency != needed}
	if r.writes() {
		n.points = writePoints
	}
	if r.writes() && r.as != asApp {
		n.content, n.spacing = !r.checkRun(), l.spacing
	}
	return n
}

// enter waits until the request may be sent, and returns since when that holds.
// A wait longer than patience or the context allows is returned as *RateLimited
// as soon as it is known. Whoever is let in calls leave.
func (l *limiter) enter(ctx context.Context, r request, n need, patience time.Duration) (at time.Time, err error) {
	if until, short := l.short(); short && r.urgency == background {
		return at, &RateLimited{Method: r.method, Path: r.route, Until: until}
	}
	began := l.now()
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	turn := l.turns[r.urgency]
	if r.writes() {
		turn = l.turns[urgencies+r.urgency]
	}
	if err := take(patient, turn); err != nil {
		return at, l.waitEnded(ctx, r, patience)
	}
	defer func() { <-turn }()
	for {
		if err := take(patient, l.underWay); err != nil {
			return at, l.waitEnded(ctx, r, patience)
		}
		at, wait, err := l.admit(patient, n)
		if err == nil && wait <= 0 {
			return at, nil
		}
		<-l.underWay
		if err == nil && tooLong(ctx, began, l.now(), wait, patience) {
			return at, l.rateLimited(r, wait)
		}
		if err != nil || l.sleep(patient, wait) != nil {
			return at, l.waitEnded(ctx, r, patience)
		}
	}
}

// take takes a free place, or waits for one until the context ends.
func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitEnded is what a wait ends with that came to nothing. Those before it in the
// queue may take as long again as it has waited.
func (l *limiter) waitEnded(ctx context.Context, r request, patience time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: wait for the rate limit: %w", r.method, r.route, ctx.Err())
	}
	return l.rateLimited(r, patience)
}

// rateLimited leaves a wait to the caller.
func (l *limiter) rateLimited(r request, wait time.Duration) *RateLimited {
	now := l.now()
	until, secondary := l.held(now)
	return &RateLimited{Method: r.method, Path: r.route, Until: later(until, now.Add(wait)), Secondary: secondary || !until.After(now)}
}

// tooLong says whether a wait is left to the caller.
func tooLong(ctx context.Context, since, now time.Time, wait, patience time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return now.Add(wait).Sub(since) > patience || bounded && time.Until(deadline) < wait
}

// admit takes what a request needs at a time, or says how long it has to wait first.
// The error is the context's.
func (l *limiter) admit(ctx context.Context, n need) (at time.Time, wait time.Duration, err error) {
	err = l.update(ctx, func(now time.Time, u usage) (next usage) {
		at = l.now()
		next, wait = u.admit(now, n)
		return next
	})
	return at, wait, err
}

// leave ends a request that was let in. What its answer says is noted before
// another may follow.
func (l *limiter) leave(ctx context.Context, n need, a answer) {
	l.mu.Lock()
	l.hour.note(a.header, l.now())
	if a.sent && a.status != http.StatusNotModified {
		l.used += int64(n.points)
	}
	strikes := l.usage.Strikes
	l.mu.Unlock()
	if a.wantsPause(l.now()) || strikes > 0 {
		// The others must know it even if the caller gave up.
		_ = l.update(context.WithoutCancel(ctx), func(now time.Time, u usage) usage { return u.answered(now, a) })
	}
	<-l.underWay
}

// update changes the usage that the nodes share, or this node's own where there is
// none or it cannot be reached. f returns the next usage, and may be called again. The
// error is the context's.
func (l *limiter) update(ctx context.Context, f func(now time.Time, u usage) usage) error {
	if l.shared != nil {
		err := l.updateShared(ctx, f)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		l.log.Warn().Err(err).Str("key", l.key).Msg("the use of GitHub's limits cannot be shared; going on with what was last known of it")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.usage, l.apart = f(now, l.usage.settle(now)), true
	return nil
}

// updateShared changes the usage in the database, by the database's clock.
func (l *limiter) updateShared(ctx context.Context, f func(now time.Time, u usage) usage) error {
	ctx, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	l.mu.Lock()
	own, apart := l.usage, l.apart
	l.mu.Unlock()
	var next usage
	var ahead time.Duration // of the database's clock before this node's
	err := l.shared.UpdateShared(ctx, l.key, func(now time.Time, old []byte) []byte {
		u, err := parseUsage(old)
		if err != nil {
			l.log.Error().Err(err).Str("key", l.key).Msg("the shared use of GitHub's limits cannot be read; counting starts anew")
		}
		ahead = now.Sub(l.now())
		if apart {
			u = u.heldLike(own.by(ahead))
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

// held is what this node knows of a time before which GitHub wants nothing.
func (l *limiter) held(now time.Time) (until time.Time, secondary bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usage = l.usage.settle(now)
	return l.usage.Hold, l.usage.Secondary
}

// hourlyLimit is what GitHub last said of the hourly limit (docs.github.com,
// "Checking the status of your rate limit"). Its zero value knows nothing.
type hourlyLimit struct {
	limit, remaining int
	reset            time.Time
}

// note keeps what an answer says.
func (h *hourlyLimit) note(header http.Header, now time.Time) {
	limit, limitErr := strconv.Atoi(header.Get("X-Ratelimit-Limit"))
	remaining, remainingErr := strconv.Atoi(header.Get("X-Ratelimit-Remaining"))
	reset, ok := resetTime(header)
	if limitErr != nil || remainingErr != nil || !ok {
		return
	}
	// A reset after more than an hour is of a clock that is wrong.
	*h = hourlyLimit{limit, remaining, earlier(reset, now.Add(longestWait))}
}

// short says that less than a fifth is left of the hour, until when. That is kept
// for what people wait for: without tokens of the App nothing goes on.
func (l *limiter) short() (until time.Time, short bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hour
	return h.reset.Add(time.Second), h.limit > 0 && h.remaining < h.limit/5 && h.reset.After(l.now())
}
