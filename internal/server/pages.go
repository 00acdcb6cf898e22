package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// handle assembles two handlers: one for webhooks, and one for pages, health and metrics on another listener.
func (s *Server) handle(ctx context.Context, hook http.Handler, counters *web.Counters) error {
	access, err := s.access(ctx)
	if err != nil {
		return err
	}
	s.solver.Env.OnAttempt, s.solver.Env.OnReceipt, s.solver.OnDecision = counters.Attempt, counters.Receipt, counters.Decision
	s.solver.OnTakeOver = counters.TakeOver
	o := web.Options{
		Hook:   hook,
		Store:  s.store,
		View:   s.solver.View,
		GitHub: s.forge.Metrics(),
		Details: []web.Detail{
			detail("data_dir", s.writable), detail("queue", s.flowing), detail("deliveries", s.noneGivenUp),
			{Name: "github", Run: func(context.Context) (bool, string) { return s.github.state() }},
			detail("clock", s.agreed),
			{Name: "tasks", Run: func(context.Context) (bool, string) { return s.panicked.health(s.deps.Now()) }},
		},
		Learning:   s.solver.LearningReport,
		Skew:       s.store.Skew,
		Layers:     s.solver.Env.Layers.Usage,
		Images:     s.solver.Env.Images.Usage,
		Counters:   counters,
		Build:      s.deps.Build,
		WebURL:     s.cfg.GitHub.WebURL,
		Limits:     func() policy.Limits { return s.solver.Env.Current().Policy.Limits },
		Access:     access,
		Proxies:    s.cfg.HTTP.Proxies,
		Transcript: s.solver.Env.OpenTranscript,
		Stopping:   s.solver.Env.Stopping,
		Now:        s.store.Now,
		Log:        s.log,
	}
	if s.cfg.HTTP.HooksFrom == config.HooksFromGitHub {
		if err := s.loadHookRanges(ctx); err != nil {
			return err
		}
		o.HookRanges = s.knownHookRanges
	}
	pages, err := web.Pages(o)
	if err != nil {
		return err
	}
	s.http, s.pagesHTTP = web.Server(web.Public(o)), web.Server(pages)
	s.relayHTTP = s.relay()
	s.http.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateIdle { // a response was sent
			crash.Point("answered")
		}
	}
	return nil
}

func (s *Server) agreed(context.Context) error {
	if err := s.clock.Trouble(); err != nil {
		return fmt.Errorf("nothing is claimed: %w", err)
	}
	return nil
}

func detail(name string, run func(ctx context.Context) error) web.Detail {
	return web.Detail{Name: name, Run: func(ctx context.Context) (bool, string) {
		if err := run(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	}}
}

// How long work may wait before the queue counts as stuck. Both are longer than the wait for a sweep after a crash.
// Normally, deliveries are tried within seconds, and steps begin within seconds if a slot is free.
const (
	maxDeliveryAge = 15 * time.Minute
	maxQueueAge    = 5 * time.Minute
)

// flowing returns an error if the server cannot claim threads, or if a delivery or thread waits too long. All servers'
// deliveries and threads count. A slot is free if fewer steps run than this server has slots.
func (s *Server) flowing(ctx context.Context) error {
	if err := s.queue.Trouble(); err != nil {
		return fmt.Errorf("nothing is claimed: %w", err)
	}
	stats, err := s.store.Stats(ctx)
	if err != nil {
		return err
	}
	switch {
	case stats.DeliveryAge > maxDeliveryAge:
		return fmt.Errorf("a delivery was stored %s ago and never handled", stats.DeliveryAge.Round(time.Second))
	case stats.QueueAge > maxQueueAge && stats.Running < s.cfg.Workers+quickSteps:
		return fmt.Errorf("a thread has waited %s for a step, although only %d run", stats.QueueAge.Round(time.Second), stats.Running)
	}
	return nil
}

// noneGivenUp returns an error if Pawl has given up on deliveries.
func (s *Server) noneGivenUp(ctx context.Context) error {
	stats, err := s.store.Stats(ctx)
	if given := stats.Deliveries[thread.GivenUp]; err == nil && given > 0 {
		return fmt.Errorf("%d could not be handled and are no longer tried; pawl status lists them, pawl deliveries retries or dismisses them", given)
	}
	return err
}

// writable returns an error if the data directory is not writable.
func (s *Server) writable(context.Context) error {
	f, err := os.CreateTemp(s.cfg.DataDir, ".ready-*")
	if err != nil {
		return fmt.Errorf("data_dir is not writable: %w", err)
	}
	_, err = f.WriteString("ready\n")
	if err = errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("data_dir is not writable: %w", err)
	}
	return nil
}
