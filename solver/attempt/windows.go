package attempt

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// windowLog holds the usage windows that the provider reported during an attempt. The zero value is empty.
type windowLog struct {
	mu      sync.Mutex
	first   map[string]policy.Window
	last    map[string]policy.Window
	changed bool // since the last write
}

// begin sets the readings from before the attempt.
func (l *windowLog) begin(known []policy.Meter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.last = map[string]policy.Window{}, map[string]policy.Window{}
	for _, m := range known {
		l.first[m.Name] = m.Window
	}
}

func (l *windowLog) add(windows []policy.Window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.first, l.last = map[string]policy.Window{}, map[string]policy.Window{}
	}
	for _, w := range windows {
		if earlier, known := l.first[w.Name]; !known || !sameWindow(earlier, w) {
			l.first[w.Name] = w
		}
		l.last[w.Name] = w
		l.changed = true
	}
}

func sameWindow(a, b policy.Window) bool {
	_, same := b.Since(a)
	return same
}

// take returns the latest readings if they changed since the last call.
func (l *windowLog) take() []policy.Window {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.changed {
		return nil
	}
	l.changed = false
	return l.latest()
}

// latest returns the latest readings by name, so that all transactions lock their rows in one order. The caller holds
// the lock.
func (l *windowLog) latest() []policy.Window {
	byName := func(a, b policy.Window) int { return strings.Compare(a.Name, b.Name) }
	return slices.SortedFunc(maps.Values(l.last), byName)
}

// used returns the latest readings, and the share of each window that was used since the first one.
func (l *windowLog) used() ([]policy.Window, map[string]float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shares := map[string]float64{}
	for name, w := range l.last {
		if share, known := w.Since(l.first[name]); known {
			shares[name] = share
		}
	}
	return l.latest(), shares
}

// beginWindows reads the account's known windows. Without them, use counts from the attempt's first answer.
func (c *checkout) beginWindows(ctx context.Context) {
	meters, err := c.Env.Store.Meters(ctx)
	if err != nil {
		c.warnUnlessOver(ctx, err, "the account's usage windows are not known")
	}
	c.models.windows.begin(meters[c.Account])
}

// noteWindows stores new readings for all nodes.
func (c *checkout) noteWindows(ctx context.Context) {
	c.putReading(ctx, thread.Reading{Windows: c.models.windows.take()})
}

// endWindows stores the last readings and the attempt's share. CLIs that sign in themselves report readings only in
// their output or session files.
func (c *checkout) endWindows(ctx context.Context) {
	windows, used := c.models.windows.used()
	c.putReading(ctx, thread.Reading{Windows: windows, Used: used})
	if c.backend().Provider == "" {
		c.putReading(ctx, thread.Reading{Windows: c.models.claimed.take(), Claimed: c.Thread.String()})
	}
}

func (c *checkout) putReading(ctx context.Context, r thread.Reading) {
	if len(r.Windows) == 0 {
		return
	}
	r.Account, r.Backend = c.Account, c.Backend
	err := lease.Within(ctx, lease.RenewTime, func(ctx context.Context) error { return c.Env.Store.PutReading(ctx, r) })
	if err != nil {
		c.warnUnlessOver(ctx, err, "the account's usage windows were not stored")
	}
}
