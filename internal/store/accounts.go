package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// shared holds state of all threads and nodes: breakers, cooldowns, probes, grades, usage and blobs.
type shared struct{ *database }

// Breakers returns the non-zero breakers by account.
func (s *shared) Breakers(ctx context.Context) (_ map[string]policy.Breaker, err error) {
	defer s.wrap(&err, "read the breakers")
	breakers := map[string]policy.Breaker{}
	rows, err := s.r.QueryContext(ctx, "SELECT account, state FROM breakers")
	return breakers, each(rows, err, func(scan func(...any) error) error {
		var account string
		var state []byte
		var b policy.Breaker
		if err := scan(&account, &state); err != nil {
			return err
		}
		readBreaker(state, &b)
		if b != (policy.Breaker{}) {
			breakers[account] = b
		}
		return nil
	})
}

// Cooldowns returns cooldowns in force or waiting for a user, by repository (owner/name); repo "" means all.
func (s *shared) Cooldowns(ctx context.Context, repo string) (_ map[string][]thread.Cooldown, err error) {
	defer s.wrap(&err, "read the cooldowns")
	cooldowns := map[string][]thread.Cooldown{}
	rows, err := s.r.QueryContext(ctx, `SELECT repo, backend, model, effort, state, thread
		FROM cooldowns
		WHERE (until > $1 OR runaway = 1) AND ($2 = '' OR repo = $2)
		ORDER BY repo, backend, model, effort`,
		micros(s.Now()), repo)
	return cooldowns, each(rows, err, func(scan func(...any) error) error {
		var repo string
		var state []byte
		var c thread.Cooldown
		if err := scan(&repo, &c.Backend, &c.Model, &c.Effort, &state, &c.Thread); err != nil {
			return err
		}
		readCooldown(state, &c.Cooldown)
		cooldowns[repo] = append(cooldowns[repo], c)
		return nil
	})
}

// AcquireProbe asks to run an attempt on an account. It returns false while `most` other threads on any node run
// attempts on it; `most` of 0 or an empty account is never refused. ReleaseProbe, Release, the next AcquireProbe or the
// lease's end ends the probe. With a limit, AcquireProbe revokes the account's expired leases, so that their holders
// cannot return. Errors include thread.ErrLeaseLost.
func (s *shared) AcquireProbe(ctx context.Context, l thread.Lease, account string, most int) (acquired bool, err error) {
	defer s.wrap(&err, "acquire a probe of account %s for %s", account, l.Thread)
	if account == "" {
		return true, nil
	}
	err = s.write(ctx, func(tx *txn) error {
		// Lock the account before any thread to avoid deadlocks. No other code locks accounts.
		if err := s.serialize(ctx, tx, "account "+account); err != nil {
			return err
		}
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		if most > 0 {
			// Revoke expired leases, so that their holders cannot return.
			if err := tx.exec(ctx, `UPDATE threads SET account = '', lease_epoch = lease_epoch + 1
				WHERE account = $1 AND account <> '' AND lease_until <= $2 AND id <> $3`,
				account, micros(tx.now), r.id); err != nil {
				return err
			}
			var others int
			const inUse = "SELECT count(*) FROM threads WHERE account = $1 AND account <> '' AND id <> $2"
			err := tx.QueryRowContext(ctx, inUse, account, r.id).Scan(&others)
			if err != nil || others >= most {
				return err
			}
		}
		acquired = true
		// An expired lease continues if nobody took it, as in Renew.
		until := max(micros(r.leaseUntil), micros(tx.now.Add(thread.LeaseTime)))
		return tx.exec(ctx, "UPDATE threads SET account = $2, lease_until = $3 WHERE id = $1", r.id, account, until)
	})
	return acquired && err == nil, err
}

// ReleaseProbe ends the probe that AcquireProbe began. Errors include thread.ErrLeaseLost.
func (s *shared) ReleaseProbe(ctx context.Context, l thread.Lease, account string) error {
	return s.leased(ctx, "release the probe of account "+account+" for", l, func(tx *txn, r row) error {
		return tx.exec(ctx, "UPDATE threads SET account = '' WHERE id = $1 AND account = $2", r.id, account)
	})
}

