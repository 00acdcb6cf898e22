package forge

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// governors are the governors of a client, one for each installation. The zero
// value is ready.
type governors struct {
	mu    sync.Mutex
	byKey map[int64]*governor
}

// governor returns the governor of a key, made when it is first asked for.
func (c *Client) governor(key int64) *governor {
	c.governors.mu.Lock()
	defer c.governors.mu.Unlock()
	g := c.governors.byKey[key]
	if g == nil {
		g = &governor{
			key: "github-quota-" + strconv.FormatInt(key, 10), node: c.node, limits: c.limits, shared: c.shared,
			now: c.now, sleep: c.sleep, log: c.log, deciding: make(chan struct{}, 1), seen: Quota{Limits: c.limits},
		}
		if c.governors.byKey == nil {
			c.governors.byKey = make(map[int64]*governor)
		}
		c.governors.byKey[key] = g
	}
	return g
}

// limited notes that GitHub wants nothing for a time, for all nodes. Refusals
// that name no time hold back twice as long each, as GitHub asks, until one
// request succeeds.
func (g *governor) limited(ctx context.Context, a answer) {
	// What GitHub said must be known to the others even if the caller gave up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedWait)
	defer cancel()
	var hold Hold
	_ = g.update(ctx, func(q Quota) (Quota, bool) {
		now := g.now()
		until, secondary, named := limitEnds(a, now, q.Hold.Strikes)
		hold = Hold{Node: g.node, Until: until, Secondary: secondary, Strikes: q.Hold.Strikes}
		if !named && !q.Hold.Until.After(now) {
			hold.Strikes++ // once for all that were under way together
		}
		return q.held(hold), true
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = g.seen.held(hold) // also when the time ran out
	g.wakeFirst()
}

// fine forgets the refusals that named no time after a success.
func (g *governor) fine(ctx context.Context) {
	g.mu.Lock()
	h := g.seen.Hold
	over := h.Strikes > 0 && !h.Until.After(g.now()) // else it was sent before the refusal
	g.mu.Unlock()
	if !over {
		return
	}
	_ = g.update(ctx, func(q Quota) (Quota, bool) {
		q.Hold.Strikes = 0
		return q, true
	})
}

// held is what this node knows of a time before which GitHub wants nothing.
func (g *governor) held(now time.Time) (until time.Time, secondary bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.seen.settle(now)
	return q.heldUntil(g.node), q.Hold.Secondary
}

// farHold says that the hold ends later than GitHub can have asked for.
func (g *governor) farHold(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen.Hold.settle(now) != g.seen.Hold
}

// heldNow asks all nodes for such a time.
func (g *governor) heldNow(ctx context.Context) time.Time {
	_ = g.update(ctx, func(q Quota) (Quota, bool) { return q, false })
	until, _ := g.held(g.now())
	return until
}

// secondary says whether a wait is for something else than the hourly limit.
func (g *governor) secondary(now time.Time) bool {
	until, secondary := g.held(now)
	return secondary || !until.After(now)
}

// pass waits until GitHub wants requests again, without taking a place yet: a
// token that is made for a request must not be made during a hold.
func (c *Client) pass(ctx context.Context, r request, patience time.Duration) error {
	start := c.now()
	g := c.governor(r.limitKey())
	for {
		now := c.now()
		if g.farHold(now) {
			g.heldNow(ctx) // which shares the cut time
		}
		until, secondary := g.held(now)
		wait := until.Sub(now)
		if wait <= 0 {
			return nil
		}
		if tooLong(ctx, start, now, wait, patience) {
			return &RateLimited{Method: r.method, Path: r.route, Until: until, Secondary: secondary}
		}
		c.log.Info().Str("method", r.method).Str("route", r.route).Time("until", until).Msg("waiting for GitHub's rate limit")
		if err := c.sleep(ctx, wait); err != nil {
			return waitEnded(r, err)
		}
	}
}

// backgroundWait is how long work waits for limits for which nobody waits, and
// which holds up no step: a little more than the 60 s that GitHub asks for after
// a secondary limit without a time.
const backgroundWait = 90 * time.Second

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
