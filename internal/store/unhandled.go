package store

import (
	"context"
	"fmt"
	"time"
)

// Unhandled counts the deliveries that are stored and that nobody has tried to
// handle yet.
func (s *Store) Unhandled(ctx context.Context) (n int, err error) {
	if err := s.r.QueryRowContext(ctx, "SELECT count(*) FROM deliveries WHERE retry_at > 0 AND state = 'received'").Scan(&n); err != nil {
		return 0, fmt.Errorf("count deliveries: %w", err)
	}
	return n, nil
}

// Oldest is when the oldest delivery came whose GUID is kept; zero when there is
// none.
func (s *Store) Oldest(ctx context.Context) (time.Time, error) {
	var at int64
	if err := s.r.QueryRowContext(ctx, "SELECT coalesce(min(received_at), 0) FROM deliveries").Scan(&at); err != nil {
		return time.Time{}, fmt.Errorf("look up the oldest delivery: %w", err)
	}
	return fromMicros(at), nil
}
