package store

import (
	"context"
	"errors"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// storeTime limits storing a delivery, so that GitHub gets a 503 within its 10 s. Package postgres limits connecting to
// a second less.
const storeTime = 5 * time.Second

var errReading = errors.New("the database is not open for serving")

// Receive stores a delivery durably. fresh is false for a known GUID. After an error the delivery may or may not
// be stored; the sender should retry.
func (s *deliveries) Receive(ctx context.Context, d thread.Delivery) (fresh bool, err error) {
	defer s.wrap(&err, "store delivery %s", d.GUID)
	if !s.serving {
		return false, errReading
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	d.Urgent = d.Asks()
	err = s.write(ctx, func(tx *txn) error {
		// This process has claimTime to handle it.
		retryAt := micros(tx.now.Add(claimTime))
		n, err := tx.change(ctx, `INSERT INTO deliveries (guid, event, payload, received_at, state, retry_at, urgent)
			VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $7 THEN 1 ELSE 0 END) ON CONFLICT (guid) DO NOTHING`,
			d.GUID, d.Event, d.Payload, micros(d.ReceivedAt), string(thread.Received), retryAt, d.Urgent)
		if err != nil {
			return err
		}
		if fresh = n == 1; fresh {
			tx.deliveries = append(tx.deliveries, d)
		}
		return nil
	})
	return fresh && err == nil, err
}
