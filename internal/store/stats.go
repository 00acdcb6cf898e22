package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// Stats are counts for metrics and the readiness page.
type Stats struct {
	Waiting    int           // threads with a wake-up time
	Running    int           // threads whose lease somebody holds
	Queued     int           // threads that need a step
	QueueAge   time.Duration // of the oldest of those; zero when there are none
	Deliveries map[solver.DeliveryState]int
	// DeliveryAge is how long the oldest delivery that nobody has handled has
	// waited; zero when there is none.
	DeliveryAge time.Duration
}

// Stats counts. The counts come from partial indexes; that of the handled
// deliveries is the rest of all rows, which are counted by an index.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	now := s.now()
	st := Stats{Deliveries: map[solver.DeliveryState]int{}}
	var oldestQueued, oldestReceived int64
	var received, all int
	err := s.r.QueryRowContext(ctx, s.q(`SELECT
		(SELECT count(*) FROM threads WHERE wake_at > 0),
		(SELECT count(*) FROM threads WHERE lease_until > 0 AND lease_until > ?1),
		(SELECT count(*) FROM threads WHERE requeue_at > 0),
		(SELECT coalesce(min(queued_at), 0) FROM threads WHERE requeue_at > 0),
		(SELECT coalesce(min(received_at), 0) FROM deliveries WHERE retry_at > 0 AND state = 'received'),
		(SELECT count(*) FROM deliveries WHERE retry_at > 0 AND state = 'received'),
		(SELECT count(*) FROM deliveries)`), micros(now.Add(s.leaseSkew()))).
		Scan(&st.Waiting, &st.Running, &st.Queued, &oldestQueued, &oldestReceived, &received, &all)
	if err != nil {
		return Stats{}, fmt.Errorf("count: %w", err)
	}
	st.QueueAge, st.DeliveryAge = age(oldestQueued, now), age(oldestReceived, now)
	rows, err := s.r.QueryContext(ctx, "SELECT state, count(*) FROM deliveries WHERE state IN ('failed', 'unparsable') GROUP BY state")
	if err != nil {
		return Stats{}, fmt.Errorf("count deliveries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state solver.DeliveryState
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return Stats{}, fmt.Errorf("count deliveries: %w", err)
		}
		st.Deliveries[state] = n
		all -= n
	}
	if err := rows.Err(); err != nil {
		return Stats{}, fmt.Errorf("count deliveries: %w", err)
	}
	if received > 0 {
		st.Deliveries[solver.Received] = received
	}
	if handled := all - received; handled > 0 {
		st.Deliveries[solver.Handled] = handled
	}
	return st, nil
}

// age is how long ago a stored time was; zero for none, and for one to come.
func age(at int64, now time.Time) time.Duration {
	if at == 0 {
		return 0
	}
	return max(now.Sub(fromMicros(at)), 0)
}
