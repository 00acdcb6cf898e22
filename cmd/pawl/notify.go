package main

import (
	"context"
	"time"

	"github.com/pawlbot/pawl/internal/notify"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// countTime bounds how long the end of an attempt waits for its being counted for notifications.
const countTime = 5 * time.Second

// notifier is what tells the operator in a chat.
func (n *node) notifier(now func() time.Time) *notify.Watch {
	w := &notify.Watch{URL: func() string { return n.solver.Current().Notify.URL.Reveal() }, UpdateShared: n.store.UpdateShared, Client: notify.Client(outbound(1)), Log: n.log, Facts: func(ctx context.Context) (notify.Facts, error) {
		return n.facts(ctx, now())
	}}
	count := n.solver.OnAttempt
	n.solver.OnAttempt = func(backend string, ending policy.Ending, outcome policy.Outcome) {
		count(backend, ending, outcome)
		ctx, cancel := context.WithTimeout(context.Background(), countTime)
		defer cancel()
		w.Attempt(ctx, outcome)
	}
	return w
}

// facts are what the notifications are drawn from.
func (n *node) facts(ctx context.Context, now time.Time) (f notify.Facts, err error) {
	stats, err := n.store.Stats(ctx)
	if err != nil {
		return f, err
	}
	f = notify.Facts{QueueAge: stats.QueueAge, GivenUp: stats.Deliveries[thread.GivenUp], MaxConsecutive: n.solver.Current().Policy.UsageLimit.MaxConsecutive}
	if f.Breakers, err = n.store.Breakers(ctx); err != nil {
		return f, err
	}
	used, err := n.store.Usage(ctx, "", 0, now.Add(-policy.Day))
	if err != nil {
		return f, err
	}
	f.Day = n.solver.Current().Policy.Server(used)
	learned, err := n.solver.LearningReport(ctx)
	for _, s := range learned.Sources {
		if s.Degraded {
			f.Degraded = append(f.Degraded, string(s.Source))
		}
	}
	return f, err
}
