package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// grades are what is learned from attempts.
type grades struct{ *database }

// PutGraded changes one row in a transaction. f gets the row as it is, with
// nothing but its ID when there is none, and returns what it shall be; without
// Data, or with the same, the row stays as it is. So whoever repeats f after a
// crash, and finds in the row that it was done, changes nothing. f must not use
// the store.
func (s *grades) PutGraded(ctx context.Context, id string, f func(old thread.GradeRow) (next thread.GradeRow)) (err error) {
	defer s.wrap(&err, "grade %s", id)
	if id == "" {
		return errors.New("the attempt has no id")
	}
	return s.write(ctx, func(tx *txn) error {
		if err := s.serialize(ctx, tx, "graded "+id); err != nil {
			return err
		}
		old, err := scanGraded(tx.QueryRowContext(ctx, s.q("SELECT "+gradedColumns+" FROM graded WHERE id = ?1"), id).Scan)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		old.ID = id
		next := f(old)
		next.ID = id
		if next.Data == nil || same(old, next) {
			return nil
		}
		return tx.exec(ctx, `INSERT INTO graded (id, at, backend, repo, data, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
			ON CONFLICT (id) DO UPDATE SET at = excluded.at, backend = excluded.backend, repo = excluded.repo, data = excluded.data,
			updated_at = excluded.updated_at`,
			id, micros(next.At), next.Backend, next.Repo, next.Data, micros(s.now()))
	})
}

// same reports whether two rows would be stored alike.
func same(a, b thread.GradeRow) bool {
	return micros(a.At) == micros(b.At) && a.Backend == b.Backend && a.Repo == b.Repo && slices.Equal(a.Data, b.Data)
}

// Graded returns the newest rows since a time, at most limit, oldest first.
func (s *grades) Graded(ctx context.Context, since time.Time, limit int) (_ []thread.GradeRow, err error) {
	defer s.wrap(&err, "read the grades")
	rows, err := s.r.QueryContext(ctx, s.q("SELECT "+gradedColumns+" FROM graded WHERE at >= ?1 ORDER BY at DESC, id DESC LIMIT ?2"), micros(since), limit)
	all, err := list(rows, err, scanGraded)
	slices.Reverse(all)
	return all, err
}

const gradedColumns = "id, at, backend, repo, data"

func scanGraded(scan func(...any) error) (r thread.GradeRow, err error) {
	var at int64
	err = scan(&r.ID, &at, &r.Backend, &r.Repo, &r.Data)
	r.At = fromMicros(at)
	return r, err
}
