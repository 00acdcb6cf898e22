package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

type usage struct{ *database }

// Usage is what the attempts used that began after a time: those of a repository
// (owner/name), of an installation, and of all that share the database.
func (s *usage) Usage(ctx context.Context, repo string, installation int64, since time.Time) (policy.Usage, error) {
	all, err := s.UsedByRepo(ctx, since)
	return policy.UsageOf(all, repo, installation), err
}

// UsedByRepo is what the attempts used that began after a time, by repository and installation.
func (s *usage) UsedByRepo(ctx context.Context, since time.Time) (all []policy.RepoUsed, err error) {
	defer s.wrap(&err, "read what was used")
	return usedByRepo(ctx, s.r.QueryContext, since)
}

// DayUsed is what the attempts of a repository used on an account that began on one day (UTC).
type DayUsed struct {
	Repo     string
	Account  string
	Day      time.Time
	Attempts int
	Tokens   int64
	USD      float64
}

// UsedByDay is what the attempts used that began after a time, by repository, account and day. What is older than 30 days is gone.
func (s *usage) UsedByDay(ctx context.Context, since time.Time) (_ []DayUsed, err error) {
	defer s.wrap(&err, "read what was used by day")
	const day = int64(24 * time.Hour / time.Microsecond)
	rows, err := s.r.QueryContext(ctx, `SELECT repo, account, at / $2 AS day, count(*), CAST(coalesce(sum(tokens), 0) AS BIGINT), CAST(coalesce(sum(micro_usd), 0) AS BIGINT)
		FROM attempts WHERE at > $1 GROUP BY repo, account, day ORDER BY repo, account, day`, micros(since), day)
	return list(rows, err, func(scan func(...any) error) (u DayUsed, err error) {
		var n, microUSD int64
		err = scan(&u.Repo, &u.Account, &n, &u.Attempts, &u.Tokens, &microUSD)
		u.Day, u.USD = fromMicros(n*day), float64(microUSD)/1e6
		return u, err
	})
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
		n, err := tx.change(ctx, `INSERT INTO attempts (thread_id, n, repo, installation, account, at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (thread_id, n) DO NOTHING`, r.id, e.N, l.Thread.Repo(), e.Installation, e.Account, micros(e.At))
		if err != nil {
			return err
		}
		if reserved = n == 0; reserved { // it goes on: what it uses now must count for as long as what begins now
			return tx.exec(ctx, "UPDATE attempts SET at = $3, account = $4 WHERE thread_id = $1 AND n = $2", r.id, e.N, micros(e.At), e.Account)
		}
		all, err := usedByRepo(ctx, tx.QueryContext, e.Since)
		if err != nil {
			return err
		}
		u := policy.UsageOf(all, l.Thread.Repo(), e.Installation)
		if reserved = allow(u.Without(e.Account)); reserved {
			return nil
		}
		return tx.exec(ctx, "DELETE FROM attempts WHERE thread_id = $1 AND n = $2", r.id, e.N)
	})
	return reserved && err == nil, err
}

func usedByRepo(ctx context.Context, ask func(context.Context, string, ...any) (*sql.Rows, error), since time.Time) ([]policy.RepoUsed, error) {
	rows, err := ask(ctx, `SELECT repo, installation, account, count(*), CAST(coalesce(sum(tokens), 0) AS BIGINT), CAST(coalesce(sum(micro_usd), 0) AS BIGINT), min(at)
		FROM attempts WHERE at > $1 GROUP BY repo, installation, account`, micros(since))
	return list(rows, err, func(scan func(...any) error) (u policy.RepoUsed, err error) {
		var first, microUSD int64
		err = scan(&u.Repo, &u.Installation, &u.Account, &u.Attempts, &u.Tokens, &microUSD, &first)
		u.USD, u.First = float64(microUSD)/1e6, fromMicros(first)
		return u, err
	})
}

func (s *database) spend(ctx context.Context, tx *txn, r row, w policy.Spent) error {
	usd := 0.0
	if w.CostUSD != nil {
		usd = *w.CostUSD
	}
	return tx.exec(ctx, "UPDATE attempts SET tokens = $3, micro_usd = $4 WHERE thread_id = $1 AND n = $2",
		r.id, w.N, w.Tokens.Input+w.Tokens.Output, int64(math.Ceil(usd*1e6)))
}
