package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/solver"
)

// storeBatch stores the deliveries that are new, which this process then has
// redeliverAfter to handle before the sweep gives them to anybody, and finishes
// those that were handled. They are sorted so that two nodes with the same ones
// cannot wait for each other.
func (s *Store) storeBatch(ctx context.Context, batch []*pending) error {
	sorted := slices.Clone(batch)
	slices.SortStableFunc(sorted, func(a, b *pending) int { return strings.Compare(a.delivery.GUID, b.delivery.GUID) })
	return s.writeNow(ctx, func(tx *txn) error {
		insert, finish := tx.StmtContext(ctx, s.receiver.insert), tx.StmtContext(ctx, s.receiver.finish)
		defer insert.Close()
		defer finish.Close()
		retryAt := micros(s.dueNow().Add(redeliverAfter))
		for _, p := range sorted {
			d := p.delivery
			var res sql.Result
			var err error
			if p.finish {
				res, err = finish.ExecContext(ctx, d.GUID, string(d.State), d.Note)
			} else {
				res, err = insert.ExecContext(ctx, d.GUID, d.Event, d.Payload, micros(d.ReceivedAt), string(solver.Received), retryAt)
			}
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			p.done = n == 1
		}
		for _, p := range batch { // in the order in which they came
			if p.done && !p.finish {
				d := p.delivery
				d.Payload = p.payload
				tx.deliveries = append(tx.deliveries, d)
			}
		}
		return nil
	})
}
