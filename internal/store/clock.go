package store

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock judges leases. A node's own clock may be an hour off, or be set while a
// lease runs. What tells the time of leases is the database's clock on
// PostgreSQL, the same for all nodes, and the time that passed in this process on
// SQLite, which no other process uses. Every time a lease is looked at, the two
// are compared, and the caller's time is moved by the difference.
//
// Times that the log holds (waits, resets) are true times, and each node compares
// them to its own clock. That is harmless for what NTP leaves; a node whose clock
// is more than a minute off cannot work anyway, since GitHub refuses its tokens.
type clock struct {
	wall    func() time.Time
	started time.Time     // by wall, without a monotonic reading
	opened  time.Time     // the same moment, for the time that passed since
	ahead   *atomic.Int64 // the last difference, a time.Duration
	jump    *jump
}

// jump is when the difference changed last by more than mostSkew.
type jump struct {
	mu sync.Mutex
	by time.Duration // the difference since then
	at time.Time
}

// see takes a difference down.
func (j *jump) see(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if (d - j.by).Abs() > mostSkew {
		j.by, j.at = d, time.Now()
	}
}

// ago is for how long this process has run since then.
func (j *jump) ago() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Since(j.at)
}

func newClock(wall func() time.Time) clock {
	return clock{wall: wall, started: wall().Round(0), opened: time.Now(), ahead: new(atomic.Int64), jump: &jump{at: time.Now()}}
}

// running is how long ago the store was opened, whatever clock was set meanwhile.
func (c clock) running() time.Duration { return time.Since(c.opened) }

// sameClock is how far two clocks may be apart and still count as the same:
// small beside a lease of 30 s, large beside what NTP leaves.
const sameClock = time.Second

// ahead is how far a reference clock is ahead of the machine's, which was read
// before and after it: zero when both can be the same, so that a slow answer is
// not taken for a difference.
func ahead(reference, before, after time.Time) time.Duration {
	switch {
	case reference.After(after.Add(sameClock)):
		return reference.Sub(after)
	case reference.Before(before.Add(-sameClock)):
		return reference.Sub(before)
	}
	return 0
}

// Skew is how far the clock that judges leases was ahead of this machine's when
// a lease was last looked at; zero when they agreed within a second. With
// PostgreSQL it tells an operator that this node's clock is wrong.
func (s *Store) Skew() time.Duration { return time.Duration(s.clock.ahead.Load()) }

// referenceColumn is the database's clock as a column, in microseconds; SQLite
// has none of its own.
func (s *Store) referenceColumn() string {
	if s.postgres {
		return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	return "0"
}

// compareClocks runs a query that reads referenceColumn, and returns how far the
// clock that judges leases is ahead of the machine's.
func (s *Store) compareClocks(query func(reference *int64) error) (time.Duration, error) {
	// Round takes the monotonic clock off, which no setting moves.
	before := s.clock.wall().Round(0)
	var micros int64
	if err := query(&micros); err != nil {
		return 0, err
	}
	after := s.clock.wall().Round(0)
	reference := fromMicros(micros)
	if !s.postgres {
		reference = s.clock.started.Add(s.clock.running())
		before = after
	}
	d := ahead(reference, before, after)
	s.clock.ahead.Store(int64(d))
	s.clock.jump.see(d)
	return d, nil
}
