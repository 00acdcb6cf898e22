package forge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Keys of quotas beside installation ids: GitHub counts requests with the
// App's JWT and without credentials apart.
const (
	asAppKey     int64 = 0
	anonymousKey int64 = -1
)

// urgency is what a request waits behind. Its zero value is for what the work
// needs: tokens, reading, the pull request.
type urgency int

const (
	// needed comes after what acknowledges.
	needed urgency = iota
	// acknowledges is a sign to a person who waits: a reaction, an answer.
	acknowledges
	// cosmetic shows how the work stands. It waits behind everything, for
	// cosmeticWait only, and leaves a fifth of every limit to the rest.
	cosmetic
	// background is work for which nobody waits. It waits behind everything as
	// long as others do, and leaves a fifth of every limit to the rest, that of the
	// hour by GitHub's own count too.
	background
)

// rank is the place in the queue.
func (u urgency) rank() int {
	return [...]int{needed: 1, acknowledges: 0, cosmetic: 2, background: 2}[u]
}

const (
	// cosmeticWait bounds the wait of one cosmetic request: the work must not
	// stand still for it. The caller shows the newest state later.
	cosmeticWait = 10 * time.Second
	// bookAhead bounds how early a place for a write is booked when another
	// node writes, too.
	bookAhead = 30 * time.Second
	// answerWait is how long the next write waits for the answer of the last.
	// GitHub itself ends a request after 10 s.
	answerWait = 10 * time.Second
	// sharedWait bounds one use of what the nodes share.
	sharedWait = 5 * time.Second
)

// governor keeps one installation's requests within GitHub's limits: it says
// who goes next, the Quota that the nodes share says when. Reads and writes
// queue apart, so a write that waits for its second holds up no read. Each
// waiting request runs in its caller's goroutine; there is no other.
//
// When what the nodes share cannot be reached, requests go on with what this
// node last saw and its part of the limits: one of the nodes seen, at most
// half.
type governor struct {
	key    string
	node   string
	limits Limits
	shared Shared
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	log    zerolog.Logger

	// deciding is held while the quota is asked, so that the number of requests
	// under way is right; it is a channel so that waiting ends with the context.
	deciding chan struct{}

	mu       sync.Mutex
	lanes    [2][]*ticket // reads and writes
	inFlight int
	open     *ticket // the write whose answer is awaited
	opened   time.Time
	rested   time.Time // when the last write was answered
	seen     Quota     // what was last seen of the shared quota
	used     int64     // points, for people to see
	hourly   hourly    // what GitHub last said is left
}

// ticket is one request that waits or is under way.
type ticket struct {
	urgency urgency
	cost    Cost
	since   time.Time
	woken   bool               // since it was last looked at
	wake    context.CancelFunc // nil while it does not sleep
}

func (t *ticket) lane() int {
	if t.cost.Write {
		return 1
	}
	return 0
}

// turn is what became of one look at a ticket.
type turn struct {
	// wait is how long until it is worth another look, or until the place.
	wait time.Duration
	// guess is how long it may take until the place; it decides whether to wait
	// at all.
	guess time.Duration
	// admitted: it has its place, at a time, which is after wait.
	admitted bool
	at       time.Time
}

// enter waits until the request may be sent and returns what to call when it is
// over, and the time of its place. A wait longer than patience or the context
// allows is returned as *RateLimited as soon as it is known.
func (g *governor) enter(ctx context.Context, r request, patience time.Duration) (leave func(), at time.Time, err error) {
	t := &ticket{urgency: r.urgency, since: g.now()}
	t.cost = Cost{Node: g.node, Points: readPoints, Write: r.writes() && r.as != asApp, Spare: r.urgency == cosmetic || r.urgency == background}
	if r.writes() {
		t.cost.Points = writePoints
	}
	g.join(t)
	for {
		turn, err := g.next(ctx, t)
		now := g.now()
		switch {
		case err != nil:
			g.quit(t)
			return nil, at, waitEnded(r, err)
		case turn.admitted && turn.wait <= 0:
			return func() { g.leave(t) }, turn.at, nil
		case turn.admitted:
			err = g.sleep(ctx, max(0, turn.at.Sub(now))) // deciding took its time, too
		case tooLong(ctx, t.since, now, turn.guess, patience):
			g.quit(t)
			return nil, at, &RateLimited{Method: r.method, Path: r.route, Until: now.Add(turn.guess), Secondary: g.secondary(now)}
		default:
			err = g.doze(ctx, t, turn.wait, max(0, patience-now.Sub(t.since))+1)
		}
		if err != nil {
			g.drop(t, turn.admitted)
			return nil, at, waitEnded(r, err)
		}
		if turn.admitted {
			// Another node may have been told meanwhile that GitHub wants nothing.
			if until := g.heldNow(ctx); !until.After(g.now()) {
				return func() { g.leave(t) }, turn.at, nil
			}
			g.leave(t)
			g.join(t)
		}
	}
}

