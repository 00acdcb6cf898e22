package server

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/thread"
)

// cleanInterval is how often old records are removed. askDuty is how often a server asks whether it has this duty.
const (
	cleanInterval = time.Hour
	askDuty       = 15 * time.Second
)

// catchUpInterval is how often Pawl asks GitHub for missed deliveries.
const catchUpInterval = 5 * time.Minute

// sweepTime limits a sweep. A connection from before a failover would block until TCP gives up.
const sweepTime = 30 * time.Second

// skippedSweeps is how many sweeps are skipped after an outage or suspension, so that nodes renew their leases first.
const skippedSweeps = 2

func (s *Server) sweep() func(context.Context) error {
	out, last := 0, s.store.Now()
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, sweepTime)
		defer cancel()
		if err := s.clock.Look(ctx); err != nil {
			return err
		}
		now := s.store.Now()
		if now.Sub(last) > thread.LeaseTime {
			out = skippedSweeps
		}
		last = now
		if out > 0 {
			err := s.store.Ping(ctx)
			if out--; err != nil {
				out = skippedSweeps
			}
			return err
		}
		freed, err := s.store.Sweep(ctx)
		if err != nil {
			out = skippedSweeps
			return err
		}
		if freed > 0 {
			s.log.Info().Int("threads", freed).Msg("threads of dead nodes are due")
		}
		return nil
	}
}

// clean removes old records at the start and every hour: each server from its folders, one server from the database.
// A server with a wrong clock removes nothing.
func (s *Server) clean(ctx context.Context) {
	duty := cluster.NewDuty(s.store, "clean", s.solver.Env.Node, cleanInterval)
	for next := time.Now(); ; {
		if s.clock.Trouble() == nil {
			if !time.Now().Before(next) {
				next = time.Now().Add(cleanInterval)
				s.cleanFolders(ctx)
			}
			s.cleanDatabase(ctx, duty)
			s.cleanWork(ctx)
		}
		if wait.For(ctx, askDuty) != nil {
			return
		}
	}
}

// cleanWork removes files of earlier attempts that another node continued.
func (s *Server) cleanWork(ctx context.Context) {
	left, err := s.solver.Env.CleanWorkOf(ctx, s.leftWork)
	s.leftWork = left
	if err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("remove files of killed attempts; retrying")
	}
}

func (s *Server) cleanDatabase(ctx context.Context, duty *cluster.Duty) {
	mine, err := duty.Begin(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("ask for the duty of removing old records; retrying")
	}
	if !mine {
		return
	}
	keep, t := s.solver.Env.Current().Retention, s.store.Now()
	rows, err := s.store.Clean(ctx, store.Retention{Deliveries: t.Add(-keep.Deliveries), Threads: t.Add(-keep.Threads)})
	s.cleaned(ctx, "old records", errors.Join(err, duty.End(ctx)), func(e *zerolog.Event) {
		e.Interface("rows", rows)
	})
}

func (s *Server) cleaned(ctx context.Context, what string, err error, fields func(*zerolog.Event)) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Error().Err(err).Msg(what + " were not removed; retrying")
	default:
		s.log.Info().Func(fields).Msg(what + " removed")
	}
}

// cleanFolders removes old transcripts of this server and of dead servers on this machine.
func (s *Server) cleanFolders(ctx context.Context) {
	before, removed := s.store.Now().Add(-s.solver.Env.Current().Retention.Transcripts), 0
	one := func(dir string) error {
		k, err := s.solver.Env.CleanAttempts(ctx, dir, before)
		removed += k
		return err
	}
	err := one(s.data.dir)
	if err == nil {
		err = s.data.abandoned(ctx, one)
	}
	s.cleaned(ctx, "old transcripts", err, func(e *zerolog.Event) { e.Int("transcripts", removed) })
}
