package forge

import (
	"context"
	"slices"
	"time"
)

// start counts an admitted ticket as under way.
func (g *governor) start(t *ticket, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(t)
	g.inFlight++
	if t.cost.Write {
		g.open, g.opened = t, g.now().Add(wait)
	}
	g.wakeFirst()
}

// leave ends a request that was admitted.
func (g *governor) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	if g.open == t {
		g.open = nil
	}
	if t.cost.Write {
		g.rested = g.now()
	}
	g.wakeFirst()
}

// drop ends a ticket whose wait was broken off.
func (g *governor) drop(t *ticket, admitted bool) {
	if admitted {
		g.leave(t)
		return
	}
	g.quit(t)
}

// quit takes a ticket out of its queue.
func (g *governor) quit(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(t)
	g.wakeFirst()
}

func (g *governor) remove(t *ticket) {
	lane := &g.lanes[t.lane()]
	if i := slices.Index(*lane, t); i >= 0 {
		*lane = slices.Delete(*lane, i, i+1)
	}
}

// join puts a ticket behind all that are at least as urgent, and wakes those
// that it overtakes, because they may not want to wait longer.
func (g *governor) join(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	lane := &g.lanes[t.lane()]
	i := len(*lane)
	for i > 0 && (*lane)[i-1].urgency.rank() > t.urgency.rank() {
		i--
		wake((*lane)[i])
	}
	*lane = slices.Insert(*lane, i, t)
}

// wakeFirst lets the first of each lane look again.
func (g *governor) wakeFirst() {
	for _, lane := range g.lanes {
		if len(lane) > 0 {
			wake(lane[0])
		}
	}
}

func wake(t *ticket) {
	t.woken = true
	if t.wake != nil {
		t.wake()
	}
}

// doze waits until the ticket is woken, for a duration when it is first, and else
// for what is left of its patience. The error is the context's.
func (g *governor) doze(ctx context.Context, t *ticket, wait, patience time.Duration) error {
	sleeping, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	if t.woken {
		cancel()
	}
	first := g.lanes[t.lane()][0] == t
	t.wake = cancel
	g.mu.Unlock()
	switch {
	case sleeping.Err() != nil:
	case first:
		_ = g.sleep(sleeping, wait) // woken early is as good
	default:
		// It looks again when its patience has ended, whether or not those before
		// it came to anything.
		_ = g.sleep(sleeping, patience)
	}
	g.mu.Lock()
	t.wake = nil
	g.mu.Unlock()
	return ctx.Err()
}
