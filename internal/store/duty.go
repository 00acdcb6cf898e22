package store

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// dutySoon is how long a starting node waits after a duty was last done. A server that restarts repeatedly must
	// not do the duty at every start.
	dutySoon = 15 * time.Second
	// dutyHold is how long Begin or Hold excludes other nodes. Duties must tolerate repetition.
	dutyHold = thread.LeaseTime
)

// Duty is a periodic task that one node does for all, such as asking GitHub for missed deliveries. A node that does the
// duty keeps it while it runs.
type Duty struct {
	shared     *shared
	name, node string
	every      time.Duration
	began      time.Time // this node's first call, by the database's clock
}

type dutyRow struct {
	By   string    `json:"by"` // node that did the duty at Last
	Last time.Time `json:"last"`
	Hold time.Time `json:"held,omitzero"` // end of By's hold; zero when done
}

// Duty returns a named duty for one node. A starting node waits until 15 s after any node last did the duty.
func (s *shared) Duty(name, node string, every time.Duration) *Duty {
	return &Duty{shared: s, name: "duty " + name, node: node, every: every}
}

// Begin reports whether this node does the duty now. Call it every 15 s or so, and End afterwards.
func (d *Duty) Begin(ctx context.Context) (mine bool, err error) {
	err = d.update(ctx, func(now time.Time, row *dutyRow) bool {
		if d.began.IsZero() {
			d.began = now
		}
		if mine = d.due(now, *row); mine {
			*row = dutyRow{By: d.node, Last: now, Hold: now.Add(dutyHold)}
		}
		return mine
	})
	return mine && err == nil, err
}

func (d *Duty) due(now time.Time, row dutyRow) bool {
	since := now.Sub(row.Last)
	switch {
	case since < 0: // the clock was set back
		return true
	case now.Before(row.Hold) && row.By != d.node:
		return false
	case row.Last.Before(d.began):
		return since >= dutySoon
	case row.By != d.node:
		return since >= d.every+2*dutySoon
	}
	return since >= d.every
}

// Hold excludes other nodes for 30 s from now.
func (d *Duty) Hold(ctx context.Context) error {
	return d.update(ctx, func(now time.Time, row *dutyRow) bool {
		row.Hold = now.Add(dutyHold)
		return row.By == d.node
	})
}

// End ends a try; the next one follows one interval after Begin.
func (d *Duty) End(ctx context.Context) error {
	return d.update(ctx, func(_ time.Time, row *dutyRow) bool {
		row.Hold = time.Time{}
		return row.By == d.node
	})
}

func (d *Duty) update(ctx context.Context, f func(now time.Time, row *dutyRow) bool) error {
	return d.shared.UpdateShared(ctx, d.name, func(now time.Time, old []byte) []byte {
		var row dutyRow
		if json.Unmarshal(old, &row) != nil {
			row = dutyRow{} // as if never done
		}
		if !f(now, &row) {
			return nil
		}
		next, _ := json.Marshal(row) // cannot fail
		return next
	})
}

// UpdateShared changes a small blob that all nodes share, in a transaction. f gets nil for a new key; a nil result changes
// nothing. f must not use the store. now is the database's time.
func (s *shared) UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) (err error) {
	defer s.wrap(&err, "update the shared %s", key)
	return s.write(ctx, func(tx *txn) error {
		if err := s.serialize(ctx, tx, "shared "+key); err != nil {
			return err
		}
		var old []byte
		if err := tx.QueryRowContext(ctx, "SELECT (SELECT data FROM shared WHERE key = $1)", key).Scan(&old); err != nil {
			return err
		}
		next := f(tx.now, old)
		if next == nil {
			return nil
		}
		return s.putShared(ctx, tx, key, next)
	})
}

// ReadShared returns a blob, or nil.
func (s *shared) ReadShared(ctx context.Context, key string) (data []byte, err error) {
	defer s.wrap(&err, "read the shared %s", key)
	err = s.r.QueryRowContext(ctx, "SELECT (SELECT data FROM shared WHERE key = $1)", key).Scan(&data)
	return data, err
}

func (s *shared) putShared(ctx context.Context, tx *txn, key string, data []byte) error {
	return tx.exec(ctx, `INSERT INTO shared (key, data, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at`, key, data, micros(tx.now))
}

// Size and interval of Ping's writes: a row as large as an ordinary webhook, since a full disk may still accept a
// byte.
const (
	pingInterval = 5 * time.Second
	pingBytes    = 8 << 10
)

// Ping reports whether the database accepts writes. A full or read-only disk shows only in a write. Ping writes at
// most every 5 s, and each time after a failure. While Open checks the database, Ping writes nothing: the table may not
// exist.
func (s *shared) Ping(ctx context.Context) error {
	if err := s.stillThere(); err != nil {
		return err
	}
	last := s.pinged.Load()
	due := s.serving && (last == nil || time.Since(*last) >= pingInterval)
	err := s.write(ctx, func(tx *txn) error {
		if !due {
			return tx.exec(ctx, "SELECT 1")
		}
		host, _ := os.Hostname() // one row per host, so that a stopped process blocks only its host
		return s.putShared(ctx, tx, "ping "+host, bytes.Repeat([]byte{' '}, pingBytes))
	})
	switch {
	case err != nil:
		s.pinged.Store(nil)
	case due:
		now := time.Now()
		s.pinged.Store(&now)
	}
	return err
}
