package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// deliveries holds webhook deliveries from arrival to result.
type deliveries struct{ *database }

// Delivery returns a stored delivery or thread.ErrNotFound. Cleaned deliveries have no payload.
func (s *deliveries) Delivery(ctx context.Context, guid string) (_ thread.Delivery, err error) {
	defer s.wrap(&err, "delivery %s", guid)
	var payload []byte
	query := "SELECT " + deliveryColumns + ", payload FROM deliveries WHERE guid = $1"
	d, err := scanDelivery(s.r.QueryRowContext(ctx, query, guid).Scan, &payload)
	if errors.Is(err, sql.ErrNoRows) {
		err = thread.ErrNotFound
	}
	d.Payload = payload
	return d, err
}

const deliveryColumns = "guid, event, received_at, state, note"

func scanDelivery(scan func(...any) error, more ...any) (d thread.Delivery, err error) {
	var received int64
	err = scan(append([]any{&d.GUID, &d.Event, &received, &d.State, &d.Note}, more...)...)
	d.ReceivedAt = fromMicros(received)
	return d, err
}

// unhandled selects deliveries that Pawl could not handle; stateOf derives the state.
const (
	unhandled = "state IN ('failed', 'unparsable')"
	stateOf   = "CASE WHEN retry_at = 0 AND " + unhandled + " THEN 'given_up' ELSE state END"
)

func (s *deliveries) Deliveries(ctx context.Context, limit int) ([]thread.Delivery, error) {
	return s.listDeliveries(ctx, "ORDER BY received_at DESC LIMIT $1", limit)
}

// UnhandledDeliveries lists unhandled deliveries without payloads: given-up ones first, then newest.
func (s *deliveries) UnhandledDeliveries(ctx context.Context, limit int) ([]thread.Delivery, error) {
	return s.listDeliveries(ctx, "WHERE "+unhandled+" ORDER BY retry_at > 0, received_at DESC LIMIT $1", limit)
}

func (s *deliveries) listDeliveries(
	ctx context.Context,
	which string,
	limit int,
) (_ []thread.Delivery, err error) {
	defer s.wrap(&err, "list deliveries")
	query := "SELECT guid, event, received_at, " + stateOf + ", note, retry_at FROM deliveries " + which
	rows, err := s.r.QueryContext(ctx, query, limit)
	return list(rows, err, func(scan func(...any) error) (thread.Delivery, error) {
		var retryAt int64
		d, err := scanDelivery(scan, &retryAt)
		d.RetryAt = fromMicros(retryAt)
		if retryAt > 0 && d.RetryAt.Before(d.ReceivedAt) {
			d.RetryAt = d.ReceivedAt // 1 means at once
		}
		return d, err
	})
}

// AllUnhandled selects every unhandled delivery.
const AllUnhandled = "all"

// RetryDelivery schedules an unhandled delivery like a new one and returns the number of deliveries.
func (s *deliveries) RetryDelivery(ctx context.Context, guid string) (n int, err error) {
	return s.decideUnhandled(ctx, "retry", "retry_at = 1, tries = 0", guid)
}

// DismissDelivery marks an unhandled delivery as handled with a note and returns the number of deliveries.
func (s *deliveries) DismissDelivery(ctx context.Context, guid string) (n int, err error) {
	const handled = "state = 'handled', retry_at = 0, note = 'dismissed by the operator: ' || note"
	return s.decideUnhandled(ctx, "dismiss", handled, guid)
}

// decideUnhandled applies an operator's decision to a delivery or AllUnhandled.
func (s *deliveries) decideUnhandled(ctx context.Context, what, set, guid string) (n int, err error) {
	defer s.wrap(&err, "%s delivery %s", what, guid)
	err = s.write(ctx, func(tx *txn) (err error) {
		query := "UPDATE deliveries SET " + set + " WHERE " + unhandled + " AND (guid = $1 OR $2)"
		n, err = tx.change(ctx, query, guid, guid == AllUnhandled)
		return err
	})
	return n, err
}

func (s *deliveries) Known(ctx context.Context, guids []string) (_ map[string]bool, err error) {
	defer s.wrap(&err, "look up deliveries")
	known := make(map[string]bool, len(guids))
	// One parameter, since databases accept at most 65,535.
	asked, err := json.Marshal(append([]string{}, guids...))
	if err != nil {
		return nil, err
	}
	rows, err := s.r.QueryContext(ctx, "SELECT guid FROM deliveries WHERE guid IN ("+s.dialect.elements+")", string(asked))
	return known, each(rows, err, func(scan func(...any) error) error {
		var guid string
		err := scan(&guid)
		known[guid] = true
		return err
	})
}

func (s *deliveries) Untried(ctx context.Context) (n int, err error) {
	defer s.wrap(&err, "count deliveries")
	err = s.r.QueryRowContext(ctx, "SELECT count(*) FROM deliveries WHERE retry_at > 0 AND state = 'received'").Scan(&n)
	return n, err
}

// Oldest returns the oldest GUID's arrival, or zero.
func (s *deliveries) Oldest(ctx context.Context) (_ time.Time, err error) {
	defer s.wrap(&err, "look up the oldest delivery")
	var at int64
	err = s.r.QueryRowContext(ctx, "SELECT coalesce(min(received_at), 0) FROM deliveries").Scan(&at)
	return fromMicros(at), err
}

