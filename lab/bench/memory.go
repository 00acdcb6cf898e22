package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// startAim limits the time from exec to the server's first answer.
const startAim = 150 * time.Millisecond

// sandboxModes returns the modes that work, and a note if auto does not.
func sandboxModes(ctx context.Context) (modes, notes []string) {
	if _, err := sandbox.New(ctx, sandbox.Auto); err != nil {
		return []string{"none"}, []string{fmt.Sprintf("Sandbox auto was not measured: %v.", err)}
	}
	return []string{"auto", "none"}, nil
}

// measureStart starts the server with a database, as after an upgrade or a crash, and without one.
func measureStart(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	modes, notes := sandboxModes(ctx)
	for _, mode := range modes {
		own := filepath.Join(dir, mode)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		r, err := newBench(ctx, bin, own, "exit 1\n", "plain", mode, "")
		if err != nil {
			return nil, nil, err
		}
		again, fresh, err := r.starts(ctx)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, nil, err
		}
		rows = append(rows,
			row{"start to ready, existing database, sandbox " + mode, spread(again), "median < " + ms(startAim), quantile(again, 0.5) < startAim},
			row{"start to ready, new database, sandbox " + mode, spread(fresh), "", false})
	}
	return rows, notes, nil
}

// starts measures ten starts with the same database and five without one.
func (r *bench) starts(ctx context.Context) (again, fresh []time.Duration, err error) {
	for n := range 15 {
		if n < 5 {
			if err := os.RemoveAll(filepath.Join(r.Dir, "pawl.db")); err != nil {
				return nil, nil, err
			}
		}
		took, err := r.Start(ctx)
		if err := errors.Join(err, r.Stop()); err != nil {
			return nil, nil, err
		}
		if n < 5 {
			fresh = append(fresh, took)
		} else {
			again = append(again, took)
		}
	}
	return again, fresh, nil
}

const (
	// memoryAim limits an idle server's resident memory, in KiB.
	memoryAim = 40 << 10
	// idle is the wait before a measurement; it includes one sweep.
	idle = 6 * time.Second
	// waiters is the number of waiting threads.
	waiters = 10_000
)

// limitAgent prints Codex's output for an account at its usage limit.
const limitAgent = `cat > /dev/null
echo '{"type":"thread.started","thread_id":"00000000-0000-7000-8000-000000000001"}'
echo '{"type":"turn.started"}'
m="You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at $(date -u -d '+2 hours' '+%l:%M %p')."
echo "{\"type\":\"error\",\"message\":\"$m\"}"
echo "{\"type\":\"turn.failed\",\"error\":{\"message\":\"$m\"}}"
exit 1
`

// measureMemory measures an idle server, then one with many threads that wait for a usage limit's reset.
func measureMemory(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	r, err := newBench(ctx, bin, dir, limitAgent, "codex", "none", "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	empty, err := r.idleMemory(ctx)
	if err != nil {
		return nil, nil, err
	}
	log, err := r.waitingLog(ctx)
	if err := errors.Join(err, r.Stop()); err != nil {
		return nil, nil, err
	}
	if err := r.fill(ctx, log, waiters); err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(filepath.Join(dir, "pawl.db"))
	if err != nil {
		return nil, nil, err
	}
	full, err := r.idleMemory(ctx)
	if err := errors.Join(err, r.Stop()); err != nil {
		return nil, nil, err
	}
	var starts []time.Duration
	for range 5 {
		took, err := r.Start(ctx)
		if err := errors.Join(err, r.Stop()); err != nil {
			return nil, nil, err
		}
		starts = append(starts, took)
	}
	aim := fmt.Sprintf("< %d MB", memoryAim>>10)
	return []row{
			{"resident memory, idle, new database", empty.String(), aim, empty.resident < memoryAim},
			{fmt.Sprintf("resident memory, idle, %d waiting threads", waiters), full.String(), aim, full.resident < memoryAim},
			{fmt.Sprintf("start to ready, %d waiting threads", waiters), spread(starts), "median < " + ms(startAim), quantile(starts, 0.5) < startAim},
		}, []string{fmt.Sprintf("Each waiting thread has a log of %d events; the database has %d MB.",
			len(log), info.Size()>>20)}, nil
}

// usage is a process's memory in KiB. anonymous is memory that the kernel cannot drop, unlike pages of files.
type usage struct{ resident, anonymous int }

func (u usage) String() string {
	return fmt.Sprintf("%.1f MB, including %.1f MB anonymous", float64(u.resident)/1024, float64(u.anonymous)/1024)
}

// idleMemory starts the server, waits for idle and measures its memory.
func (r *bench) idleMemory(ctx context.Context) (u usage, err error) {
	if _, err := r.Start(ctx); err != nil {
		return u, err
	}
	select {
	case <-time.After(idle):
	case <-ctx.Done():
		return u, ctx.Err()
	}
	if u.resident, err = kilobytes(r.Server.Process.Pid, "VmRSS"); err != nil {
		return u, err
	}
	u.anonymous, err = kilobytes(r.Server.Process.Pid, "RssAnon")
	return u, err
}

func (r *bench) waitingLog(ctx context.Context) ([]thread.Event, error) {
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	_, events, err := r.Solve(ctx, db)
	return events, err
}