// Running returns the number of attempts that other threads run now, by account.
func (s *shared) Running(ctx context.Context, except thread.ID) (_ map[string]int, err error) {
	defer s.wrap(&err, "count the running attempts by account")
	rows, err := s.r.QueryContext(ctx, `SELECT account, count(*) FROM threads
		WHERE account <> '' AND `+leased+` AND NOT (owner = $2 AND name = $3 AND number = $4)
		GROUP BY account`,
		micros(s.Now()), except.Owner, except.Name, except.Number)
	running := map[string]int{}
	return running, each(rows, err, func(scan func(...any) error) error {
		var account string
		var n int
		err := scan(&account, &n)
		running[account] = n
		return err
	})
}

// lockState reads a shared state. It inserts the row first, so that two nodes cannot both start from an empty state.
func (s *shared) lockState(ctx context.Context, tx *txn, insert, row string, key ...any) (state []byte, err error) {
	if err := tx.exec(ctx, insert+" ON CONFLICT DO NOTHING", key...); err != nil {
		return nil, err
	}
	err = tx.QueryRowContext(ctx, "SELECT state FROM "+row+s.locking(" FOR UPDATE"), key...).Scan(&state)
	return state, err
}

func (s *shared) updateBreaker(ctx context.Context, tx *txn, b thread.Batch) (err error) {
	defer s.wrap(&err, "breaker of %s", b.Account)
	if b.Breaker == nil {
		return nil
	}
	const insert = "INSERT INTO breakers (account, state) VALUES ($1, '{}')"
	state, err := s.lockState(ctx, tx, insert, "breakers WHERE account = $1", b.Account)
	if err != nil {
		return err
	}
	var old policy.Breaker
	readBreaker(state, &old)
	next := b.Breaker(old)
	if next.Damage != "" {
		return nil // an unreadable row stays for the operator
	}
	if state, err = json.Marshal(next); err != nil {
		return err
	}
	crash.Point("breaker_write")
	err = tx.exec(ctx, "UPDATE breakers SET state = $2 WHERE account = $1", b.Account, string(state))
	crash.Point("breaker_written")
	return err
}

