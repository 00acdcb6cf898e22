package server

import (
	"context"
	"time"

	"github.com/pawlbot/pawl/internal/notify"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// countTime limits how long an attempt waits until the notifier has counted it.
const countTime = 5 * time.Second

func (s *Server) notifier() *notify.Watch {
	w := &notify.Watch{
		URL:          func() string { return s.solver.Env.Current().Notify.URL.Reveal() },
		UpdateShared: s.store.UpdateShared,
		Client:       notify.Client(outbound(1)),
		Log:          s.log,
		Health:       s.health,
	}
	count := s.solver.Env.OnAttempt
	s.solver.Env.OnAttempt = func(backend string, ending policy.Ending, outcome policy.Outcome) {
		count(backend, ending, outcome)
		ctx, cancel := context.WithTimeout(context.Background(), countTime)
		defer cancel()
		w.Attempt(ctx, outcome)
	}
	return w
}

func (s *Server) health(ctx context.Context) (f notify.Health, err error) {
	stats, err := s.store.Stats(ctx)
	if err != nil {
		return f, err
	}
	f = notify.Health{
		QueueAge:       stats.QueueAge,
		GivenUp:        stats.Deliveries[thread.GivenUp],
		MaxConsecutive: s.solver.Env.Current().Policy.UsageLimit.MaxConsecutive,
	}
	if f.Breakers, err = s.store.Breakers(ctx); err != nil {
		return f, err
	}
	used, err := s.store.Usage(ctx, "", 0, s.store.Now().Add(-policy.Day))
	if err != nil {
		return f, err
	}
	f.Day = s.solver.Env.Current().Policy.Server(used)
	learned, err := s.solver.LearningReport(ctx)
	for _, s := range learned.Sources {
		if s.Degraded {
			f.Degraded = append(f.Degraded, string(s.Source))
		}
	}
	return f, err
}
