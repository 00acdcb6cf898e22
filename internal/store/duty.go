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
	// dutySoon is how soon a node does a duty once more that began since the last time: what happened while no
	// node ran should not wait, but repeated starts must not repeat it.
	dutySoon = 15 * time.Second
	// dutyHeld is how long a duty keeps the other nodes from it without a Hold. It must bear that two do it.
	dutyHeld = thread.LeaseTime
)

// Duty is something that one node does every now and then, such as asking GitHub for what did not arrive: the
// one that did it last, or another when that one does not come.
type Duty struct {
	shared     *shared
	name, node string
	every      time.Duration
	began      time.Time // when this node first asked, by the database's clock
}

type dutyRow struct {
	By   string    `json:"by"` // the node that did it last, at Last
	Last time.Time `json:"last"`
	Held time.Time `json:"held,omitzero"` // until when By is at it; zero when it has ended
}

// Duty is the duty of a name, as one node sees it. After a start it is not done before 15 s have passed since the last time, however short every is.
func (s *shared) Duty(name, node string, every time.Duration) *Duty {
	return &Duty{shared: s, name: "duty " + name, node: node, every: every}
}

// Begin reports whether this node is to do the duty now. Ask every 15 s or so, and call End afterwards.
func (d *Duty) Begin(ctx context.Context) (mine bool, err error) {
	err = d.update(ctx, func(now time.Time, row *dutyRow) bool {
		if d.began.IsZero() {
			d.began = now
		}
		if mine = d.due(now, *row); mine {
			*row = dutyRow{By: d.node, Last: now, Held: now.Add(dutyHeld)}
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
	case now.Before(row.Held) && row.By != d.node:
		return false
	case row.Last.Before(d.began):
		return since >= dutySoon
	case row.By != d.node:
		return since >= d.every+2*dutySoon
	}
	return since >= d.every
}

// Hold keeps the duty for another 30 s while it is being done.
func (d *Duty) Hold(ctx context.Context) error {
	return d.update(ctx, func(now time.Time, row *dutyRow) bool {
		row.Held = now.Add(dutyHeld)
		return row.By == d.node
	})
}

// End says that the duty was done, or tried: the next time is one interval after Begin.
func (d *Duty) End(ctx context.Context) error {
	return d.update(ctx, func(_ time.Time, row *dutyRow) bool {
		row.Held = time.Time{}
		return row.By == d.node
	})
}

func (d *Duty) update(ctx context.Context, f func(now time.Time, row *dutyRow) bool) error {
	return d.shared.UpdateShared(ctx, d.name, func(now time.Time, old []byte) []byte {
		var row dutyRow
		if json.Unmarshal(old, &row) != nil {
			row = dutyRow{} // as if nobody had ever done it
		}
		if !f(now, &row) {
			return nil
		}
		next, _ := json.Marshal(row) // a name and two times, which can always be written
		return next
	})
}

// UpdateShared changes a small blob that all nodes share, in a transaction. f gets nil for a new key, with nil
// as its answer the blob stays; it must not use the store. now is the database's.
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

// ReadShared gives such a blob; nil where there is none.
func (s *shared) ReadShared(ctx context.Context, key string) (data []byte, err error) {
	defer s.wrap(&err, "read the shared %s", key)
	err = s.r.QueryRowContext(ctx, "SELECT (SELECT data FROM shared WHERE key = $1)", key).Scan(&data)
	return data, err
}

func (s *shared) putShared(ctx context.Context, tx *txn, key string, data []byte) error {
	return tx.exec(ctx, `INSERT INTO shared (key, data, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at`, key, data, micros(tx.now))
}

// What Ping writes, and how often: a row as large as an ordinary webhook, for which a disk with room for a byte
// may have none.
const (
	pingInterval = 5 * time.Second
	pingBytes    = 8 << 10
)

// Ping reports whether the database can be written to. A transaction finds a lock and a database that is away;
// a full or read-only disk shows only in a write, which it makes of its own, at most every 5 s: each is an
// fsync, and it may be called every second. While Open looks at the database it writes nothing: the table may
// not be there yet.
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
		host, _ := os.Hostname() // a row for each: one that is stopped in the middle of its Ping holds its own only
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