// CloseBreaker resets an account's breaker, forgets its usage windows, appends the event to the server's log, and
// wakes all waiting threads. For a zero breaker without windows it changes nothing and returns false.
func (s *Store) CloseBreaker(ctx context.Context, account string, event thread.NewEvent) (closed bool, err error) {
	defer s.wrap(&err, "close the breaker of %s", account)
	events, err := encode([]thread.NewEvent{event})
	if err != nil {
		return false, err
	}
	err = s.write(ctx, func(tx *txn) error {
		log, err := s.lockThread(ctx, tx, thread.ServerLog())
		if err != nil {
			return err
		}
		// All code that needs both locks threads before the breaker.
		if err := wakeWaiting(ctx, tx); err != nil {
			return err
		}
		n, err := tx.change(ctx, "UPDATE breakers SET state = '{}' WHERE account = $1 AND state <> '{}'", account)
		if err != nil {
			return err
		}
		windows, err := tx.change(ctx, "DELETE FROM windows WHERE account = $1", account)
		if closed = n+windows > 0; err != nil || !closed {
			return errors.Join(err, errNothing)
		}
		_, err = s.insertEvents(ctx, tx, &log, events)
		return err
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return closed && err == nil, err
}

// WakeWaiting wakes every waiting thread.
func (s *Store) WakeWaiting(ctx context.Context) (err error) {
	defer s.wrap(&err, "wake waiting threads")
	return s.write(ctx, func(tx *txn) error { return wakeWaiting(ctx, tx) })
}

func wakeWaiting(ctx context.Context, tx *txn) error {
	tx.due = true
	return tx.exec(ctx, "UPDATE threads SET wake_at = $1 WHERE wake_at > $1", micros(tx.now))
}

// errNothing rolls back a transaction that would change nothing.
var errNothing = errors.New("there is nothing to do")

func (s *shared) setCooldown(ctx context.Context, tx *txn, t thread.ID, c *thread.Cooldown) (err error) {
	if c == nil {
		return nil
	}
	defer s.wrap(&err, "cooldown of %s", c.Backend)
	const row = " WHERE repo = $1 AND backend = $2 AND model = $3 AND effort = $4"
	const insert = `INSERT INTO cooldowns (repo, backend, model, effort, state, thread)
		VALUES ($1, $2, $3, $4, '{}', '')`
	state, err := s.lockState(ctx, tx, insert, "cooldowns"+row, t.Repo(), c.Backend, c.Model, c.Effort)
	if err != nil {
		return err
	}
	var old policy.Cooldown
	readCooldown(state, &old)
	cooldown, runaway := c.After(old), 0
	if cooldown.Class == policy.Runaway {
		runaway = 1
	}
	if cooldown.Damage == "" { // otherwise the row is kept for the operator
		if state, err = json.Marshal(cooldown); err != nil {
			return err
		}
	}
	return tx.exec(ctx, "UPDATE cooldowns SET until = $5, runaway = $6, state = $7, thread = $8"+row,
		t.Repo(), c.Backend, c.Model, c.Effort, micros(cooldown.Until), runaway, string(state), c.Thread)
}

func (s *shared) PutGraded(ctx context.Context, r thread.GradeRow) (err error) {
	defer s.wrap(&err, "grade %s", r.ID)
	if r.ID == "" {
		return errors.New("the attempt has no id")
	}
	return s.write(ctx, func(tx *txn) error {
		return tx.exec(ctx, `INSERT INTO graded (id, at, backend, repo, data, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET
				at = excluded.at,
				backend = excluded.backend,
				repo = excluded.repo,
				data = excluded.data,
				updated_at = excluded.updated_at`,
			r.ID, micros(r.At), r.Backend, r.Repo, r.Data, micros(tx.now))
	})
}

// Graded returns the newest rows since a time, at most limit, oldest first.
func (s *shared) Graded(ctx context.Context, since time.Time, limit int) (_ []thread.GradeRow, err error) {
	defer s.wrap(&err, "read the grades")
	rows, err := s.r.QueryContext(ctx, `SELECT id, at, backend, repo, data FROM graded
		WHERE at >= $1
		ORDER BY at DESC, id DESC
		LIMIT $2`,
		micros(since), limit)
	all, err := list(rows, err, func(scan func(...any) error) (r thread.GradeRow, err error) {
		var at int64
		err = scan(&r.ID, &at, &r.Backend, &r.Repo, &r.Data)
		r.At = fromMicros(at)
		return r, err
	})
	slices.Reverse(all)
	return all, err
}

// Usage sums the attempts begun since a time for a repository (owner/name), an installation, and all repositories.
func (s *shared) Usage(ctx context.Context, repo string, installation int64, since time.Time) (_ policy.Usage, err error) {
	defer s.wrap(&err, "read the usage")
	return usageOf(ctx, s.r.QueryContext, repo, installation, since)
}

// UsedByRepo returns the usage of attempts begun since a time, by repository, installation and account.
func (s *shared) UsedByRepo(ctx context.Context, since time.Time) (all []policy.RepoUsed, err error) {
	defer s.wrap(&err, "read the usage")
	return usedByRepo(ctx, s.r.QueryContext, since)
}

// DayUsed holds a repository's usage of an account on one day (UTC).
type DayUsed struct {
	Repo     string
	Account  string
	Day      time.Time
	Attempts int
	Tokens   int64
	USD      float64
}

// UsedByDay returns usage by repository, account and day. Clean keeps 30 days.
func (s *shared) UsedByDay(ctx context.Context, since time.Time) (_ []DayUsed, err error) {
	defer s.wrap(&err, "read the usage by day")
	const day = int64(24 * time.Hour / time.Microsecond)
	rows, err := s.r.QueryContext(ctx, `SELECT repo, account, at / $2 AS day,
			count(*),
			CAST(coalesce(sum(tokens), 0) AS BIGINT),
			CAST(coalesce(sum(micro_usd), 0) AS BIGINT)
		FROM attempts
		WHERE at > $1
		GROUP BY repo, account, day
		ORDER BY repo, account, day`,
		micros(since), day)
	return list(rows, err, func(scan func(...any) error) (u DayUsed, err error) {
		var n, microUSD int64
		err = scan(&u.Repo, &u.Account, &n, &u.Attempts, &u.Tokens, &microUSD)
		u.Day, u.USD = fromMicros(n*day), float64(microUSD)/1e6
		return u, err
	})
}

// Reserve counts another attempt unless allow refuses the usage since e.Since. One transaction keeps concurrent
// attempts within limits. Repeated calls count nothing and skip allow. Errors include thread.ErrLeaseLost.
func (s *shared) Reserve(
	ctx context.Context,
	l thread.Lease,
	e thread.Entry,
	allow func(policy.Usage) bool,
) (reserved bool, err error) {
	defer s.wrap(&err, "reserve attempt %d of %s", e.N, l.Thread)
	err = s.write(ctx, func(tx *txn) error {
		if err := s.serialize(ctx, tx, "attempts"); err != nil {
			return err
		}
		r, err := s.checkLease(ctx, tx, l)
		if err != nil {
			return err
		}
		n, err := tx.change(ctx, `INSERT INTO attempts (thread_id, n, repo, installation, account, at)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (thread_id, n) DO NOTHING`,
			r.id, e.N, l.Thread.Repo(), e.Installation, e.Account, micros(e.At))
		if err != nil {
			return err
		}
		if n == 0 { // a continued attempt counts from e.At on, with all its usage
			reserved = true
			return tx.exec(ctx, "UPDATE attempts SET at = $3, account = $4 WHERE thread_id = $1 AND n = $2",
				r.id, e.N, micros(e.At), e.Account)
		}
		u, err := usageOf(ctx, tx.QueryContext, l.Thread.Repo(), e.Installation, e.Since)
		if err != nil {
			return err
		}
		if reserved = allow(u.Without(e.Account)); reserved {
			return nil
		}
		return tx.exec(ctx, "DELETE FROM attempts WHERE thread_id = $1 AND n = $2", r.id, e.N)
	})
	return reserved && err == nil, err
}

// ask is QueryContext of a database or a transaction.
type ask func(ctx context.Context, query string, args ...any) (*sql.Rows, error)

func usedByRepo(ctx context.Context, ask ask, since time.Time) ([]policy.RepoUsed, error) {
	return usedBy(ctx, ask, "repo", "installation", micros(since))
}

// usageOf lets the database add up all other repositories and installations: thousands of rows would take longer to
// send than to add.
func usageOf(ctx context.Context, ask ask, repo string, installation int64, since time.Time) (policy.Usage, error) {
	all, err := usedBy(ctx, ask,
		"CASE WHEN repo = $2 THEN repo ELSE '*' END",
		"CASE WHEN installation = $3 THEN installation ELSE -1 END",
		micros(since), repo, installation)
	return policy.UsageOf(all, repo, installation), err
}

// usedBy sums the attempts begun since $1 by account and by two expressions for the repository and the installation.
func usedBy(ctx context.Context, ask ask, repo, installation string, args ...any) ([]policy.RepoUsed, error) {
	rows, err := ask(ctx, "SELECT "+repo+" AS of_repo, "+installation+` AS of_installation, account,
			count(*),
			CAST(coalesce(sum(tokens), 0) AS BIGINT),
			CAST(coalesce(sum(micro_usd), 0) AS BIGINT),
			min(at)
		FROM attempts WHERE at > $1 GROUP BY of_repo, of_installation, account`, args...)
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
