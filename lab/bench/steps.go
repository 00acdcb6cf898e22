package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"

	"github.com/pawlbot/pawl/lab/rig"
)

// steppedThreads are woken at the same time, stepRounds times, with one, two and three nodes.
const (
	steppedThreads = 1000
	stepRounds     = 3
)

// measureSteps counts the steps per second of nodes that share one PostgreSQL. The steps are trivial: a woken thread has one
// ignored comment. Such a step takes the lease, folds the log, calls policy and releases the lease, without GitHub.
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
	defer func() { err = errors.Join(err, r.Close()) }()
	rates, costs := map[int][]float64{}, map[int][]float64{}
	for range stepRounds {
		for nodes := 1; nodes <= 3; nodes++ {
			rate, cost, err := r.steps(ctx, pg, nodes)
			if err != nil {
				return nil, nil, err
			}
			rates[nodes] = append(rates[nodes], rate)
			costs[nodes] = append(costs[nodes], cost)
		}
	}
	for nodes := 1; nodes <= 3; nodes++ {
		rows = append(rows,
			row{what: fmt.Sprintf("steps/s, PostgreSQL, nodes: %d", nodes), measured: minMedianMax(rates[nodes], "%.0f")},
			row{what: "processor time of a step, PostgreSQL and nodes", measured: minMedianMax(costs[nodes], "%.2f") + " ms"})
	}
	return rows, nil, nil
}

func stepRig(ctx context.Context, bin, dir string, pg *postgres) (r *bench, err error) {
	r, err = newBench(ctx, bin, dir, "exit 1\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := r.onPostgres(ctx, pg, "steps"); err != nil {
		return nil, err
	}
	return r, r.withStore(ctx, func(db *store.Store) error {
		remark := thread.NewEvent{Key: "ignored", Kind: thread.KindIgnored, At: time.Now(), Data: thread.Feedback{Reason: "it is not a command"}}
		if _, err := db.Append(ctx, waiter(0), false, remark); err != nil {
			return err
		}
		return inTx(ctx, db.DB(), func(tx *sql.Tx) error { return copies(ctx, tx, steppedThreads) })
	})
}

// onPostgres gives the server a new PostgreSQL database.
func (r *bench) onPostgres(ctx context.Context, pg *postgres, name string) error {
	dsn, err := pg.newDatabase(ctx, name)
	if err != nil {
		return err
	}
	return r.UseDatabase(dsn)
}

// steps starts the nodes and wakes all threads. The rate is in steps per second, from the commit of the wake-ups to the
// end of the last step. The cost is in milliseconds of CPU time per step; other programs disturb it less.
func (r *bench) steps(ctx context.Context, pg *postgres, nodes int) (rate, cost float64, err error) {
	var all []*bench
	defer func() {
		for _, n := range all {
			err = errors.Join(err, n.Stop())
		}
	}()
	for n := range nodes {
		node := r.node()
		if node.Addr, err = rig.FreeAddress(); err != nil {
			return 0, 0, err
		}
		if err := node.nodeConfig(n, r.Addr); err != nil {
			return 0, 0, err
		}
		if _, err := node.Start(ctx); err != nil {
			return 0, 0, err
		}
		all = append(all, node)
	}
	used := func() (sum time.Duration) {
		sum = familyTime(pg.Server.Process.Pid)
		for _, n := range all {
			sum += cpuTime(n.Server.Process.Pid)
		}
		return sum
	}
	before := used()
	err = r.withStore(ctx, func(db *store.Store) error {
		err := inTx(ctx, db.DB(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE threads SET queued_at = $1 WHERE number > $2", time.Now().UnixMicro(), firstWaiter)
			return err
		})
		if err != nil {
			return err
		}
		if _, err := db.Append(ctx, waiter(0), true); err != nil { // notifies the nodes
			return err
		}
		began := time.Now()
		err = all[0].Until(ctx, "the steps", func() (bool, error) {
			s, err := db.Stats(ctx)
			return s.Queued == 0 && s.Running == 0, err
		})
		rate = steppedThreads / time.Since(began).Seconds()
		return err
	})
	cost = float64((used() - before).Microseconds()) / 1000 / steppedThreads
	return rate, cost, err
}

func (r *bench) nodeConfig(n int, addr string) error {
	from := r.Dir
	r.Dir = filepath.Join(from, fmt.Sprintf("node-%d-%s", n, strings.ReplaceAll(r.Addr, ":", "-")))
	if err := os.Mkdir(r.Dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"pawl.yml", "app.pem"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(strings.Replace(string(text), addr, r.Addr, 1)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// postgres is a PostgreSQL server with default durability. It listens only on a Unix socket.
type postgres struct {
	dir    string
	Server *exec.Cmd
}

// startPostgres starts the PostgreSQL of Debian's package with extra settings. If it is not installed, why is the
// reason.
func startPostgres(ctx context.Context, settings ...string) (p *postgres, why string, err error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(dirs) == 0 {
		return nil, "PostgreSQL is not installed (/usr/lib/postgresql/*/bin)", nil
	}
	bin := dirs[len(dirs)-1]
	dir, err := os.MkdirTemp("", "pawlpg") // a short path, because a socket's path is limited to 107 bytes
	if err != nil {
		return nil, "", err
	}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() == 0 { // the server refuses to run as root
		if attr.Credential, err = unprivileged(dir); err != nil {
			return nil, "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	p = &postgres{dir: dir}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "pawl", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.Dir, initdb.SysProcAttr = dir, attr
	if output, err := initdb.CombinedOutput(); err != nil {
		return nil, "", errors.Join(fmt.Errorf("initdb: %w\n%s", err, output), os.RemoveAll(dir))
	}
	args := []string{"-D", filepath.Join(dir, "data"), "-k", dir}
	for _, s := range append([]string{"listen_addresses=", "max_connections=200"}, settings...) {
		args = append(args, "-c", s)
	}
	p.Server = exec.CommandContext(ctx, filepath.Join(bin, "postgres"), args...)
	p.Server.Dir, p.Server.SysProcAttr = dir, attr
	if err := p.Server.Start(); err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		db, err := store.Open(ctx, p.dsn("postgres"), store.Options{})
		if err == nil {
			return p, "", db.Close()
		}
		if time.Since(began) > 30*time.Second || ctx.Err() != nil {
			return nil, "", errors.Join(fmt.Errorf("PostgreSQL is not ready after 30 s: %w", err), p.stop())
		}
	}
}

// unprivileged returns the user that runs the server if the measurements run as root.
func unprivileged(dir string) (*syscall.Credential, error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(os.Getgid())}, os.Chown(dir, int(uid), -1)
}

func (p *postgres) dsn(name string) string {
	return fmt.Sprintf("postgres://pawl@/%s?host=%s", name, p.dir)
}

func (p *postgres) newDatabase(ctx context.Context, name string) (dsn string, err error) {
	db, err := store.Open(ctx, p.dsn("postgres"), store.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.DB().ExecContext(ctx, "CREATE DATABASE "+name)
	return p.dsn(name), err
}

func (p *postgres) stop() error {
	err := p.Server.Process.Signal(syscall.SIGQUIT)
	_ = p.Server.Wait() // returns the signal as an error
	return errors.Join(err, os.RemoveAll(p.dir))
}
