package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/notify"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// cleanInterval is how often old records are removed, and askDuty how often a server
// asks whether it is its turn to remove them, as store.Duty wants it.
const (
	cleanInterval = time.Hour
	askDuty       = 15 * time.Second
)

// catchUpInterval is how often GitHub, which delivers once, is asked for what did not arrive.
const catchUpInterval = 5 * time.Minute

// sweepTime bounds one sweep, which takes milliseconds, or a second or two after an outage: a connection that a
// failover left behind would hold all until TCP gives up.
const sweepTime = 30 * time.Second

// turnsOut is how many turns the sweep leaves out after the database was away, so that those at work renew
// their leases first: a renewal that hangs takes 5 s, as a turn does, and the next one begins a second later.
const turnsOut = 2

// sweep makes threads due that a node left which is gone.
func (n *node) sweep() func(context.Context) error {
	out := 0
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, sweepTime)
		defer cancel()
		if out > 0 {
			err := n.store.Ping(ctx)
			if out--; err != nil {
				out = turnsOut
			}
			return err
		}
		freed, err := n.store.Sweep(ctx, n.solver.Now())
		if err != nil {
			out = turnsOut
			return err
		}
		if freed > 0 {
			n.log.Info().Int("threads", freed).Msg("threads of nodes that are gone are due")
		}
		return nil
	}
}

// clean removes what is older than the retention, at the start and then every hour: each server from its
// folders, and one of them from the database that they share.
func (n *node) clean(ctx context.Context) {
	duty := n.store.Duty("clean", n.solver.Node, cleanInterval)
	trusted := false // its clock, with which only a server may remove for all
	for next := time.Now(); ; {
		if !time.Now().Before(next) {
			next = time.Now().Add(cleanInterval)
			removed, err := n.cleanFolders(ctx, n.solver.Now().Add(-n.solver.Current().Retention.Transcripts))
			n.cleaned(ctx, "old transcripts", err, func(e *zerolog.Event) { e.Int("transcripts", removed) })
			trusted = !errors.Is(err, store.ErrClock)
		}
		if !trusted {
			// Another one cleans.
		} else if mine, err := duty.Begin(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn().Err(err).Msg("whether this server removes old records is not known; it is asked again")
		} else if mine {
			keep, t := n.solver.Current().Retention, n.solver.Now()
			rows, err := n.store.Clean(ctx, store.Retention{Deliveries: t.Add(-keep.Deliveries), Threads: t.Add(-keep.Threads)})
			n.cleaned(ctx, "old records", errors.Join(err, duty.End(ctx)), func(e *zerolog.Event) {
				e.Interface("rows", rows)
			})
		}
		if wait.For(ctx, askDuty) != nil {
			return
		}
	}
}

func (n *node) cleaned(ctx context.Context, what string, err error, fields func(*zerolog.Event)) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, store.ErrClock):
		n.log.Warn().Err(err).Msg("nothing is removed while the clock may be wrong")
	case err != nil:
		n.log.Error().Err(err).Msg(what + " were not removed; they are tried again")
	default:
		n.log.Info().Func(fields).Msg(what + " removed")
	}
}

// cleanFolders removes old transcripts of this server and of those on this machine that are gone.
func (n *node) cleanFolders(ctx context.Context, before time.Time) (removed int, err error) {
	if err := n.store.TrustClock(ctx); err != nil {
		return 0, err
	}
	one := func(dir string) error {
		k, err := n.solver.CleanAttempts(ctx, dir, before)
		removed += k
		return err
	}
	if err := one(n.data.dir); err != nil {
		return removed, err
	}
	return removed, n.data.abandoned(ctx, one)
}

// maxNodes bounds how many servers may share a data directory on one machine.
const maxNodes = 64

// folderPatience is how long the first folder is waited for: a server that was killed and is started again at
// once may find it locked by a child, and would not find its caches and sessions in another one.
const folderPatience = time.Second / 2

