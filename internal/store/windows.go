package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// maxWindows limits the stored windows of an account. Providers report up to six.
const maxWindows = 32

// clockSlack is how far ahead of the database's clock a reading may be dated. Our choice.
const clockSlack = time.Minute

// Meters returns the usage windows by account, each account's sorted by name. It skips windows that cannot be read.
func (s *shared) Meters(ctx context.Context) (_ map[string][]policy.Meter, err error) {
	defer s.wrap(&err, "read the usage windows")
	meters := map[string][]policy.Meter{}
	rows, err := s.r.QueryContext(ctx, "SELECT account, state FROM windows ORDER BY account, name")
	return meters, each(rows, err, func(scan func(...any) error) error {
		var account string
		var state []byte
		var m policy.Meter
		if err := scan(&account, &state); err != nil {
			return err
		}
		if json.Unmarshal(state, &m) == nil && m.Name != "" {
			meters[account] = append(meters[account], m)
		}
		return nil
	})
}

// PutReading stores an account's newer readings and an attempt's usage. If the provider gave quota back before a reset,
// it wakes all waiting threads.
func (s *shared) PutReading(ctx context.Context, r thread.Reading) (err error) {
	defer s.wrap(&err, "usage windows of %s", r.Account)
	freed := false
	err = s.write(ctx, func(tx *txn) error {
		for _, w := range r.Windows {
			gaveBack, err := s.putWindow(ctx, tx, r, w)
			if err != nil {
				return err
			}
			freed = freed || gaveBack
		}
		return tx.exec(ctx, `DELETE FROM windows WHERE account = $1 AND name NOT IN (
				SELECT name FROM windows WHERE account = $1 ORDER BY seen_at DESC, name LIMIT $2)`,
			r.Account, maxWindows)
	})
	if err != nil || !freed || r.Claimed != "" {
		return err
	}
	// Another transaction, because threads are locked before windows.
	return s.write(ctx, func(tx *txn) error { return wakeWaiting(ctx, tx) })
}

// putWindow stores a reading. freed reports whether the provider gave quota back.
func (s *shared) putWindow(ctx context.Context, tx *txn, r thread.Reading, w policy.Window) (freed bool, err error) {
	if err := tx.exec(ctx, `INSERT INTO windows (account, name, seen_at, state)
		VALUES ($1, $2, 0, '{}')
		ON CONFLICT DO NOTHING`, r.Account, w.Name); err != nil {
		return false, err
	}
	var state []byte
	row := "SELECT state FROM windows WHERE account = $1 AND name = $2" + s.locking(" FOR UPDATE")
	if err := tx.QueryRowContext(ctx, row, r.Account, w.Name).Scan(&state); err != nil {
		return false, err
	}
	var m policy.Meter
	if json.Unmarshal(state, &m) != nil {
		m = policy.Meter{} // an unreadable window is unknown, and this reading replaces it
	}
	if m.SeenAt.After(tx.now.Add(clockSlack)) {
		m.Window = policy.Window{} // a wrong clock dated the window, and no reading would be newer
	}
	before := m.Window
	if r.Claimed != "" {
		m = m.Claimed(r.Claimed, w)
	} else {
		m = m.Seen(w)
	}
	if share, used := r.Used[w.Name]; used {
		m = m.Spent(r.Backend, share)
	}
	stored, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	return m.Freed(before), tx.exec(ctx, "UPDATE windows SET seen_at = $3, state = $4 WHERE account = $1 AND name = $2",
		r.Account, w.Name, micros(m.SeenAt), string(stored))
}
