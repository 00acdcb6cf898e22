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
	n.solver.OnAttempt, n.solver.OnReceipt, n.solver.OnDecision = counters.Attempt, counters.Receipt, counters.Decision
	n.solver.OnTakeOver = counters.TakeOver
	return web.New(web.Options{
		Hook: hook, Store: n.store, View: n.solver.View, Stats: n.stats, Requests: n.requests,
		Details: []web.Detail{
			detail("data_dir", n.writable), detail("queue", n.flowing),
			{Name: "github", Run: func(context.Context) (bool, string) { return n.github.state() }},
			{Name: "clock", Run: func(context.Context) (bool, string) { return n.agreed() }},
		},
		Learning: n.solver.Standing, Points: n.points, Skew: n.store.Skew,
		Counters: counters, Build: web.Build{Version: b.Version, Commit: b.Commit, Go: b.Go},
		WebURL: n.cfg.GitHub.WebURL, MaxLimits: n.cfg.Policy.UsageLimit.MaxConsecutive, Now: now, Log: n.log,
	})
}

// detail is one that is well or says why it is not.
func detail(name string, run func(ctx context.Context) error) web.Detail {
	return web.Detail{Name: name, Run: func(ctx context.Context) (bool, string) {
		if err := run(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	}}
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

func (n *node) points() []web.Points {
	var all []web.Points
	for _, p := range n.forge.Points() {
		all = append(all, web.Points(p))
	}
	return all
}

// What may wait, and for how long, before the queue counts as stuck. A delivery
// is tried within seconds, for two minutes at most; a step begins within seconds
// where there is room for it. Both bounds are several times what a full sweep
// after a crash takes.
const (
	maxDeliveryAge = 15 * time.Minute
	maxQueueAge    = 5 * time.Minute
)

// flowing reports whether the queue does its work: no delivery lies untouched,
// and no thread waits for a step while there is room. A thread that waits because
// every place is taken is no fault. Both are of all servers on the database; where
// fewer steps run on all of them than this one has places, there is room.
func (n *node) flowing(ctx context.Context) error {
	s, err := n.store.Stats(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.DeliveryAge > maxDeliveryAge:
		return fmt.Errorf("a delivery was stored %s ago and nobody has handled it", s.DeliveryAge.Round(time.Second))
	case s.QueueAge > maxQueueAge && s.Running < n.cfg.Workers+quickSteps:
		return fmt.Errorf("a thread has waited %s for a step, although only %d run", s.QueueAge.Round(time.Second), s.Running)
	}
	return nil
}

// maxSkew is where a clock's error begins to matter: GitHub takes tokens that are
// dated at most a minute ahead.
const maxSkew = time.Minute

// agreed reports whether this machine's clock is that of the database. Leases are
// judged by the latter, so a difference harms no thread.
func (n *node) agreed() (ok bool, detail string) {
	skew := n.store.Skew()
	if skew == 0 {
		return true, "agrees with the database's"
	}
	return skew.Abs() < maxSkew, fmt.Sprintf("the database's clock is ahead by %s", skew.Round(time.Second))
}

// writable reports whether attempts can be kept: a full or read-only disk makes
// every attempt of this server fail, while webhooks can still be stored.
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
