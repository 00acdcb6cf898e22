package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"

	"github.com/pawlbot/pawl/lab/rig"
)

const (
	takeOverRounds = 3 // threads, each with two kills in a row
	// Aims: a process's start, and a lease's end plus a poll.
	sqliteAim   = time.Second
	postgresAim = 35 * time.Second
)

// longAgent works until it is killed.
const longAgent = "cat > /dev/null\nexec sleep 300\n"

// measureTakeOver kills servers during an attempt, and measures the interruption: on SQLite from the next process's
// start, on PostgreSQL from the kill until another running node continues.
func measureTakeOver(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	pg, why, err := startPostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		notes = append(notes, "Taking over on PostgreSQL was not measured: "+why+".")
	} else {
		defer func() { err = errors.Join(err, pg.stop()) }()
	}
	for _, m := range []struct {
		what string
		pg   *postgres
		aim  time.Duration
	}{
		{"killed with its agent at work, SQLite: from the next start", nil, sqliteAim},
		{"the same, PostgreSQL, two nodes: from the kill", pg, postgresAim},
	} {
		if m.pg == nil && m.aim == postgresAim {
			continue
		}
		own, err := os.MkdirTemp(dir, "takeover")
		if err != nil {
			return nil, nil, err
		}
		first, second, err := takeOvers(ctx, bin, own, m.pg)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows,
			row{m.what + " to the next attempt", spread(first), "max < " + m.aim.String(), quantile(first, 1) < m.aim},
			row{"the second kill in a row", spread(second), "max < " + m.aim.String(), quantile(second, 1) < m.aim})
	}
	return rows, notes, nil
}

// takeOvers measures each thread's first and second kill.
func takeOvers(ctx context.Context, bin, dir string, pg *postgres) (first, second []time.Duration, err error) {
	r, err := newBench(ctx, bin, dir, longAgent, "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if pg != nil {
		if err := r.onPostgres(ctx, pg, "takeover"); err != nil {
			return nil, nil, err
		}
	}
	made := 0
	next := func() (*bench, error) { // a new server, or the same one again
		n := r.node()
		if pg != nil {
			if n.Addr, err = rig.FreeAddress(); err != nil {
				return nil, err
			}
			made++
			if err := n.nodeConfig(made, r.Addr); err != nil {
				return nil, err
			}
		}
		_, err := n.Start(ctx)
		return n, err
	}
	at, err := next()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, at.Stop()) }()
	for range takeOverRounds {
		r.World.SetWebhookURL(at.URL("/api/github/hook"))
		number, err := r.World.OpenIssue(repo, writer, "A second line", "Please add a second line to a.txt.")
		if err != nil {
			return nil, nil, err
		}
		if _, err := r.World.Comment(repo, number, writer, "/pawl solve"); err != nil {
			return nil, nil, err
		}
		t := thread.ID{Owner: "acme", Name: filepath.Base(repo), Number: number}
		if _, err := at.begun(ctx, t, 1); err != nil {
			return nil, nil, err
		}
		for i, times := range []*[]time.Duration{&first, &second} {
			other := at
			if pg != nil {
				if other, err = next(); err != nil {
					return nil, nil, err
				}
			}
			if err := at.Server.Process.Kill(); err != nil {
				return nil, nil, err
			}
			<-at.Exited
			since := time.Now()
			if pg == nil {
				if other, err = next(); err != nil {
					return nil, nil, err
				}
			}
			at = other
			began, err := at.begun(ctx, t, i+2)
			if err != nil {
				return nil, nil, err
			}
			*times = append(*times, began.Sub(since))
		}
		if _, err := r.World.Comment(repo, number, writer, "/pawl stop"); err != nil {
			return nil, nil, err
		}
	}
	return first, second, nil
}

// begun waits for the start of a thread's n-th attempt.
func (r *bench) begun(ctx context.Context, t thread.ID, n int) (at time.Time, err error) {
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return time.Time{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = r.Until(ctx, fmt.Sprintf("attempt %d", n), func() (bool, error) {
		events, err := db.Events(ctx, t, 0)
		if err != nil {
			return false, err
		}
		s, err := thread.Fold(events)
		if len(s.Attempts) < n {
			return false, err
		}
		at = s.Attempts[n-1].At
		return true, err
	})
	return at, err
}
