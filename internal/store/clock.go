package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clock judges leases. A node's own clock may be an hour off, or be set while a lease runs; so what tells their
// time is the database's clock on PostgreSQL, and the time that passed in this process on SQLite, which no
// other uses. Whenever a lease is looked at the two are compared, and the caller's time is moved by the
// difference.
//
// A machine that is suspended sets its clock forward when it wakes. On SQLite that passes no time for leases,
// so that who held one still does; it makes the clock no wrong one.
//
// Times that the log holds (waits, resets) are true times, which each node compares to its own clock: NTP
// leaves little, and a node that is more than a minute off cannot work, since GitHub refuses its tokens.
type clock struct {
	wall    func() time.Time
	started time.Time // by wall, without a monotonic reading
	opened  time.Time // the same moment, for the time that passed since, without suspensions
	boot    func() time.Duration
	booted  time.Duration // the same moment, by boot

	mu    sync.Mutex
	ahead time.Duration // the clock of leases of the machine's, when it was looked at last
	off   time.Duration // the last Skew
}

func newClock(wall func() time.Time) *clock {
	return &clock{wall: wall, started: wall().Round(0), opened: time.Now(), boot: sinceBoot, booted: sinceBoot()}
}

// sinceBoot is the time since the machine's start, suspensions included, whatever is set; zero where the kernel
// does not tell.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// sameClock is how far two clocks may be apart and still count as the same:
// small beside a lease of 30 s, large beside what NTP leaves.
const sameClock = time.Second

// ahead is how far a reference clock is ahead of the machine's, read before and after it: zero when both can be
// the same, so that a slow answer is no difference.
func ahead(reference, before, after time.Time) time.Duration {
	switch {
	case reference.After(after.Add(sameClock)):
		return reference.Sub(after)
	case reference.Before(before.Add(-sameClock)):
		return reference.Sub(before)
	}
	return 0
}

// Skew is how far this machine's clock was behind the database's when a lease was last looked at, on SQLite
// behind what it would show had nobody set it; zero within a second. It tells an operator of a wrong clock.
func (s *database) Skew() time.Duration {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.clock.off
}

// leaseSkew is how far the clock that judges leases was ahead of this machine's at the same time.
func (s *database) leaseSkew() time.Duration {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.clock.ahead
}

// referenceColumn is the database's clock as a column, in microseconds; SQLite has none of its own.
func (s *database) referenceColumn() string {
	if s.postgres {
		return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	return "0"
}

// askClock compares the clocks by a query of its own.
func (s *database) askClock(ctx context.Context, query func(context.Context, string, ...any) *sql.Row) (ahead time.Duration, err error) {
	asked := s.clock.read()
	var reference int64
	if err := query(ctx, "SELECT "+s.referenceColumn()).Scan(&reference); err != nil {
		return 0, err
	}
	return s.compareClocks(asked, reference), nil
}

// read is the machine's time without the monotonic clock, which no setting moves.
func (c *clock) read() time.Time { return c.wall().Round(0) }

// compareClocks says how far the clock of leases is ahead of the machine's, by a referenceColumn that was asked for at a time.
func (s *database) compareClocks(before time.Time, micros int64) time.Duration {
	after := s.clock.read()
	reference := fromMicros(micros)
	right := reference
	if !s.postgres {
		passed := time.Since(s.clock.opened)
		reference = s.clock.started.Add(passed)
		right = s.clock.started.Add(max(passed, s.clock.boot()-s.clock.booted))
		before = after
	}
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	s.clock.ahead, s.clock.off = ahead(reference, before, after), ahead(right, before, after)
	return s.clock.ahead
}

// dueNow is the time by which deliveries are due and threads queue, whichever node looks.
func (s *database) dueNow() time.Time {
	if s.postgres {
		return s.now().Add(s.Skew())
	}
	return s.now()
}

// ErrClock means that the machine's clock may be wrong, so that nothing can be called old.
var ErrClock = errors.New("the clock may be wrong, so nothing was removed")

const (
	// mostSkew is how far the clock may be off the database's or, with SQLite, may
	// have been set since the start. GitHub refuses the App's tokens beyond it.
	mostSkew = time.Minute
	// mostPause is how old the newest record may be at the start: meanwhile the board's clock ran, whose battery
	// may be empty. trustTime is how long a server runs after a longer pause before it believes its clock: a wrong
	// one is set within minutes, or a person has seen that GitHub takes no tokens.
	mostPause = 2 * 24 * time.Hour
	trustTime = 24 * time.Hour
)

// TrustClock returns ErrClock, with the reason and what to do, when the clock is not to be trusted with what is
// old: one that is ahead would take GUIDs, logs and transcripts that are still needed.
func (s *database) TrustClock(ctx context.Context) error {
	if _, err := s.askClock(ctx, s.r.QueryRowContext); err != nil {
		return fmt.Errorf("compare the clocks: %w", err)
	}
	off := s.Skew().Abs().Round(time.Second)
	switch {
	case off > mostSkew && s.postgres:
		return fmt.Errorf("%w: it is %s off the database's; set it", ErrClock, off)
	case off > mostSkew:
		return fmt.Errorf("%w: it was set by %s since the start; if it is right, start pawl again", ErrClock, off)
	case time.Since(s.clock.opened) >= trustTime:
		return nil
	}
	started := s.clock.started
	// What was stored since the start has its time from the clock in question.
	var delivery, thread int64
	if err := s.r.QueryRowContext(ctx, `SELECT (SELECT coalesce(max(received_at), 0) FROM deliveries WHERE received_at <= $1),
		(SELECT coalesce(max(updated_at), 0) FROM threads WHERE updated_at <= $1)`, micros(started)).Scan(&delivery, &thread); err != nil {
		return fmt.Errorf("look up the newest record: %w", err)
	}
	newest := fromMicros(max(delivery, thread))
	if pause := started.Sub(newest); !newest.IsZero() && pause > mostPause {
		return fmt.Errorf("%w: the newest record was %s old at the start; if the clock is right, old records are removed a day after it",
			ErrClock, pause.Round(time.Hour))
	}
	return nil
}
