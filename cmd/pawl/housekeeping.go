package main

import (
	"context"
	"errors"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/store"
)

// cleanInterval is how often old records are removed.
const cleanInterval = time.Hour

// catchUpInterval is how often GitHub is asked for deliveries that did not
// arrive. GitHub delivers once and says nothing of a failure.
const catchUpInterval = 5 * time.Minute

// sweepTime bounds one sweep, which takes milliseconds, or a second or two after
// an outage. A connection to PostgreSQL that a failover left without anybody at its
// other end would hold all sweeps of this server until TCP gives up.
const sweepTime = 30 * time.Second

// turnsOut is how many turns the sweep leaves out after the database was away. Those
// that are still at work renew their leases meanwhile, which may have run out, and
// would lose their threads otherwise: a renewal that hangs takes 5 s, as a turn does,
// and the next one begins a second later.
const turnsOut = 2

// sweep wakes what a crash left asleep.
func (n *node) sweep(now func() time.Time) func(context.Context) error {
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
		woken, err := n.store.Stale(ctx, now())
		if err != nil {
			out = turnsOut
			return err
		}
		if woken.Threads+woken.Deliveries > 0 {
			n.log.Info().Int("threads", woken.Threads).Int("deliveries", woken.Deliveries).Msg("woken by the sweep")
		}
		return nil
	}
}

// clean removes what is older than the retention, at the start and then every
// hour, until ctx ends.
func (n *node) clean(ctx context.Context, now func() time.Time) {
	tick := time.NewTicker(cleanInterval)
	defer tick.Stop()
	for {
		t, keep := now(), n.cfg.Retention
		rows, err := n.store.Clean(ctx, store.Retention{Deliveries: t.Add(-keep.Deliveries), Threads: t.Add(-keep.Threads)})
		transcripts := 0
		if err == nil {
			transcripts, err = n.cleanFolders(ctx, t.Add(-keep.Transcripts))
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrClock):
			n.log.Warn().Err(err).Msg("nothing is removed while the clock may be wrong")
		case err != nil:
			n.log.Error().Err(err).Msg("old records were not removed; the next try is in an hour")
		default:
			n.log.Info().Interface("rows", rows).Dur("longest", rows.Longest).Int("transcripts", transcripts).Msg("old records removed")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// cleanFolders removes old transcripts from this server's folder and from those of
// servers on this machine that are gone.
func (n *node) cleanFolders(ctx context.Context, before time.Time) (removed int, err error) {
	one := func(dir string) error {
		k, err := n.solver.CleanAttempts(ctx, dir, before)
		removed += k
		return err
	}
	if err := one(n.data.dir); err != nil {
		return removed, err
	}
	return removed, n.data.abandoned(one)
}

// checkAgents logs what is to be thought of the versions of the agents, beside
// the server's start: a CLI may take seconds to say its version.
func (n *node) checkAgents(ctx context.Context) {
	for _, b := range n.cfg.Backends {
		a, err := agent.For(b.Kind, b.Stream)
		if err != nil || len(a.Version.Args) == 0 {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, doctorTime)
		s, err := askVersion(asking, program(b), b, a.Version)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.log.Warn().Err(err).Str("backend", b.Name).Msg("the agent does not tell its version; pawl doctor says more")
		case s.Kind != agent.VersionChecked:
			n.log.Warn().Str("backend", b.Name).Str("found", s.Found).Msg(s.Text)
		}
	}
}