// tolerance is how late a request may be sent after its place: a write that is
// spaced from others by little, the rest by what the windows add for the skew of
// clocks.
func (g *governor) tolerance(r request) time.Duration {
	if r.writes() && g.limits.Spacing > 0 {
		return lateWrite
	}
	return clockSkew
}

// lateWrite is what a write's place has beside the second to the next: another
// node adds clockSkew, which is for the clocks.
const lateWrite = time.Second

func waitEnded(r request, err error) error {
	return fmt.Errorf("%s %s: wait for the rate limit: %w", r.method, r.route, err)
}

// tooLong says whether a wait is left to the caller.
func tooLong(ctx context.Context, since, now time.Time, wait, patience time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return wait > 0 && (now.Add(wait).Sub(since) > patience || bounded && time.Until(deadline) < wait)
}

// next looks at a ticket. One that is not first waits for the others.
func (g *governor) next(ctx context.Context, t *ticket) (turn, error) {
	g.mu.Lock()
	t.woken = false
	place := slices.Index(g.lanes[t.lane()], t)
	rest := g.rest(t)
	g.mu.Unlock()
	switch {
	case place > 0 && t.cost.Write:
		return turn{guess: rest.guess + time.Duration(place)*g.limits.Spacing + 1}, nil
	case place > 0:
		return turn{guess: 1}, nil // not known, but not at once
	case rest.wait > 0:
		return rest, nil
	}
	return g.decide(ctx, t)
}

// rest is how long this node's own last write keeps the next one back: until
// it is answered, and then for the spacing.
func (g *governor) rest(t *ticket) turn {
	if !t.cost.Write || g.limits.Spacing == 0 {
		return turn{}
	}
	now := g.now()
	if g.rested.After(now) || g.open != nil && g.opened.After(now.Add(farAhead)) {
		g.rested, g.opened = now, now // the clock was set back
	}
	if wait := g.opened.Add(answerWait).Sub(now); g.open != nil && wait > 0 {
		// The answer is expected soon.
		return turn{wait: wait, guess: max(0, g.opened.Sub(now)) + g.limits.Spacing}
	}
	wait := max(0, g.rested.Add(g.limits.Spacing).Sub(now))
	return turn{wait: wait, guess: wait}
}

// decide asks the quota for the first ticket of a lane.
func (g *governor) decide(ctx context.Context, t *ticket) (got turn, err error) {
	select {
	case g.deciding <- struct{}{}:
		defer func() { <-g.deciding }()
	case <-ctx.Done():
		return turn{}, ctx.Err()
	}
	g.mu.Lock()
	t.cost.InFlight = g.inFlight
	g.mu.Unlock()
	err = g.update(ctx, func(q Quota) (Quota, bool) {
		now := g.now()
		next, wait := q.Admit(now, t.cost)
		booked := t.cost.Write && q.foreign(g.node) && wait <= bookAhead && next.Write != q.Write
		got = turn{wait: wait, guess: wait, admitted: wait <= 0 || booked, at: now.Add(max(0, wait))}
		if got.admitted {
			return next, true
		}
		return q, false
	})
	if err != nil {
		return turn{}, err
	}
	if got.admitted {
		g.start(t, got.wait)
	}
	return got, nil
}

// update changes the quota that the nodes share, or this node's view of it when
// it cannot be reached. f returns the next quota and whether it changed, and may
// be called again. The error is the context's.
func (g *governor) update(ctx context.Context, f func(Quota) (Quota, bool)) error {
	g.mu.Lock()
	g.seen.Hold = g.seen.Hold.settle(g.now())
	seen := g.seen
	g.mu.Unlock()
	var result Quota
	waiting, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	err := g.shared.Update(waiting, g.key, func(old []byte) []byte {
		q, err := parseQuota(old, g.limits)
		if err != nil {
			g.log.Error().Err(err).Str("key", g.key).Msg("the shared use of GitHub's limits cannot be read; counting starts anew")
		}
		stored := q.Hold
		q.Hold = stored.settle(g.now())
		next, changed := f(q.held(seen.Hold))
		result = next
		if !changed && q.Hold == stored {
			return nil
		}
		text, err := json.Marshal(next)
		if err != nil {
			return nil // cannot happen: numbers, texts and times of this century
		}
		return text
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		g.log.Warn().Err(err).Str("key", g.key).Msg("the use of GitHub's limits cannot be shared; going on with a part of them")
		seen.Limits = g.limits.part(max(2, len(seen.Slots)))
		result, _ = f(seen)
	}
	g.mu.Lock()
	g.seen = result.held(g.seen.Hold)
	g.mu.Unlock()
	return nil
}

// newNode names this process among those that share a quota.
func newNode() string { return rand.Text()[:12] }
