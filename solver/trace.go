package solver

import (
	"context"
	"encoding/json"

	"github.com/pawlbot/pawl/policy"
)

// Trace opens a span: a named piece of work that an operator can watch. The
// attributes are names and values in turn, in which nothing may be secret or
// written by others than Pawl and the operator. What is returned ends the span;
// the context carries it to what is done within. A nil Trace opens none.
type Trace func(ctx context.Context, name string, attrs ...string) (context.Context, func(err error, attrs ...string))

// Span opens a span, or none.
func (t Trace) Span(ctx context.Context, name string, attrs ...string) (context.Context, func(err error, attrs ...string)) {
	if t == nil {
		return ctx, func(error, ...string) {}
	}
	return t(ctx, name, attrs...)
}

// The attributes of spans.
const (
	TraceThread   = "pawl.thread"
	TraceDelivery = "pawl.delivery"
	TraceEvent    = "pawl.event"
	TraceAttempt  = "pawl.attempt"
	TraceBackend  = "pawl.backend"
	TraceRule     = "pawl.rule"
	TraceAction   = "pawl.action"
	TraceEnding   = "pawl.ending"
	TraceOutcome  = "pawl.outcome"
)

// identify names in the step's log lines what it works on, as far as the log of
// the thread tells: the delivery that brought its newest remark or change, and
// the attempt that runs.
func (s *step) identify(events []Event) {
	log := s.plain.With()
	if s.delivery = broughtBy(events); s.delivery != "" {
		log = log.Str("delivery", s.delivery)
	}
	if a, running := s.state.Running(); running {
		log = log.Int("attempt", a.N)
	}
	s.log = log.Logger()
}

// broughtBy is the delivery that brought the newest event of a log which one
// brought; empty for none.
func broughtBy(events []Event) string {
	for i := len(events) - 1; i >= 0; i-- {
		switch events[i].Kind {
		case KindFeedback, KindControl, KindQuestion, KindThread:
			var from struct {
				Delivery string `json:"delivery"`
			}
			if json.Unmarshal(events[i].Data, &from) == nil && from.Delivery != "" {
				return from.Delivery
			}
		}
	}
	return ""
}

// span opens a span of the step.
func (s *step) span(ctx context.Context, name string, attrs ...string) (context.Context, func(error, ...string)) {
	if s.Trace == nil {
		return s.Trace.Span(ctx, name)
	}
	ids := []string{TraceThread, s.thread.String()}
	if s.delivery != "" {
		ids = append(ids, TraceDelivery, s.delivery)
	}
	if a, running := s.state.Running(); running {
		ids = append(ids, TraceAttempt, itoa(a.N))
	}
	return s.Trace(ctx, name, append(ids, attrs...)...)
}

// traced are the attributes of a decision.
func traced(d policy.Decision) []string {
	return []string{TraceAction, string(d.Action), TraceRule, d.Rule}
}
