package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrClock means that the machine's clock may be wrong, so that nothing can be
// called old.
var ErrClock = errors.New("the clock may be wrong, so nothing was removed")

const (
	// mostSkew is how far the clock may be off the database's or, with SQLite, may
	// have been set since the start. GitHub refuses the App's tokens beyond it.
	mostSkew = time.Minute
	// mostPause is how old the newest record may be when Pawl starts, and how long
	// the machine may be suspended: the clock that ran meanwhile is that of the
	// board, whose battery may be empty. trustTime is how long a server runs after a
	// longer pause before it believes its clock: one that is a year ahead is set
	// within minutes, or a person has seen that GitHub takes no tokens.
	mostPause = 2 * 24 * time.Hour
	trustTime = 24 * time.Hour
)

// trustClock returns ErrClock, with the reason and what to do, when the clock is
// not to be trusted with what is old. One that is behind removes too little, and
// one that is ahead would take GUIDs, logs and transcripts that are still needed.
func (s *Store) trustClock(ctx context.Context) error {
	if _, err := s.compareClocks(func(reference *int64) error {
		return s.r.QueryRowContext(ctx, "SELECT "+s.referenceColumn()).Scan(reference)
	}); err != nil {
		return fmt.Errorf("compare the clocks: %w", err)
	}
	off := s.Skew().Abs().Round(time.Second)
	changed, woken := s.clock.jump.ago()
	switch {
	case s.postgres && off > mostSkew:
		return fmt.Errorf("%w: it is %s off the database's; set it", ErrClock, off)
	case !s.postgres && off > mostSkew && changed < trustTime:
		return fmt.Errorf("%w: it was set by %s since the start; if it is right, old records are removed a day later", ErrClock, off)
	case woken < trustTime:
		return fmt.Errorf("%w: the machine was suspended for more than %s; if the clock is right, old records are removed a day later", ErrClock, mostPause)
	}
	started := s.clock.started
	if s.clock.running() >= trustTime {
		return nil
	}
	// What was stored since the start has its time from the clock in question.
	var delivery, thread int64
	if err := s.r.QueryRowContext(ctx, s.q(`SELECT (SELECT coalesce(max(received_at), 0) FROM deliveries WHERE received_at <= ?1),
		(SELECT coalesce(max(updated_at), 0) FROM threads WHERE updated_at <= ?1)`), micros(started)).Scan(&delivery, &thread); err != nil {
		return fmt.Errorf("look up the newest record: %w", err)
	}
	newest := fromMicros(max(delivery, thread))
	if pause := started.Sub(newest); !newest.IsZero() && pause > mostPause {
		return fmt.Errorf("%w: the newest record was %s old at the start; if the clock is right, old records are removed a day after it",
			ErrClock, pause.Round(time.Hour))
	}
	return nil
}
