package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// When the sweep looks after what the queue should have done. Whatever has been
// enqueued again is looked at once more after as long as it has waited already,
// at most lookAtMost: a long backlog does not fill the queue with duplicates.
const (
	requeueAfter   = 20 * time.Second   // a thread queued with nobody at work on it
	overdueAfter   = 2 * time.Second    // a wake-up time that has passed
	redeliverAfter = 30 * time.Second   // a delivery that is not handled
	lookAtMost     = time.Hour          // between two looks
	claimTime      = 150 * time.Second  // for which a delivery is given to one process: it may take 120 s to handle
	giveUpAfter    = 3 * 24 * time.Hour // after which a failed delivery is left alone; GitHub redelivers as long
	giveUpTries    = 100                // of which it has had so many, as a wrong clock would make it old at once
)

// staleChunk is how many threads and deliveries one transaction of a sweep wakes
// at most, so that it holds the write lock for milliseconds; mostStale is how many
// deliveries one sweep gives out.
const (
	staleChunk = 500
	mostStale  = 20000
)

// Woken counts what a sweep enqueued again.
type Woken struct {
	Threads, Deliveries int
}

// Stale enqueues again what a crash or a lost job left behind: threads queued
// with nobody at work on them, threads whose time has come, and threads whose lease
// ran out while it was held. And it gives this process the deliveries that are due
// again: nobody handled them in time, or handling failed. It is meant to
// run every few seconds and costs nothing for threads that merely wait.
func (s *Store) Stale(ctx context.Context, now time.Time) (Woken, error) {
	var w Woken
	if err := s.stillThere(); err != nil {
		return w, err
	}
	err := s.write(ctx, func(tx *txn) (err error) {
		ahead, err := s.compareClocks(func(reference *int64) error {
			return tx.QueryRowContext(ctx, "SELECT "+s.referenceColumn()).Scan(reference)
		})
		if err != nil {
			return err
		}
		leaseNow := now.Add(ahead)
		if s.postgres {
			now = leaseNow // several nodes have to agree on what is late
		}
		if err := s.boundTimes(ctx, tx, now, leaseNow); err != nil {
			return err
		}
		if w.Threads, err = s.staleThreads(ctx, tx, now, leaseNow); err != nil {
			return err
		}
		w.Deliveries, err = s.staleDeliveries(ctx, tx, now)
		return err
	})
	for n := w.Deliveries; err == nil && n == staleChunk && w.Deliveries < mostStale; w.Deliveries += n {
		err = s.write(ctx, func(tx *txn) (err error) {
			n, err = s.staleDeliveries(ctx, tx, now)
			return err
		})
	}
	if err != nil {
		return Woken{}, fmt.Errorf("sweep: %w", err)
	}
	return w, nil
}

// longestWait is above everything that a thread may wait for, which is eight days.
const longestWait = 9 * 24 * time.Hour

// boundTimes brings times back that no clock of now could have given: the clock
// was ahead when they were, and would keep leases, looks and waits for as long.
// A thread that waits for such a time decides again now.
func (s *Store) boundTimes(ctx context.Context, tx *txn, now, leaseNow time.Time) error {
	for _, late := range []struct {
		table, id, column string
		latest, instead   time.Time
	}{
		{"threads", "id", "lease_until", leaseNow.Add(solver.LeaseTime), leaseNow.Add(solver.LeaseTime)},
		{"threads", "id", "requeue_at", now.Add(lookAtMost), now.Add(lookAtMost)},
		{"threads", "id", "wake_at", now.Add(longestWait), now.Add(-overdueAfter)},
		{"deliveries", "guid", "retry_at", now.Add(lookAtMost), now.Add(lookAtMost)},
	} {
		query := fmt.Sprintf("UPDATE %[1]s SET %[3]s = ?3 WHERE %[2]s IN (SELECT %[2]s FROM %[1]s WHERE %[3]s > 0 AND %[3]s > ?1 LIMIT ?2%[4]s)",
			late.table, late.id, late.column, s.locking(" FOR UPDATE SKIP LOCKED"))
		if _, err := tx.ExecContext(ctx, s.q(query), micros(late.latest), staleChunk, micros(late.instead)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) staleThreads(ctx context.Context, tx *txn, now, leaseNow time.Time) (int, error) {
	woken := 0
	for _, where := range []struct {
		clause string
		before time.Time
	}{
		{"requeue_at > 0 AND requeue_at <= ?1 AND lease_until <= ?2", now},
		{"wake_at > 0 AND wake_at <= ?1 AND queued_at = 0 AND lease_until <= ?2", now.Add(-overdueAfter)},
		{"lease_until > 0 AND lease_until <= ?1 AND queued_at = 0 AND lease_until <= ?2", leaseNow},
	} {
		stale, err := s.findRows(ctx, tx, where.clause, where.before, leaseNow)
		if err != nil {
			return 0, err
		}
		for _, r := range stale {
			since := r.queuedAt
			if since.IsZero() {
				since = now
			}
			wait := min(max(now.Sub(since), requeueAfter), lookAtMost)
			if err := s.enqueue(ctx, tx, r, since, now, wait); err != nil {
				return 0, err
			}
		}
		woken += len(stale)
	}
	return woken, nil
}

func (s *Store) findRows(ctx context.Context, tx *txn, clause string, before, leaseNow time.Time) ([]row, error) {
	rows, err := tx.QueryContext(ctx, s.q("SELECT "+rowColumns+" FROM threads WHERE "+clause+" ORDER BY id LIMIT ?3"+
		s.locking(" FOR UPDATE SKIP LOCKED")), micros(before), micros(leaseNow), staleChunk)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []row
	for rows.Next() {
		r, err := scanRow(rows.Scan)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

// givenUp reports whether a failed delivery is tried no more.
func givenUp(age time.Duration, tries int64) bool { return age > giveUpAfter && tries >= giveUpTries }

// dueNow is the time by which the sweep judges what is due, whichever node sweeps.
func (s *Store) dueNow() time.Time {
	if s.postgres {
		return s.now().Add(s.Skew())
	}
	return s.now()
}

// staleDeliveries gives this process the deliveries that are due, and until when
// nobody else is given them.
func (s *Store) staleDeliveries(ctx context.Context, tx *txn, now time.Time) (int, error) {
	rows, err := tx.QueryContext(ctx, s.q(`SELECT guid, state, received_at, tries FROM deliveries WHERE retry_at > 0 AND retry_at <= ?1
		ORDER BY retry_at LIMIT ?2`+s.locking(" FOR UPDATE SKIP LOCKED")), micros(now), staleChunk)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	type stale struct {
		guid string
		next time.Time
	}
	var found []stale
	for rows.Next() {
		var guid string
		var state solver.DeliveryState
		var received, tries int64
		if err := rows.Scan(&guid, &state, &received, &tries); err != nil {
			return 0, err
		}
		next := now.Add(claimTime)
		if state == solver.Failed && givenUp(now.Sub(fromMicros(received)), tries) {
			next = time.Time{}
		}
		found = append(found, stale{guid, next})
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	for _, d := range found {
		if _, err := tx.ExecContext(ctx, s.q("UPDATE deliveries SET retry_at = ?2 WHERE guid = ?1"), d.guid, micros(d.next)); err != nil {
			return 0, err
		}
		if !d.next.IsZero() {
			tx.deliveries = append(tx.deliveries, solver.Delivery{GUID: d.guid})
		}
	}
	return len(tx.deliveries), nil
}
