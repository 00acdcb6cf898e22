package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// usage counts attempts and what they use above their threads.
type usage struct{ *database }

// Usage is what the attempts used that began after a time: those of a repository
// (owner/name), of an installation, and of all that share the database.
func (s *usage) Usage(ctx context.Context, repo string, installation int64, since time.Time) (u policy.Usage, err error) {
	defer s.wrap(&err, "read what was used")
	return readUsage(ctx, s.r.QueryRowContext, repo, installation, since)
}

// Reserve counts one more attempt, unless allow refuses it (false) by what was used since e.Since: in one
// transaction, so that attempts at once on any nodes do not pass a bound together. One that is counted is not
// counted again. The error is thread.ErrLeaseLost for a thread that was taken over.
func (s *usage) Reserve(ctx context.Context, l thread.Lease, e thread.Entry, allow func(policy.Usage) bool) (reserved bool, err error) {
	defer s.wrap(&err, "reserve attempt %d of %s", e.N, l.Thread)
	err = s.write(ctx, func(tx *txn) error {
		if err := s.serialize(ctx, tx, "attempts"); err != nil {
			return err
		}
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		n, err := tx.change(ctx, `INSERT INTO attempts (thread_id, n, repo, installation, at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (thread_id, n) DO NOTHING`, r.id, e.N, l.Thread.Repo(), e.Installation, micros(e.At))
		if err != nil || n == 0 {
			reserved = n == 0
			return err
		}
		u, err := readUsage(ctx, tx.QueryRowContext, l.Thread.Repo(), e.Installation, e.Since)
		if err != nil {
			return err
		}
		for _, level := range []*policy.Used{&u.Repository, &u.Installation, &u.Server} {
			level.Attempts-- // itself
		}
		if reserved = allow(u); reserved {
			return nil
		}
		return tx.exec(ctx, "DELETE FROM attempts WHERE thread_id = $1 AND n = $2", r.id, e.N)
	})
	return reserved && err == nil, err
}

func readUsage(ctx context.Context, ask func(context.Context, string, ...any) *sql.Row, repo string, installation int64, since time.Time) (u policy.Usage, err error) {
	for _, level := range []struct {
		used  *policy.Used
		where string
		args  []any
	}{
		{&u.Repository, " AND repo = $2", []any{repo}},
		{&u.Installation, " AND installation = $2", []any{installation}},
		{&u.Server, "", nil},
	} {
		var first, microUSD int64
		row := ask(ctx, `SELECT count(*), CAST(coalesce(sum(tokens), 0) AS BIGINT), CAST(coalesce(sum(micro_usd), 0) AS BIGINT), coalesce(min(at), 0)
			FROM attempts WHERE at > $1`+level.where, append([]any{micros(since)}, level.args...)...)
		if err := row.Scan(&level.used.Attempts, &level.used.Tokens, &microUSD, &first); err != nil {
			return u, err
		}
		level.used.USD, level.used.First = float64(microUSD)/1e6, fromMicros(first)
	}
	return u, nil
}

func (s *database) spend(ctx context.Context, tx *txn, r row, w policy.Spent) error {
	usd := 0.0
	if w.CostUSD != nil {
		usd = *w.CostUSD
	}
	return tx.exec(ctx, "UPDATE attempts SET tokens = $3, micro_usd = $4 WHERE thread_id = $1 AND n = $2",
		r.id, w.N, w.Tokens.Input+w.Tokens.Output, int64(math.Ceil(usd*1e6)))
}