// lockFile is locked in each folder by the process that uses it.
const lockFile = "pawl.lock"

// dataFolder is the part of a data directory that one process uses alone, as the kernel sees to.
type dataFolder struct {
	root string // the data directory of all servers on this machine
	dir  string
	lock *os.File
	// place is dir with an id that is kept in it, since a container has another host's name each time.
	place string
}

// folders are the parts of the servers in a data directory, whether they are there or not.
func folders(root string) []string {
	all := []string{root}
	for i := 1; i < maxNodes; i++ {
		all = append(all, filepath.Join(root, fmt.Sprintf("node-%d", i)))
	}
	return all
}

// claimData takes the data directory or, where other servers use it, a folder in it: node-1, node-2 and so on.
// A server that is started again finds the folder that it left.
func claimData(ctx context.Context, root string) (*dataFolder, error) {
	for i, own := range folders(root) {
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there)", err)
		}
		patience := folderPatience
		if i > 0 {
			patience = 0
		}
		lock, err := wait.Lock(ctx, filepath.Join(own, lockFile), patience)
		if err == nil {
			id, err := io.ReadAll(lock)
			if err == nil && len(id) == 0 {
				id = []byte(rand.Text())
				_, err = lock.Write(id)
			}
			if err != nil {
				err = fmt.Errorf("data_dir: keep its id: %w (see that the disk is not full)", err)
			}
			return &dataFolder{root: root, dir: own, lock: lock, place: string(id) + ":" + own}, err
		}
		if !errors.Is(err, wait.ErrLocked) {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there, and the file system to lock)", err)
		}
	}
	return nil, fmt.Errorf("data_dir: %d servers use %s already; give this one another", maxNodes, root)
}

// abandoned calls f with each folder that no process uses, and keeps others from taking it meanwhile.
func (d *dataFolder) abandoned(ctx context.Context, f func(dir string) error) error {
	for _, dir := range folders(d.root) {
		name := filepath.Join(dir, lockFile)
		if _, err := os.Stat(name); dir == d.dir || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		lock, err := wait.Lock(ctx, name, 0)
		if errors.Is(err, wait.ErrLocked) {
			continue
		}
		if err == nil {
			err = f(dir)
			lock.Close() // unlocks it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// countTime bounds how long the end of an attempt waits for its being counted for notifications.
const countTime = 5 * time.Second

// notifier is what tells the operator in a chat.
func (n *node) notifier() *notify.Watch {
	w := &notify.Watch{URL: func() string { return n.solver.Current().Notify.URL.Reveal() }, UpdateShared: n.store.UpdateShared, Client: notify.Client(outbound(1)), Log: n.log, Health: n.health}
	count := n.solver.OnAttempt
	n.solver.OnAttempt = func(backend string, ending policy.Ending, outcome policy.Outcome) {
		count(backend, ending, outcome)
		ctx, cancel := context.WithTimeout(context.Background(), countTime)
		defer cancel()
		w.Attempt(ctx, outcome)
	}
	return w
}

// facts are what the notifications are drawn from.
func (n *node) health(ctx context.Context) (f notify.Health, err error) {
	stats, err := n.store.Stats(ctx)
	if err != nil {
		return f, err
	}
	f = notify.Health{QueueAge: stats.QueueAge, GivenUp: stats.Deliveries[thread.GivenUp], MaxConsecutive: n.solver.Current().Policy.UsageLimit.MaxConsecutive}
	if f.Breakers, err = n.store.Breakers(ctx); err != nil {
		return f, err
	}
	used, err := n.store.Usage(ctx, "", 0, n.solver.Now().Add(-policy.Day))
	if err != nil {
		return f, err
	}
	f.Day = n.solver.Current().Policy.Server(used)
	learned, err := n.solver.LearningReport(ctx)
	for _, s := range learned.Sources {
		if s.Degraded {
			f.Degraded = append(f.Degraded, string(s.Source))
		}
	}
	return f, err
}
