package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// The waiting threads that become due one after the other.
const (
	dueThreads = 40
	dueApart   = 250 * time.Millisecond
	dueFirst   = 12 * time.Second // late enough to measure the memory first
)

// flat limits the growth of memory and delay if there are ten times as many threads.
const flat = 1.5

// measureGrowth measures the memory, and the delay between a wake-up's due time and its step. It does so with 10,000 and
// with 100,000 waiting threads.
func measureGrowth(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	var fewer usage
	var sooner time.Duration
	for _, n := range []int{10_000, 100_000} {
		own := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		used, late, err := growth(ctx, bin, own, n)
		if err != nil {
			return nil, nil, err
		}
		median := quantile(late, 0.5)
		memory := row{what: fmt.Sprintf("resident memory, idle, %d waiting threads", n), measured: used.String()}
		latency := row{what: fmt.Sprintf("due to step, %d waiting threads", n),
			measured: fmt.Sprintf("min %s, median %s, max %s", ms(quantile(late, 0)), ms(median), ms(quantile(late, 1)))}
		if fewer.resident > 0 {
			memory.aim, memory.met = fmt.Sprintf("≤ %.1f × that", flat), float64(used.resident) <= flat*float64(fewer.resident)
			latency.aim, latency.met = fmt.Sprintf("median ≤ %.1f × that", flat), float64(median) <= flat*float64(sooner)
		}
		fewer, sooner = used, median
		rows = append(rows, memory, latency)
	}
	return rows, nil, nil
}

func growth(ctx context.Context, bin, dir string, n int) (u usage, late []time.Duration, err error) {
	r, err := newBench(ctx, bin, dir, limitAgent, "codex", "none", "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n")
	if err != nil {
		return u, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Start(ctx); err != nil {
		return u, nil, err
	}
	log, err := r.waitingLog(ctx)
	if err := errors.Join(err, r.Stop()); err != nil {
		return u, nil, err
	}
	if err := r.fill(ctx, log, n); err != nil {
		return u, nil, err
	}
	due, err := r.makeDue(ctx)
	if err != nil {
		return u, nil, err
	}
	if u, err = r.idleMemory(ctx); err != nil {
		return u, nil, err
	}
	late, err = r.watchDue(ctx, due)
	return u, late, err
}

// makeDue gives dueThreads waiting threads wake-up times in the near future.
func (r *bench) makeDue(ctx context.Context) (due map[int]time.Time, err error) {
	due = map[int]time.Time{}
	first := time.Now().Add(dueFirst)
	return due, r.withStore(ctx, func(db *store.Store) error {
		for n := range dueThreads {
			at := first.Add(time.Duration(n) * dueApart)
			due[firstWaiter+n] = at
			lease, err := db.Acquire(ctx, waiter(n), "bench")
			if err != nil {
				return err
			}
			if err := errors.Join(db.AppendLeased(ctx, lease, thread.Batch{WakeAt: at}), db.Release(ctx, lease, nil)); err != nil {
				return err
			}
		}
		return nil
	})
}

// watchDue polls for steps every 10 ms. A step takes the thread's lease, which increments the lease's epoch.
func (r *bench) watchDue(ctx context.Context, due map[int]time.Time) (late []time.Duration, err error) {
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	stepped := map[int]bool{}
	err = r.Until(ctx, "the step of every thread that is due", func() (bool, error) {
		rows, err := db.DB().QueryContext(ctx, fmt.Sprintf(`SELECT number FROM threads WHERE owner = 'acme' AND name = 'widgets'
			AND number BETWEEN %d AND %d AND lease_epoch > 2`, firstWaiter, firstWaiter+dueThreads-1))
		if err != nil {
			return false, err
		}
		defer rows.Close()
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				return false, err
			}
			if !stepped[n] {
				stepped[n] = true
				late = append(late, time.Since(due[n]))
			}
		}
		return len(stepped) == len(due), rows.Err()
	})
	return late, err
}

// firstWaiter is the number of fill's first thread.
const firstWaiter = 1000

func waiter(n int) thread.ID {
	return thread.ID{Owner: "acme", Name: "widgets", Number: firstWaiter + n}
}

// fill creates many threads with a copy of a waiting thread's log and a wake-up time. It uses the store only for the first
// thread and copies its rows with SQL, which takes only seconds.
func (r *bench) fill(ctx context.Context, log []thread.Event, waiters int) (err error) {
	state, err := thread.Fold(log)
	if err != nil {
		return err
	}
	if state.Decision == nil || state.Decision.Until.IsZero() {
		return fmt.Errorf("the thread does not wait: %+v", state.Decision)
	}
	until := state.Decision.Until
	return r.withStore(ctx, func(db *store.Store) error {
		batch := thread.Batch{WakeAt: until}
		for _, e := range log {
			batch.Events = append(batch.Events, thread.NewEvent{Key: fmt.Sprint("copy:", e.Seq), Kind: e.Kind, At: e.At, Data: e.Data})
		}
		lease, err := db.Acquire(ctx, waiter(0), "bench")
		if err != nil {
			return err
		}
		if err := errors.Join(db.AppendLeased(ctx, lease, batch), db.Release(ctx, lease, nil)); err != nil {
			return err
		}
		return inTx(ctx, db.DB(), func(tx *sql.Tx) error { return copies(ctx, tx, waiters) })
	})
}

// copies copies the first waiting thread until there are n.
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

// withStore opens the database without a server.
func (r *bench) withStore(ctx context.Context, do func(*store.Store) error) (err error) {
	db, err := store.Open(ctx, r.Database(), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
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
