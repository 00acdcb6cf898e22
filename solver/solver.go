package solver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// Solver carries out decisions. Env and Host are required.
type Solver struct {
	attempt.Env
	// Host is where the repositories are.
	Host Host
	// Verify are verify commands beside those of the repositories' configurations.
	Verify []string
	// Slots bounds the attempts that run at the same time: one element of its
	// capacity each. Nil means no bound.
	Slots chan struct{}
	// Trace opens spans around pieces of work; it may be nil.
	Trace Trace
	// OnDecision is told what was logged, for metrics; it may be nil and must not
	// block.
	OnDecision func(rule policy.Rule, action policy.Action)
	// OnTakeOver is told of a thread that was taken from a node which did not
	// give it back; it may be nil and must not block.
	OnTakeOver func()

	learned learnedCache
	// waiting counts the steps that wait in memory for one of the Slots.
	waiting atomic.Int64
}

// Step takes the thread's lease and works it off. A *HeldError means that another
// step is at it.
func (s *Solver) Step(given context.Context, t thread.ID) error {
	asked := time.Now()
	l, err := s.Store.Acquire(given, t, s.Node, s.Now())
	if err != nil {
		return err
	}
	return s.Work(given, l, asked)
}

// Work does what is to be done now on a thread whose lease was taken, and asked for
// at a time: until the thread waits, has ended, or another node took over. Then it
// gives the lease back. An error means that Pawl could not do its job; when the
// thread is tried again is stored by then.
func (s *Solver) Work(given context.Context, l thread.Lease, asked time.Time) (err error) {
	crash.Point("claimed")
	ctx, holder := lease.Hold(given, s.Store, l, asked, s.Now)
	log := s.Log.With().Str("thread", l.Thread.String()).Int64("epoch", l.Epoch).Logger()
	if l.From != "" {
		log.Warn().Str("from", l.From).Msg("thread taken over: its lease ran out")
		if s.OnTakeOver != nil {
			s.OnTakeOver()
		}
	}
	st := &step{publisher: &publisher{Solver: s, thread: l.Thread, lease: holder, log: log, plain: log}}
	err = errPanicked // until the loop says what came of it
	defer func() { holder.Release(st.retry(given, err)) }()
	err = st.loop(ctx)
	return err
}

// errPanicked is how a step ends that does not return.
var errPanicked = errors.New("the step panicked")

// loop does one effect after the other until there is none left for now.
func (s *step) loop(ctx context.Context) error {
	for again := true; again; {
		if ctx.Err() != nil {
			return s.lost(ctx, context.Cause(ctx))
		}
		var err error
		if again, err = s.effect(ctx); err != nil {
			again, err = s.failed(ctx, err)
		}
		if err != nil {
			return fmt.Errorf("step %s: %w", s.thread, s.lost(ctx, err))
		}
	}
	return nil
}

// lost tells the log when a step ends because its lease is gone.
func (s *step) lost(ctx context.Context, err error) error {
	if errors.Is(err, thread.ErrLeaseLost) || errors.Is(context.Cause(ctx), thread.ErrLeaseLost) {
		s.log.Warn().Err(thread.ErrLeaseLost).Msg("this node stops working on the thread; who holds the lease goes on")
	}
	return err
}
