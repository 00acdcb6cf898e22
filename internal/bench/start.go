package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/sandbox"
)

// startAim is when the server should answer, from exec.
const startAim = 150 * time.Millisecond

// sandboxModes are those that work here, and a note about one that does not.
func sandboxModes(ctx context.Context) (modes, notes []string) {
	if _, err := sandbox.New(ctx, sandbox.Auto); err != nil {
		return []string{"none"}, []string{fmt.Sprintf("Sandbox auto was not measured: %v.", err)}
	}
	return []string{"auto", "none"}, nil
}

// measureStart starts the server on a database that exists, as after an upgrade
// or a crash, and on none.
func measureStart(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	modes, notes := sandboxModes(ctx)
	for _, mode := range modes {
		own := filepath.Join(dir, mode)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		r, err := newRig(ctx, bin, own, "exit 1\n", "plain", mode, "")
		if err != nil {
			return nil, nil, err
		}
		again, fresh, err := r.starts(ctx)
		if err := errors.Join(err, r.close()); err != nil {
			return nil, nil, err
		}
		rows = append(rows,
			row{"start to ready, existing database, sandbox " + mode, spread(again), "median < " + ms(startAim), quantile(again, 0.5) < startAim},
			row{"start to ready, new database, sandbox " + mode, spread(fresh), "", false})
	}
	return rows, notes, nil
}

// starts measures ten starts on the same database and five without one.
func (r *rig) starts(ctx context.Context) (again, fresh []time.Duration, err error) {
	for n := range 15 {
		if n < 5 {
			if err := os.RemoveAll(filepath.Join(r.dir, "pawl.db")); err != nil {
				return nil, nil, err
			}
		}
		took, err := r.start(ctx)
		if err := errors.Join(err, r.stop()); err != nil {
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
