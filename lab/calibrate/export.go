package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// exportedThreads limits the export to the threads that changed last.
const exportedThreads = 10_000

// exportRetries prints the retries in a server's database as labelled pairs. The labels do not depend on the compared texts.
func (o options) exportRetries(ctx context.Context, _ io.Reader, out io.Writer) error {
	cfg, err := config.Load(o.config, os.LookupEnv)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, address(cfg.Database), store.Options{Access: store.Reading})
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Threads(ctx, exportedThreads)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	for _, row := range rows {
		_, state, err := thread.Load(ctx, db, row.Thread)
		if err != nil {
			return err
		}
		for _, p := range retries(row.Thread.String(), state) {
			if err := lines.Encode(map[string]string{"view": p.View, "label": p.Label, "group": p.Group, "a": p.A, "b": p.B}); err != nil {
				return err
			}
		}
	}
	return nil
}

// retries returns labelled pairs of consecutive attempts in the thread's runs. It omits pairs that it cannot label.
func retries(group string, s thread.State) []Pair {
	var pairs []Pair
	for i := 1; i < len(s.Attempts); i++ {
		a, b := s.Attempts[i-1], s.Attempts[i]
		if a.Run != b.Run || a.EndedAt.IsZero() || b.EndedAt.IsZero() {
			continue
		}
		label := labelOf(a.Receipt, b.Receipt)
		if label == "" {
			continue
		}
		for _, p := range []Pair{
			{View: "revision", A: a.Receipt.Final, B: b.Receipt.Final},
			{View: "failure", A: failureText(a.Receipt), B: failureText(b.Receipt)},
		} {
			if strings.TrimSpace(p.A) == "" || strings.TrimSpace(p.B) == "" {
				continue
			}
			p.Label, p.Group = label, group
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// labelOf returns whether attempt b repeats the failed attempt a. It is Same if the tree or the failing tests are
// equal. It is Different if other tests fail or b succeeded, and empty if unknown.
func labelOf(a, b policy.Receipt) string {
	if !a.Failing() {
		return ""
	}
	if a.EndTree != "" && a.EndTree == b.EndTree {
		return Same
	}
	if b.CommandsPassed() {
		return Different
	}
	named := len(a.Tests) > 0 && len(b.Tests) > 0
	switch {
	case !named || !b.Failing():
		return ""
	case slices.Equal(a.Tests, b.Tests):
		return Same
	}
	return Different
}

// failureText returns the output of the failed verify commands.
func failureText(r policy.Receipt) string {
	var all []string
	for _, v := range r.Verify {
		if !v.Passed {
			all = append(all, v.Output)
		}
	}
	return strings.Join(all, "\n")
}

// address returns the database's address for store.Open.
func address(d config.Database) string {
	if d.Driver == config.Postgres {
		return d.URL.Reveal()
	}
	return "sqlite:" + d.Path
}
