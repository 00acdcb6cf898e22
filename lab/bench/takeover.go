package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"

	"github.com/pawlbot/pawl/lab/rig"
)

const (
	takeOverRounds = 3 // threads, each with two kills in a row
	// The aims include a process's start on SQLite, and two seconds without the killed node's lock on PostgreSQL.
	sqliteAim   = time.Second
	postgresAim = 5 * time.Second
	// A lease lasts 30 s and is renewed every 10 s. Nodes sweep every 5 s.
	silentAim = 35 * time.Second
)

// longAgent works until it is killed.
const longAgent = "cat > /dev/null\nexec sleep 300\n"

// measureTakeOver kills servers during an attempt and measures the time until the next attempt: on SQLite from the next
// process's start, on PostgreSQL from the kill, with another running node. A stopped process (SIGSTOP) keeps its
// connections, as a node behind a silent network cut does.
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
	type measure struct {
		what   string
		pg     *postgres
		signal syscall.Signal
		aim    time.Duration
	}
	all := []measure{{"server killed during an attempt, SQLite: from the next start", nil, syscall.SIGKILL, sqliteAim}}
	if pg != nil {
		all = append(all,
			measure{"server killed during an attempt, PostgreSQL with two nodes: from the kill", pg, syscall.SIGKILL, postgresAim},
			measure{"server silent during an attempt, PostgreSQL with two nodes: from the stop", pg, syscall.SIGSTOP, silentAim})
	}
	for _, m := range all {
		own, err := os.MkdirTemp(dir, "takeover")
		if err != nil {
			return nil, nil, err
		}
		first, second, err := takeOvers(ctx, bin, own, m.pg, m.signal)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows,
			row{m.what + " to the next attempt", spread(first), "max < " + m.aim.String(), quantile(first, 1) < m.aim},
			row{"the second time in a row", spread(second), "max < " + m.aim.String(), quantile(second, 1) < m.aim})
	}
	return rows, notes, nil
}

// takeOvers measures the interruptions after each thread's first and second signal to its server.
func takeOvers(ctx context.Context, bin, dir string, pg *postgres, signal syscall.Signal) (first, second []time.Duration, err error) {
	r, err := newBench(ctx, bin, dir, longAgent, "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if pg != nil {
		if err := r.onPostgres(ctx, pg, fmt.Sprint("takeover_", int(signal))); err != nil {
			return nil, nil, err
		}
	}
	made := 0
	next := func() (*bench, error) { // a new server on PostgreSQL; on SQLite the same server again
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
			if err := at.Server.Process.Signal(signal); err != nil {
				return nil, nil, err
			}
			if signal == syscall.SIGKILL {
				<-at.Exited
			}
			since := time.Now()
			if pg == nil {
				if other, err = next(); err != nil {
					return nil, nil, err
				}
			}
			before := at
			at = other
			began, err := at.begun(ctx, t, i+2)
			if err != nil {
				return nil, nil, err
			}
			*times = append(*times, began.Sub(since))
			if signal == syscall.SIGSTOP {
				if err := before.Server.Process.Kill(); err != nil {
					return nil, nil, err
				}
				<-before.Exited
			}
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
