package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// Delivery returns a stored delivery or solver.ErrNotFound. Its payload is empty
// once Prune took it.
func (s *Store) Delivery(ctx context.Context, guid string) (solver.Delivery, error) {
	d := solver.Delivery{GUID: guid}
	var received int64
	err := s.r.QueryRowContext(ctx, s.q("SELECT event, payload, received_at, state, note FROM deliveries WHERE guid = ?1"), guid).
		Scan(&d.Event, &d.Payload, &received, &d.State, &d.Note)
	if errors.Is(err, sql.ErrNoRows) {
		return solver.Delivery{}, fmt.Errorf("delivery %s: %w", guid, solver.ErrNotFound)
	}
	if err == nil {
		d.Payload, err = unpack(d.Payload)
	}
	if err != nil {
		return solver.Delivery{}, fmt.Errorf("delivery %s: %w", guid, err)
	}
	d.ReceivedAt = fromMicros(received)
	return d, nil
}

// How long a delivery waits that could not be handled: firstRetry, twice as long
// after each try up to oftenRetry, and then a sixteenth of its age, at most
// lookAtMost. So a delivery of an outage of two hours is handled eight minutes after
// its end at the latest.
const (
	firstRetry = time.Second
	oftenRetry = 5 * time.Minute
)

// maxNote is how many bytes of a note are kept.
const maxNote = 4096

// FinishDelivery notes what became of a delivery. One that Failed is given out
// again by the sweep, first after a second and then more and more rarely; after three days it stays as it is. The others are final, and are
// written together with the deliveries that come in meanwhile.
func (s *Store) FinishDelivery(ctx context.Context, guid string, state solver.DeliveryState, note string) error {
	return s.finishDelivery(ctx, guid, state, note, time.Time{})
}

// PostponeDelivery is FinishDelivery for one that Failed and cannot be handled
// before a time, as whoever has to be obeyed said. It is given out again then, but
// after lookAtMost at the latest; a time that has come is in a second.
func (s *Store) PostponeDelivery(ctx context.Context, guid, note string, until time.Time) error {
	return s.finishDelivery(ctx, guid, solver.Failed, note, until)
}

func (s *Store) finishDelivery(ctx context.Context, guid string, state solver.DeliveryState, note string, until time.Time) (err error) {
	found, note := true, cleanNote(note)
	switch {
	case s.receiver == nil:
		err = errReading
	case state == solver.Received || state == solver.Failed:
		found, err = s.postpone(ctx, guid, state, note, until)
	default:
		found, err = s.receiver.commit(ctx, &pending{finish: true, delivery: solver.Delivery{GUID: guid, State: state, Note: note}})
		if errors.Is(err, ErrBusy) { // with storing; the handling can wait for its turn
			found, err = s.postpone(ctx, guid, state, note, until)
		}
	}
	if err == nil && !found {
		err = solver.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("finish delivery %s: %w", guid, err)
	}
	return nil
}

// postpone writes the state in a transaction of its own, and when the sweep looks
// at the delivery again: at a time of this process, or with zero the later the more
// often it was tried.
func (s *Store) postpone(ctx context.Context, guid string, state solver.DeliveryState, note string, until time.Time) (found bool, err error) {
	err = s.write(ctx, func(tx *txn) error {
		var received, tries, retryAt int64
		if err := tx.QueryRowContext(ctx, s.q("SELECT received_at, tries FROM deliveries WHERE guid = ?1"+s.locking(" FOR UPDATE")), guid).
			Scan(&received, &tries); err != nil {
			return err
		}
		if now := s.dueNow(); state == solver.Received || state == solver.Failed && !givenUp(now.Sub(fromMicros(received)), tries) {
			retryAt = micros(now.Add(s.retryWait(now.Sub(fromMicros(received)), tries, until)))
		}
		_, err := tx.ExecContext(ctx, s.q("UPDATE deliveries SET state = ?2, note = ?3, tries = tries + 1, retry_at = ?4 WHERE guid = ?1"),
			guid, string(state), note, retryAt)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// retryWait is how long a delivery of an age waits for its next try.
func (s *Store) retryWait(age time.Duration, tries int64, until time.Time) time.Duration {
	if !until.IsZero() {
		return min(max(until.Sub(s.now()), firstRetry), lookAtMost)
	}
	wait := min(firstRetry<<min(tries, 16), oftenRetry)
	wait = max(wait, min(age/16, lookAtMost))
	return wait - rand.N(wait/2) // what failed together shall not return together
}

// cleanNote cuts a note, which may quote anything, to what PostgreSQL stores as
// text.
func cleanNote(note string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(note[:min(len(note), maxNote)], ""), "\x00", "")
}

// Deliveries lists the newest deliveries, without their payloads.
func (s *Store) Deliveries(ctx context.Context, limit int) ([]solver.Delivery, error) {
	rows, err := s.r.QueryContext(ctx, s.q("SELECT guid, event, received_at, state, note FROM deliveries ORDER BY received_at DESC LIMIT ?1"), limit)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	defer rows.Close()
	var list []solver.Delivery
	for rows.Next() {
		var d solver.Delivery
		var received int64
		if err := rows.Scan(&d.GUID, &d.Event, &received, &d.State, &d.Note); err != nil {
			return nil, fmt.Errorf("list deliveries: %w", err)
		}
		d.ReceivedAt = fromMicros(received)
		list = append(list, d)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return list, nil
}
