package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func (s *threads) Threads(ctx context.Context, limit int) (_ []thread.ThreadRow, err error) {
	defer s.wrap(&err, "list threads")
	query := "SELECT " + listColumns + " FROM threads WHERE active = 1 ORDER BY updated_at DESC LIMIT $1"
	rows, err := s.r.QueryContext(ctx, query, limit)
	return list(rows, err, s.scanThread)
}

// ThreadsOf lists a repository's active threads, or all of an owner's if name is empty. GitHub's names ignore case.
func (s *threads) ThreadsOf(ctx context.Context, owner, name string) (all []thread.ID, err error) {
	err = s.eachThread(ctx, func(t thread.ID) { all = append(all, t) },
		"lower(owner) = lower($1) AND ($2 = '' OR lower(name) = lower($2)) ORDER BY owner, name, number", owner, name)
	return all, err
}

func (s *threads) Near(ctx context.Context, t thread.ID) (all []thread.ID, err error) {
	err = s.eachThread(ctx, func(t thread.ID) { all = append(all, t) },
		"owner = $1 AND name = $2 AND number <> $3 ORDER BY updated_at DESC LIMIT 50", t.Owner, t.Name, t.Number)
	return all, err
}

// EachThread calls f with up to limit active threads, newest change first. It builds no list.
func (s *threads) EachThread(ctx context.Context, limit int, f func(thread.ID)) error {
	return s.eachThread(ctx, f, "true ORDER BY updated_at DESC LIMIT $1", limit)
}

func (s *threads) eachThread(ctx context.Context, f func(thread.ID), which string, args ...any) (err error) {
	defer s.wrap(&err, "list threads")
	query := "SELECT owner, name, number FROM threads WHERE active = 1 AND " + which
	rows, err := s.r.QueryContext(ctx, query, args...)
	return each(rows, err, func(scan func(...any) error) error {
		var t thread.ID
		if err := scan(&t.Owner, &t.Name, &t.Number); err != nil {
			return err
		}
		f(t)
		return nil
	})
}

func (s *threads) Thread(ctx context.Context, t thread.ID) (r thread.ThreadRow, err error) {
	defer s.wrap(&err, "thread %s", t)
	query := "SELECT " + listColumns + " FROM threads WHERE owner = $1 AND name = $2 AND number = $3"
	r, err = s.scanThread(s.r.QueryRowContext(ctx, query, t.Owner, t.Name, t.Number).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = thread.ErrNotFound
	}
	return r, err
}

const listColumns = "owner, name, number, updated_at, wake_at, lease_until, last_seq"

func (s *threads) scanThread(scan func(...any) error) (r thread.ThreadRow, err error) {
	var updated, wakeAt, until int64
	err = scan(&r.Thread.Owner, &r.Thread.Name, &r.Thread.Number, &updated, &wakeAt, &until, &r.Seq)
	r.UpdatedAt, r.WakeAt, r.Running = fromMicros(updated), fromMicros(wakeAt), until > micros(s.Now())
	return r, err
}

// Waiting counts the attempts that wait for a node or a slot, by place.
func (s *Store) Waiting(ctx context.Context) (byPlace map[string]int, err error) {
	defer s.wrap(&err, "count waiting attempts")
	byPlace = map[string]int{policy.PlaceOf(nil): 0}
	rows, err := s.r.QueryContext(ctx, "SELECT place, count(*) FROM threads WHERE place <> '' AND place NOT LIKE $1 AND lease_until = 0 GROUP BY place", policy.InFolder("%"))
	return byPlace, each(rows, err, func(scan func(...any) error) error {
		var place string
		var n int
		err := scan(&place, &n)
		byPlace[place] = n
		return err
	})
}

type Stats struct {
	Waiting     int           // threads with a wake-up time
	Running     int           // leased threads
	Attempts    int           // at most one per running thread
	Queued      int           // threads that need a step now
	QueueAge    time.Duration // age of the oldest queued thread, or zero
	Deliveries  map[thread.DeliveryState]int
	DeliveryAge time.Duration // age of the oldest untried delivery, or zero
}

// leased matches threads that are leased at $1.
const leased = "lease_until > 0 AND lease_until > $1"

// Stats counts by partial indexes. Handled deliveries are the total minus the others.
func (s *Store) Stats(ctx context.Context) (_ Stats, err error) {
	defer s.wrap(&err, "count")
	now := s.Now()
	st := Stats{Deliveries: map[thread.DeliveryState]int{}}
	var oldestQueued, oldestReceived int64
	var received, all int
	err = s.r.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM threads WHERE wake_at > 0),
		(SELECT count(*) FROM threads WHERE `+leased+`),
		(SELECT count(*) FROM threads t WHERE `+leased+` AND (SELECT kind FROM events WHERE thread_id = t.id AND kind IN ($2, $3)
			ORDER BY seq DESC LIMIT 1) = $2),
		(SELECT count(*) FROM threads WHERE queued_at > 0) + (SELECT count(*) FROM threads WHERE `+waited+` AND place = ''),
		coalesce((SELECT min(at) FROM (
			SELECT min(queued_at) AS at FROM threads WHERE queued_at > 0
			UNION ALL SELECT min(wake_at) FROM threads WHERE `+waited+` AND place = '') AS due), 0),
		(SELECT coalesce(min(received_at), 0) FROM deliveries WHERE retry_at > 0 AND state = 'received'),
		(SELECT count(*) FROM deliveries WHERE retry_at > 0 AND state = 'received'),
		(SELECT count(*) FROM deliveries)`, micros(now), thread.KindAttemptStarted, thread.KindAttemptEnded).
		Scan(&st.Waiting, &st.Running, &st.Attempts, &st.Queued, &oldestQueued, &oldestReceived, &received, &all)
	if err != nil {
		return Stats{}, err
	}
	st.QueueAge, st.DeliveryAge = age(oldestQueued, now), age(oldestReceived, now)
	rows, err := s.r.QueryContext(ctx, "SELECT "+stateOf+", count(*) FROM deliveries WHERE "+unhandled+" GROUP BY 1")
	err = each(rows, err, func(scan func(...any) error) error {
		var state thread.DeliveryState
		var n int
		err := scan(&state, &n)
		st.Deliveries[state] = n
		all -= n
		return err
	})
	if err != nil {
		return Stats{}, err
	}
	if received > 0 {
		st.Deliveries[thread.Received] = received
	}
	if handled := all - received; handled > 0 {
		st.Deliveries[thread.Handled] = handled
	}
	return st, nil
}

// age returns the time since a stored time; zero for a missing or future time.
func age(at int64, now time.Time) time.Duration {
	if at == 0 {
		return 0
	}
	return max(now.Sub(fromMicros(at)), 0)
}