// A failed delivery waits firstRetry, doubled up to oftenRetry, then a sixteenth of its age up to lookAtMost. After a
// two-hour outage the wait is about eight minutes.
const (
	firstRetry   = time.Second
	oftenRetry   = 5 * time.Minute
	lookAtMost   = time.Hour
	claimTime    = 30 * time.Second    // reserved for the process that stored or claimed the delivery
	giveUpAfter  = 3 * 24 * time.Hour  // as long as GitHub redelivers
	giveUpUnread = 30 * 24 * time.Hour // for deliveries that no version could read
	giveUpTries  = 100                 // minimum tries, for old deliveries that an operator retries
)

// Due deliveries of one urgency ($3), in the order of the index deliveries_due.
const (
	anyDelivery = `SELECT EXISTS (SELECT 1 FROM deliveries
		WHERE urgent IN (0, 1) AND retry_at > 0 AND retry_at <= $1)`
	dueDeliveries = "SELECT " + deliveryColumns + `, tries, urgent FROM deliveries
		WHERE urgent = $3 AND retry_at > 0 AND retry_at <= $1
		ORDER BY retry_at
		LIMIT $2`
)

// ClaimDeliveries claims up to `most` due deliveries for claimTime: possible user requests first, then longest
// waiting. It does not load payloads.
func (s *deliveries) ClaimDeliveries(ctx context.Context, most int) (claimed []thread.Delivery, err error) {
	defer s.wrap(&err, "claim deliveries")
	err = s.writeWhere(ctx, anyDelivery, []any{micros(s.Now())}, func(tx *txn) error {
		until := map[string]time.Time{}
		for _, urgent := range []int{1, 0} {
			query := dueDeliveries + s.locking(" FOR UPDATE SKIP LOCKED")
			rows, err := tx.QueryContext(ctx, query, micros(tx.now), most-len(until), urgent)
			err = each(rows, err, func(scan func(...any) error) error {
				var tries int64
				var urgent bool
				d, err := scanDelivery(scan, &tries, &urgent)
				if err != nil {
					return err
				}
				d.Urgent, until[d.GUID] = urgent, time.Time{}
				if !givenUp(d.State, tx.now.Sub(d.ReceivedAt), tries) {
					until[d.GUID] = tx.now.Add(claimTime)
					claimed = append(claimed, d)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for guid, at := range until {
			if err := tx.exec(ctx, "UPDATE deliveries SET retry_at = $2 WHERE guid = $1", guid, micros(at)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func givenUp(state thread.DeliveryState, age time.Duration, tries int64) bool {
	switch state {
	case thread.Failed:
		return age > giveUpAfter && tries >= giveUpTries
	case thread.Unparsable:
		return age > giveUpUnread && tries >= giveUpTries
	}
	return false
}

// maxNote limits a note in bytes.
const maxNote = 4096

// FinishDelivery stores a delivery's result. Failed is retried after a second, then less often, for three days;
// Unparsable every hour for thirty days. Handled is final.
func (s *deliveries) FinishDelivery(ctx context.Context, guid string, state thread.DeliveryState, note string) error {
	return s.finishDelivery(ctx, guid, state, note, time.Time{})
}

// PostponeDelivery is FinishDelivery for a Failed delivery with a known retry time, between a second and
// lookAtMost.
func (s *deliveries) PostponeDelivery(ctx context.Context, guid, note string, until time.Time) error {
	return s.finishDelivery(ctx, guid, thread.Failed, note, until)
}

func (s *deliveries) finishDelivery(
	ctx context.Context,
	guid string,
	state thread.DeliveryState,
	note string,
	until time.Time,
) (err error) {
	defer s.wrap(&err, "finish delivery %s", guid)
	// Notes may quote anything; PostgreSQL accepts only UTF-8 without NUL.
	note = strings.ReplaceAll(strings.ToValidUTF8(note[:min(len(note), maxNote)], ""), "\x00", "")
	err = s.write(ctx, func(tx *txn) error {
		var received, tries, retryAt int64
		query := "SELECT received_at, tries FROM deliveries WHERE guid = $1" + s.locking(" FOR UPDATE")
		if err := tx.QueryRowContext(ctx, query, guid).Scan(&received, &tries); err != nil {
			return err
		}
		if state == thread.Unparsable {
			until = tx.now.Add(lookAtMost)
		}
		age := tx.now.Sub(fromMicros(received))
		if state != thread.Handled && !givenUp(state, age, tries) {
			retryAt = micros(tx.now.Add(retryWait(tx.now, until, age, tries)))
		}
		return tx.exec(ctx, "UPDATE deliveries SET state = $2, note = $3, tries = tries + 1, retry_at = $4 WHERE guid = $1",
			guid, string(state), note, retryAt)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return thread.ErrNotFound
	}
	return err
}

func retryWait(now, until time.Time, age time.Duration, tries int64) time.Duration {
	if !until.IsZero() {
		return min(max(until.Sub(now), firstRetry), lookAtMost)
	}
	wait := max(policy.Retry(int(tries)+1, firstRetry, oftenRetry, 1), min(age/16, lookAtMost))
	return wait - rand.N(wait/2) // avoids simultaneous retries
}
