package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlbot/pawl/policy"
)

// Counters count what the solver of this process has done. The solver calls the
// methods; both may be called by many goroutines.
type Counters struct {
	attempts, decisions *prometheus.CounterVec
}

// NewCounters returns counters that stand at nothing.
func NewCounters() *Counters {
	return &Counters{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_attempts_total", Help: "Attempts that ended on this node."}, []string{"backend", "ending", "outcome"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_decisions_total", Help: "Decisions taken on this node."}, []string{"rule", "action"}),
	}
}

// Attempt counts an attempt that ended; the ending is empty for one that Pawl
// cut short before its agent told any.
func (c *Counters) Attempt(backend string, ending policy.Ending, outcome policy.Outcome) {
	c.attempts.WithLabelValues(backend, string(ending), string(outcome)).Inc()
}

// Decision counts a decision that was taken, those to start an attempt
// included.
func (c *Counters) Decision(rule string, action policy.Action) {
	c.decisions.WithLabelValues(rule, string(action)).Inc()
}
