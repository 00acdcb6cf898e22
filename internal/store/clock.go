package store

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// clock judges leases. A node's own clock may be an hour off, or be set while a
// lease runs. What tells the time of leases is the database's clock on
// PostgreSQL, the same for all nodes, and the time that passed in this process on
// SQLite, which no other process uses. Every time a lease is looked at, the two
// are compared, and the caller's time is moved by the difference.
//
// A machine that is suspended sets its clock forward when it wakes. On SQLite that
// passes no time for leases, so that who held one still does; but it makes the
// clock no wrong one.
//
// Times that the log holds (waits, resets) are true times, and each node compares
// them to its own clock. That is harmless for what NTP leaves; a node whose clock
// is more than a minute off cannot work anyway, since GitHub refuses its tokens.
type clock struct {
	wall    func() time.Time
	started time.Time // by wall, without a monotonic reading
	opened  time.Time // the same moment, for the time that passed since
	boot    func() time.Duration
	booted  time.Duration // the same moment, by boot
	ahead   *atomic.Int64 // the last difference of the clock of leases, a time.Duration
	off     *atomic.Int64 // the last Skew, a time.Duration
	jump    *jump
}

// jump is when a difference changed last by more than mostSkew, and when a
// suspension ended last that was longer than mostPause.
type jump struct {
	mu    sync.Mutex
	by    time.Duration // the difference since then
	at    time.Time
	slept time.Duration // all suspensions
	woken time.Time     // zero while none was so long
}

// see takes down a difference, and how long the machine was suspended in all.
func (j *jump) see(d, slept time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if (d - j.by).Abs() > mostSkew {
		j.by, j.at = d, time.Now()
	}
	if slept-j.slept > mostPause {
		j.woken = time.Now()
	}
	j.slept = slept
}

// ago is for how long this process has run since the difference changed, and
// since the long suspension; the latter for ever when there was none.
func (j *jump) ago() (changed, woken time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Since(j.at), time.Since(j.woken)
}

func newClock(wall func() time.Time) clock {
	return clock{wall: wall, started: wall().Round(0), opened: time.Now(), boot: sinceBoot, booted: sinceBoot(),
		ahead: new(atomic.Int64), off: new(atomic.Int64), jump: &jump{at: time.Now()}}
}

// sinceBoot is the time since the machine's start, suspensions included: no
// setting of a clock moves it. Zero where the kernel does not tell, which is as if
// the machine were never suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// running is how long ago the store was opened, whatever clock was set meanwhile
// and without suspensions.
func (c clock) running() time.Duration { return time.Since(c.opened) }

// suspended is how long the machine stood still since the store was opened.
func (c clock) suspended() time.Duration { return max(0, c.boot()-c.booted-c.running()) }

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

// Skew is how far this machine's clock was behind the database's when a lease was
// last looked at, and on SQLite behind what it would show had nobody set it since
// the start; zero when they agreed within a second. It tells an operator that this
// node's clock is wrong.
func (s *Store) Skew() time.Duration { return time.Duration(s.clock.off.Load()) }

// leaseSkew is how far the clock that judges leases was ahead of this machine's
// at the same time.
func (s *Store) leaseSkew() time.Duration { return time.Duration(s.clock.ahead.Load()) }

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
	reference, slept := fromMicros(micros), time.Duration(0)
	if !s.postgres {
		slept = s.clock.suspended()
		reference = s.clock.started.Add(s.clock.running())
		before = after
	}
	off := ahead(reference.Add(slept), before, after)
	s.clock.off.Store(int64(off))
	s.clock.jump.see(off, slept)
	d := ahead(reference, before, after)
	s.clock.ahead.Store(int64(d))
	return d, nil
}
