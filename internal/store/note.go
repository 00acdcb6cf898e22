package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/solver"
)

// mostNoted bounds a note, in bytes: it is rewritten with every change of the
// thread's row.
const mostNoted = 16 << 10

// Note keeps what the holder of a lease wants whoever takes the thread over to
// know, in the place of its last note; the next Release ends it. The error is
// solver.ErrLeaseLost for a thread that was taken over. It does not wait for the
// disk: after a power cut or a crash of PostgreSQL the last notes may be missing,
// but a crash of Pawl alone loses none.
func (s *Store) Note(ctx context.Context, l solver.Lease, note []byte) error {
	if len(note) > mostNoted {
		return fmt.Errorf("note on %s: %d bytes, of at most %d", l.Thread, len(note), mostNoted)
	}
	err := s.writeUnsynced(ctx, func(tx *txn) error {
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q("UPDATE threads SET note = ?2 WHERE id = ?1"), r.id, note)
		return err
	})
	if err != nil {
		return fmt.Errorf("note on %s: %w", l.Thread, err)
	}
	return nil
}

// Noted is the thread's last note; nil where there is none.
func (s *Store) Noted(ctx context.Context, t solver.Thread) (note []byte, err error) {
	err = s.r.QueryRowContext(ctx, s.q("SELECT note FROM threads WHERE owner = ?1 AND name = ?2 AND number = ?3"), t.Owner, t.Name, t.Number).Scan(&note)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read the note on %s: %w", t, err)
	}
	return note, nil
}
