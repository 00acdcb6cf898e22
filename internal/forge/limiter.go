package forge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Shared keeps small values that all nodes of one Pawl see, so that they keep
// GitHub's limits together. A store implements it for several nodes; without
// one a client keeps the values in its own memory.
type Shared interface {
	// UpdateShared replaces the value under key by what f makes of it, as one atomic
	// read-modify-write. now is the time by a clock that is the same for all nodes,
	// read within it. old is empty when there is no value; with nil as its answer the
	// value stays. f may be called more than once, and must not keep old.
	UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
}

// memory is a Shared for one process, by the process's clock.
type memory struct {
	now func() time.Time

	mu     sync.Mutex
	values map[string][]byte
}

// UpdateShared implements Shared. It never fails.
func (m *memory) UpdateShared(_ context.Context, key string, f func(time.Time, []byte) []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = make(map[string][]byte)
	}
	if next := f(m.now(), m.values[key]); next != nil {
		m.values[key] = next
	}
	return nil
}

// Keys of limiters beside installation ids: GitHub counts requests with the
// App's JWT and without credentials apart.
const (
	asAppKey     int64 = 0
	anonymousKey int64 = -1
)

const (
	// sharedWait bounds one use of what the nodes share.
	sharedWait = 5 * time.Second
	// askAgain is when to look again for the answer of a write that is under way,
	// perhaps on another node.
	askAgain = 250 * time.Millisecond
)

// limiter keeps one installation's requests within GitHub's limits: its queues say
// which request of this process is next, the usage that the nodes share says when.
// Each waiting request runs in its caller's goroutine; there is no other.
//
// When what the nodes share cannot be reached, requests go on with what this
// node last saw, and half of the limits.
type limiter struct {
	*Client
	key string

	mu       sync.Mutex
	reads    queue
	writes   queue
	underWay int
	seen     usage         // what was last seen of the shared usage
	ahead    time.Duration // of the shared clock before this node's
	used     int64         // points, for people to see
	hour     hourlyLimit   // what GitHub last said is left
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
		l = &limiter{Client: c.Fenced(nil), key: "github-limits-" + strconv.FormatInt(key, 10)}
		c.limiters.byKey[key] = l
	}
	return l
}

// needOf is what a request takes of the limits.
func (l *limiter) needOf(r request) need {
	n := need{node: l.node, points: readPoints, spare: r.urgency == cosmetic || r.urgency == background}
	if !r.writes() {
		return n
	}
	n.points = writePoints
	if r.as == asApp {
		return n // a token is neither content nor spaced
	}
	n.content = !r.checkRun()
	if l.limits.Spacing > 0 {
		n.writer = rand.Text()[:12]
	}
	return n
}

// enter waits until the request may be sent, and returns when that was asked for.
// A wait longer than patience or the context allows is returned as *RateLimited
// as soon as it is known. Whoever is let in calls leave.
func (l *limiter) enter(ctx context.Context, r request, n need, patience time.Duration) (at time.Time, err error) {
	if until, short := l.short(); short && r.urgency == background {
		return at, &RateLimited{Method: r.method, Path: r.route, Until: until}
	}
	w := &waiter{rank: r.urgency.rank()}
	q := &l.reads
	if r.writes() {
		q = &l.writes
	}
	began := l.now()
	l.join(q, w)
	defer l.quit(q, w)
	for {
		at = l.now()
		wait, guess, err := l.ask(ctx, q, w, n)
		now := l.now()
		until, secondary := l.held(now)
		guess = max(guess, until.Sub(now)) // also for one behind another that sits out a hold
		switch {
		case err != nil:
			return at, waitEnded(r, err)
		case wait <= 0:
			return at, nil
		case tooLong(ctx, began, now, guess, patience):
			return at, &RateLimited{Method: r.method, Path: r.route, Until: now.Add(guess), Secondary: secondary || !until.After(now)}
		}
		// It looks again when its patience has ended, whether or not those before it
		// came to anything.
		if err := l.doze(ctx, w, min(wait, max(0, patience-now.Sub(began))+1)); err != nil {
			return at, waitEnded(r, err)
		}
	}
}

// untilWoken is the wait of a request whose turn comes by other requests.
const untilWoken = time.Hour

