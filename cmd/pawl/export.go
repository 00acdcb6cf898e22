package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

// exportThread writes the log of a thread as a trail: one event a line, oldest
// first, as it stands in the database. The number of a pull request that Pawl
// opened means the thread of its issue.
func exportThread(ctx context.Context, cfg config.Server, name string, w io.Writer) error {
	t, err := solver.ParseThread(name)
	if err != nil {
		return err
	}
	db, err := store.OpenReadOnly(ctx, dsn(cfg.Database), store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	if t, err = db.Resolve(ctx, t); err != nil {
		return err
	}
	events, err := db.Events(ctx, t, 0)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return fmt.Errorf("export %s: nothing is logged of it; pawl status lists the threads", t)
	}
	b := bufio.NewWriter(w)
	for _, e := range events {
		if err := json.NewEncoder(b).Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}
