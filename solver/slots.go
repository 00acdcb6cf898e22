package solver

import (
	"context"
	"time"
)

// slotInterval is how often a step that waits for a slot looks whether it is
// still wanted.
const slotInterval = time.Second

// slot takes a place among the attempts that may run at the same time; free
// gives it back. Nil without an error means that the thread's log changed
// meanwhile, so that the decision has to be taken again.
func (s *step) slot(ctx context.Context) (free func(), err error) {
	if s.Slots == nil {
		return func() {}, nil
	}
	seen := s.state.Seq
	tick := time.NewTicker(slotInterval)
	defer tick.Stop()
	for {
		select {
		case s.Slots <- struct{}{}:
			return func() { <-s.Slots }, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
		events, err := s.Store.Events(ctx, s.thread, seen)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Kind != KindIgnored && e.Kind != KindActStarted && e.Kind != KindActDone {
				return nil, nil
			}
			seen = e.Seq
		}
	}
}

// attend answers and acknowledges what came while an attempt runs, in the
// attempt's own lease. What it cannot do now is done after the attempt. The step
// must be a copy of the attempt's.
func (s *step) attend(ctx context.Context) {
	if err := s.load(ctx); err != nil {
		s.log.Warn().Err(err).Msg("read the log beside an attempt")
		return
	}
	if err := s.acknowledge(ctx); err != nil {
		s.log.Warn().Err(err).Msg("acknowledge beside an attempt")
	}
	for _, q := range s.state.Questions {
		if err := s.answer(ctx, q); err != nil {
			s.log.Warn().Err(err).Msg("answer beside an attempt")
			return
		}
	}
}

// asks reports whether an event wants an acknowledgement or an answer.
func asks(e Event) bool {
	return e.Kind == KindFeedback || e.Kind == KindControl || e.Kind == KindQuestion
}
