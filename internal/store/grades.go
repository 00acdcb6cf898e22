package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

type grades struct{ *database }

func (s *grades) PutGraded(ctx context.Context, r thread.GradeRow) (err error) {
	defer s.wrap(&err, "grade %s", r.ID)
	if r.ID == "" {
		return errors.New("the attempt has no id")
	}
	return s.write(ctx, func(tx *txn) error {
		return tx.exec(ctx, `INSERT INTO graded (id, at, backend, repo, data, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET at = excluded.at, backend = excluded.backend, repo = excluded.repo, data = excluded.data,
			updated_at = excluded.updated_at`,
			r.ID, micros(r.At), r.Backend, r.Repo, r.Data, micros(s.now()))
	})
}

// Graded returns the newest rows since a time, at most limit, oldest first.
func (s *grades) Graded(ctx context.Context, since time.Time, limit int) (_ []thread.GradeRow, err error) {
	defer s.wrap(&err, "read the grades")
	rows, err := s.r.QueryContext(ctx, "SELECT id, at, backend, repo, data FROM graded WHERE at >= $1 ORDER BY at DESC, id DESC LIMIT $2", micros(since), limit)
	all, err := list(rows, err, func(scan func(...any) error) (r thread.GradeRow, err error) {
		var at int64
		err = scan(&r.ID, &at, &r.Backend, &r.Repo, &r.Data)
		r.At = fromMicros(at)
		return r, err
	})
	slices.Reverse(all)
	return all, err
}
