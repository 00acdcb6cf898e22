package forge

import (
	"context"
	"slices"
	"time"
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
	// backgroundWait is how long work waits for limits for which nobody waits, and
	// which holds up no step: a little more than the 60 s that GitHub asks for after
	// a secondary limit without a time.
	backgroundWait = 90 * time.Second
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

// queue holds the requests of one kind that wait, the most urgent first. Reads
// and writes queue apart, so a write that waits for its second holds up no read.
type queue struct{ waiting []*waiter }

// waiter is one request that waits.
type waiter struct {
	rank  int
	woken bool               // since it was last looked at
	wake  context.CancelFunc // nil while it does not sleep
}

func (q *queue) place(w *waiter) int { return slices.Index(q.waiting, w) }

// join puts a request behind all that are at least as urgent, and wakes those
// that it overtakes, because they may not want to wait longer.
func (l *limiter) join(q *queue, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(q.waiting)
	for i > 0 && q.waiting[i-1].rank > w.rank {
		i--
		q.waiting[i].rouse()
	}
	q.waiting = slices.Insert(q.waiting, i, w)
}

// quit takes a request out of its queue.
func (l *limiter) quit(q *queue, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.waiting = slices.Delete(q.waiting, q.place(w), q.place(w)+1)
	l.wakeFirst()
}

// wakeFirst lets the first of each queue look again.
func (l *limiter) wakeFirst() {
	for _, q := range []*queue{&l.reads, &l.writes} {
		if len(q.waiting) > 0 {
			q.waiting[0].rouse()
		}
	}
}

func (w *waiter) rouse() {
	w.woken = true
	if w.wake != nil {
		w.wake()
	}
}

// doze waits for a time or until the request is woken. The error is the
// context's.
func (l *limiter) doze(ctx context.Context, w *waiter, wait time.Duration) error {
	sleeping, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	if w.woken {
		cancel()
	}
	w.wake = cancel
	l.mu.Unlock()
	if sleeping.Err() == nil {
		_ = l.sleep(sleeping, wait) // woken early is as good
	}
	l.mu.Lock()
	w.wake = nil
	l.mu.Unlock()
	return ctx.Err()
}
