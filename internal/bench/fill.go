package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

// firstWaiter is the number of the first of the threads that fill makes.
const firstWaiter = 1000

func waiter(n int) solver.Thread {
	return solver.Thread{Owner: "acme", Name: "widgets", Number: firstWaiter + n}
}

// fill copies the log of a waiting thread to many, each with its wake-up time and
// its job. The first is written through the store, the others as copies of its
// rows: only that makes a hundred thousand of them in seconds.
func (r *rig) fill(ctx context.Context, log []solver.Event, waiters int) (err error) {
	state, err := solver.Fold(log)
	if err != nil {
		return err
	}
	if state.Decision == nil || state.Decision.Until.IsZero() {
		return fmt.Errorf("the thread does not wait: %+v", state.Decision)
	}
	until := state.Decision.Until
	return r.withQueue(ctx, func(db *store.Store, q *queue.Queue) error {
		batch := solver.Batch{WakeAt: until}
		for _, e := range log {
			batch.Events = append(batch.Events, solver.NewEvent{Key: fmt.Sprint("copy:", e.Seq), Kind: e.Kind, At: e.At, Data: json.RawMessage(e.Data)})
		}
		lease, err := db.Acquire(ctx, waiter(0), "bench", time.Now())
		if err != nil {
			return err
		}
		if err := errors.Join(db.AppendLeased(ctx, lease, batch), db.Release(ctx, lease)); err != nil {
			return err
		}
		return inTx(ctx, db.DB(), func(tx *sql.Tx) error {
			if err := copies(ctx, tx, waiters); err != nil {
				return err
			}
			for n := 1; n < waiters; n++ {
				if err := q.Step(ctx, tx, waiter(n), until); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// copies makes threads like the first waiter, until there are n.
func copies(ctx context.Context, tx *sql.Tx, n int) error {
	for _, query := range []string{
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			INSERT INTO threads (owner, name, number, last_seq, lease_epoch, wake_at, updated_at, active)
			SELECT owner, name, number + n.i, last_seq, lease_epoch, wake_at, updated_at, active FROM threads, n WHERE number = %d`, n-1, firstWaiter),
		fmt.Sprintf(`INSERT INTO events (thread_id, seq, key, kind, at, data) SELECT t.id, e.seq, e.key, e.kind, e.at, e.data
			FROM threads t, events e WHERE t.number > %d AND e.thread_id = (SELECT id FROM threads WHERE number = %d)`, firstWaiter, firstWaiter),
	} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// withQueue opens the database while no server does, with a queue that enqueues
// and works nothing.
func (r *rig) withQueue(ctx context.Context, do func(*store.Store, *queue.Queue) error) (err error) {
	db, err := store.Open(ctx, r.database(), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	q, err := queue.New(queue.Options{
		DB: db.DB(), Postgres: db.Postgres(), Due: db.Due, Step: func(context.Context, solver.Thread) error { return nil },
		HandleDelivery: func(context.Context, solver.Delivery) error { return nil }, Sweep: func(context.Context) error { return nil },
	})
	if err != nil {
		return err
	}
	db.UseQueue(q)
	return do(db, q)
}

func inTx(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