// ask looks for a place for the first of a queue. wait is how long until it is
// worth another look, and guess how long it may take until the place: it decides
// whether to wait at all.
func (l *limiter) ask(ctx context.Context, q *queue, w *waiter, n need) (wait, guess time.Duration, err error) {
	l.mu.Lock()
	w.woken = false
	place := q.place(w)
	most := l.limits.Concurrent
	if n.spare {
		most = max(1, most*4/5)
	}
	free := place == 0 && l.underWay < most
	l.mu.Unlock()
	if place > 0 && n.writer != "" {
		return untilWoken, time.Duration(place)*l.limits.Spacing + 1, nil
	}
	if !free {
		return untilWoken, 1, nil // not known, but not at once
	}
	awaited := false // whether another write, perhaps of another node, is still unanswered
	err = l.update(ctx, func(now time.Time, u usage, limits Limits) (next usage) {
		next, wait = u.admit(now, limits, n)
		awaited = n.writer != "" && next.Writer != "" && wait <= answerWait+turnWait
		return next
	})
	guess = wait
	switch {
	case err != nil:
	case wait <= 0:
		l.mu.Lock()
		l.underWay++
		l.mu.Unlock()
	case awaited:
		wait, guess = min(wait, askAgain), min(wait, l.limits.Spacing) // the answer is expected soon
	}
	return wait, guess, err
}

// leave ends a request that was let in. What its answer says is noted before
// another may follow.
func (l *limiter) leave(ctx context.Context, n need, a answer) {
	l.mu.Lock()
	strikes := l.seen.Strikes
	l.mu.Unlock()
	if n.writer != "" || a.wantsPause(l.now()) || strikes > 0 {
		// The others must know it even if the caller gave up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedWait)
		defer cancel()
		_ = l.update(ctx, func(now time.Time, u usage, limits Limits) usage { return u.answered(now, limits, n, a) })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hour.note(a.header, l.now())
	if a.sent && a.status != http.StatusNotModified {
		l.used += int64(n.points)
	}
	l.underWay--
	l.wakeFirst()
}

// update changes the usage that the nodes share, or this node's view of it when
// it cannot be reached. f returns the next usage, and may be called again. The
// error is the context's.
func (l *limiter) update(ctx context.Context, f func(now time.Time, u usage, limits Limits) usage) error {
	l.mu.Lock()
	seen, ahead := l.seen, l.ahead
	l.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	var result usage
	var asked time.Time
	err := l.shared.UpdateShared(waiting, l.key, func(now time.Time, old []byte) []byte {
		u, err := parseUsage(old)
		if err != nil {
			l.log.Error().Err(err).Str("key", l.key).Msg("the shared use of GitHub's limits cannot be read; counting starts anew")
		}
		asked, ahead = now, now.Sub(l.now())
		result = f(now, u.heldLike(seen).settle(now, l.limits), l.limits)
		text, err := json.Marshal(result)
		if err != nil || bytes.Equal(text, old) {
			return nil // an error cannot happen: texts, a number and times of this century
		}
		return text
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		l.log.Warn().Err(err).Str("key", l.key).Msg("the use of GitHub's limits cannot be shared; going on with half of them")
		asked = l.now().Add(ahead)
		result = f(asked, seen.settle(asked, l.limits), l.limits.half())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.ahead = result.heldLike(l.seen.settle(asked, l.limits)), ahead
	return nil
}

// held is what this node knows of a time before which GitHub wants nothing.
func (l *limiter) held(now time.Time) (until time.Time, secondary bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = l.seen.settle(now.Add(l.ahead), l.limits)
	return l.seen.Hold.Add(-l.ahead), l.seen.Secondary
}

func waitEnded(r request, err error) error {
	return fmt.Errorf("%s %s: wait for the rate limit: %w", r.method, r.route, err)
}

// tooLong says whether a wait is left to the caller.
func tooLong(ctx context.Context, since, now time.Time, wait, patience time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return wait > 0 && (now.Add(wait).Sub(since) > patience || bounded && time.Until(deadline) < wait)
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
	if latest := now.Add(longestWait); reset.After(latest) {
		reset = latest
	}
	*h = hourlyLimit{limit, remaining, reset}
}

// short says that less than a fifth is left of the hour, until when. That is kept
// for what people wait for: without tokens of the App nothing goes on.
func (l *limiter) short() (until time.Time, short bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hour
	return h.reset.Add(time.Second), h.limit > 0 && h.remaining < h.limit/5 && h.reset.After(l.now())
}
