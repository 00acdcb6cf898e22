package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/pawlbot/pawl/internal/web"
)

// pages puts together what is served: the webhook endpoint, the pages, health
// and metrics.
func (n *node) pages(hook http.Handler, now func() time.Time) http.Handler {
	b := buildInfo()
	counters := web.NewCounters()
	n.solver.OnAttempt, n.solver.OnDecision = counters.Attempt, counters.Decision
	return web.New(web.Options{
		Hook: hook, Store: n.store, View: n.solver.View, Stats: n.stats, Requests: n.requests,
		Checks:   []web.Check{{Name: "data_dir", Run: n.writable}},
		Counters: counters, Build: web.Build{Version: b.Version, Commit: b.Commit, Go: b.Go},
		WebURL: n.cfg.GitHub.WebURL, MaxLimits: n.cfg.Policy.UsageLimit.MaxConsecutive, Now: now, Log: n.log,
	})
}

func (n *node) stats(ctx context.Context) (web.Stats, error) {
	s, err := n.store.Stats(ctx)
	return web.Stats(s), err
}

func (n *node) requests() []web.Requests {
	var all []web.Requests
	for _, c := range n.forge.Stats() {
		all = append(all, web.Requests(c))
	}
	return all
}

// writable reports whether attempts can be kept: a full or read-only disk makes
// every attempt fail, while the database may still take webhooks from memory.
func (n *node) writable(context.Context) error {
	f, err := os.CreateTemp(n.cfg.DataDir, ".ready-*")
	if err != nil {
		return fmt.Errorf("data_dir is not writable: %w", err)
	}
	_, err = f.WriteString("ready\n")
	if e := f.Close(); err == nil {
		err = e
	}
	if e := os.Remove(f.Name()); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("data_dir is not writable: %w", err)
	}
	return nil
}
