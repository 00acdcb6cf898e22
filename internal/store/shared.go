package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// Breakers returns the breakers that are not zero, by account.
func (s *Store) Breakers(ctx context.Context) (map[string]solver.Breaker, error) {
	rows, err := s.r.QueryContext(ctx, "SELECT account, state FROM breakers")
	if err != nil {
		return nil, fmt.Errorf("read the breakers: %w", err)
	}
	defer rows.Close()
	breakers := map[string]solver.Breaker{}
	for rows.Next() {
		var account string
		var state []byte
		var b solver.Breaker
		if err := rows.Scan(&account, &state); err != nil {
			return nil, fmt.Errorf("read the breakers: %w", err)
		}
		if err := json.Unmarshal(state, &b); err != nil {
			return nil, fmt.Errorf("read the breaker of %s: %w", account, err)
		}
		if b != (solver.Breaker{}) {
			breakers[account] = b
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the breakers: %w", err)
	}
	return breakers, nil
}

// Cooldowns returns, by repository, the cooldowns that end after now, of one
// repository (owner/name) or of all with "".
func (s *Store) Cooldowns(ctx context.Context, repo string, now time.Time) (map[string][]solver.Cooldown, error) {
	rows, err := s.r.QueryContext(ctx, s.q(`SELECT repo, backend, class, until, thread FROM cooldowns
		WHERE until > ?1 AND (?2 = '' OR repo = ?2) ORDER BY repo, backend`), micros(now), repo)
	if err != nil {
		return nil, fmt.Errorf("read the cooldowns: %w", err)
	}
	defer rows.Close()
	cooldowns := map[string][]solver.Cooldown{}
	for rows.Next() {
		var repo string
		var until int64
		var c solver.Cooldown
		if err := rows.Scan(&repo, &c.Backend, &c.Class, &until, &c.Thread); err != nil {
			return nil, fmt.Errorf("read the cooldowns: %w", err)
		}
		c.Until = fromMicros(until)
		cooldowns[repo] = append(cooldowns[repo], c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the cooldowns: %w", err)
	}
	return cooldowns, nil
}

// Threads lists threads that had a decision, an attempt or a wait, newest first.
func (s *Store) Threads(ctx context.Context, limit int) ([]solver.ThreadRow, error) {
	rows, err := s.r.QueryContext(ctx, s.q("SELECT "+listColumns+" FROM threads WHERE active = 1 ORDER BY updated_at DESC LIMIT ?1"), limit)
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	defer rows.Close()
	var list []solver.ThreadRow
	for rows.Next() {
		r, err := s.scanThread(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("list threads: %w", err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	return list, nil
}

// ThreadsOf lists the threads of one repository that Threads would, or with an empty
// name those of all repositories of the owner. GitHub's names differ in more than
// their letters' case.
func (s *Store) ThreadsOf(ctx context.Context, owner, name string) (list []solver.Thread, err error) {
	err = s.eachThread(ctx, func(t solver.Thread) { list = append(list, t) },
		"lower(owner) = lower(?1) AND (?2 = '' OR lower(name) = lower(?2)) ORDER BY owner, name, number", owner, name)
	return list, err
}

// EachThread calls f with the threads that Threads would list, in that order, and
// keeps none of them: where there are ten thousands, a list of them would be most of
// what the process holds.
func (s *Store) EachThread(ctx context.Context, limit int, f func(solver.Thread)) error {
	return s.eachThread(ctx, f, "true ORDER BY updated_at DESC LIMIT ?1", limit)
}

func (s *Store) eachThread(ctx context.Context, f func(solver.Thread), which string, args ...any) error {
	rows, err := s.r.QueryContext(ctx, s.q("SELECT owner, name, number FROM threads WHERE active = 1 AND "+which), args...)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	defer rows.Close()
	var t solver.Thread
	for rows.Next() {
		if err := rows.Scan(&t.Owner, &t.Name, &t.Number); err != nil {
			return fmt.Errorf("list threads: %w", err)
		}
		f(t)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	return nil
}

// Thread returns one thread's row or solver.ErrNotFound.
func (s *Store) Thread(ctx context.Context, t solver.Thread) (solver.ThreadRow, error) {
	r, err := s.scanThread(s.r.QueryRowContext(ctx, s.q("SELECT "+listColumns+" FROM threads WHERE owner = ?1 AND name = ?2 AND number = ?3"),
		t.Owner, t.Name, t.Number).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return solver.ThreadRow{}, fmt.Errorf("thread %s: %w", t, solver.ErrNotFound)
	}
	if err != nil {
		return solver.ThreadRow{}, fmt.Errorf("thread %s: %w", t, err)
	}
	return r, nil
}

// Due reports whether the thread needs a step now: it was woken, or its wake-up
// time has come. A job that finds it false is a duplicate.
func (s *Store) Due(ctx context.Context, t solver.Thread) (due bool, err error) {
	err = s.r.QueryRowContext(ctx, s.q(`SELECT queued_at > 0 OR (wake_at > 0 AND wake_at <= ?4) FROM threads
		WHERE owner = ?1 AND name = ?2 AND number = ?3`), t.Owner, t.Name, t.Number, micros(s.now())).Scan(&due)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("thread %s: %w", t, err)
	}
	return due, nil
}

const listColumns = "owner, name, number, updated_at, wake_at, lease_until"

func (s *Store) scanThread(scan func(...any) error) (r solver.ThreadRow, err error) {
	var updated, wakeAt, until int64
	err = scan(&r.Thread.Owner, &r.Thread.Name, &r.Thread.Number, &updated, &wakeAt, &until)
	r.UpdatedAt, r.WakeAt, r.Running = fromMicros(updated), fromMicros(wakeAt), until > micros(s.now().Add(s.leaseSkew()))
	return r, err
}
