package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

// steppedThreads are woken at once, stepRounds times on one, two and three nodes.
const (
	steppedThreads = 1000
	stepRounds     = 3
)

// measureSteps counts the steps of nodes that share one PostgreSQL. A step is
// trivial: the thread has one remark, which was ignored, and is woken; its lease is
// taken, its log read and folded, policy asked, which has nothing to do, and the
// lease given back. Nothing asks GitHub.
func measureSteps(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	pg, why, err := startPostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		return nil, []string{"Steps were not measured: " + why + "."}, nil
	}
	defer func() { err = errors.Join(err, pg.stop()) }()
	r, err := stepRig(ctx, bin, dir, pg)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	rates := map[int][]float64{}
	for range stepRounds {
		for nodes := 1; nodes <= 3; nodes++ {
			rate, err := r.steps(ctx, nodes)
			if err != nil {
				return nil, nil, err
			}
			rates[nodes] = append(rates[nodes], rate)
		}
	}
	for nodes := 1; nodes <= 3; nodes++ {
		rows = append(rows, row{what: fmt.Sprintf("steps/s, PostgreSQL, nodes: %d", nodes), measured: minMedianMax(rates[nodes], "%.0f")})
	}
	return rows, nil, nil
}

// stepRig has many threads in PostgreSQL.
func stepRig(ctx context.Context, bin, dir string, pg *postgres) (r *rig, err error) {
	r, err = newRig(ctx, bin, dir, "exit 1\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.dsn, err = pg.newDatabase(ctx, "steps"); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "pawl.yml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "sqlite:pawl.db", r.dsn, 1)), 0o600); err != nil {
		return nil, err
	}
	return r, r.withQueue(ctx, func(db *store.Store, _ *queue.Queue) error {
		remark := solver.NewEvent{Key: "ignored", Kind: solver.KindIgnored, At: time.Now(), Data: solver.Feedback{Reason: "it is no command"}}
		if _, err := db.Append(ctx, waiter(0), false, remark); err != nil {
			return err
		}
		return inTx(ctx, db.DB(), func(tx *sql.Tx) error { return copies(ctx, tx, steppedThreads) })
	})
}

// steps wakes all threads beside some nodes and returns the rate, counted from
// the commit of the wake-ups to the end of the last step.
func (r *rig) steps(ctx context.Context, nodes int) (rate float64, err error) {
	var all []*rig
	defer func() {
		for _, n := range all {
			err = errors.Join(err, n.stop())
		}
	}()
	for n := range nodes {
		node := *r
		if node.addr, err = freeAddress(); err != nil {
			return 0, err
		}
		if err := node.nodeConfig(n, r.addr); err != nil {
			return 0, err
		}
		if _, err := node.start(ctx); err != nil {
			return 0, err
		}
		all = append(all, &node)
	}
	err = r.withQueue(ctx, func(db *store.Store, q *queue.Queue) error {
		err := inTx(ctx, db.DB(), func(tx *sql.Tx) error {
			now := time.Now()
			if _, err := tx.ExecContext(ctx, "UPDATE threads SET queued_at = $1, requeue_at = $2 WHERE number >= $3",
				now.UnixMicro(), now.Add(time.Hour).UnixMicro(), firstWaiter); err != nil {
				return err
			}
			for n := range steppedThreads {
				if err := q.Step(ctx, tx, waiter(n), time.Time{}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		began := time.Now()
		err = all[0].until(ctx, "the steps", func() (bool, error) {
			s, err := db.Stats(ctx)
			return s.Queued == 0 && s.Running == 0, err
		})
		rate = steppedThreads / time.Since(began).Seconds()
		return err
	})
	return rate, err
}

// nodeConfig gives a node a folder of its own, with its address.
func (r *rig) nodeConfig(n int, addr string) error {
	from := r.dir
	r.dir = filepath.Join(from, fmt.Sprintf("node-%d-%s", n, strings.ReplaceAll(r.addr, ":", "-")))
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"pawl.yml", "app.pem"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(strings.Replace(string(text), addr, r.addr, 1)), 0o600); err != nil {
			return err
		}
	}
	return nil
}
