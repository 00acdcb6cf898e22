package web

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// Counters count what this process has done. The solver calls the methods, and the
// webhook address one of them; all may be called by many goroutines. Backends, endings,
// outcomes, rules, rungs and statuses are of the configuration or of Pawl, so no label
// can grow.
type Counters struct {
	webhooks, attempts, decisions, tokens, cost, turns, calls, rungs *prometheus.CounterVec
	durations                                                        *prometheus.HistogramVec
	takeOvers                                                        prometheus.Counter
}

// durationBuckets are in seconds: an agent that fails at once takes some, a long
// attempt hours.
func durationBuckets() []float64 { return []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200} }

// NewCounters returns counters that stand at nothing.
func NewCounters() *Counters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pawl_" + name + "_total", Help: help}, labels)
	}
	c := &Counters{
		webhooks:  counter("webhooks", "Requests to the webhook address of this node, by the status of the answer.", "code"),
		attempts:  counter("attempts", "Attempts that ended on this node.", "backend", "ending", "outcome"),
		decisions: counter("decisions", "Decisions taken on this node.", "rule", "action"),
		tokens:    counter("tokens", "Tokens that attempts of this node used; those of cached input are not counted as input again.", "backend", "kind"),
		cost:      counter("cost_usd", "What attempts of this node cost in US dollars, where that is known.", "backend"),
		turns:     counter("turns", "Turns of the agents of this node, where they tell them.", "backend"),
		calls:     counter("tool_calls", "Calls of tools by the agents of this node, where they tell them.", "backend"),
		rungs:     counter("rungs", "Recoveries that fired on this node, by rung and whether they helped.", "rung", "recovered"),
		takeOvers: prometheus.NewCounter(prometheus.CounterOpts{Name: "pawl_take_overs_total",
			Help: "Threads that this node took over when the lease of a node ran out that did not give it back."}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pawl_attempt_duration_seconds", Buckets: durationBuckets(),
			Help: "How long the agents of attempts on this node ran."}, []string{"backend"}),
	}
	for _, status := range hookAnswers() {
		c.webhooks.WithLabelValues(strconv.Itoa(status))
	}
	return c
}

// all are the collectors of the counters.
func (c *Counters) all() []prometheus.Collector {
	return []prometheus.Collector{c.webhooks, c.attempts, c.decisions, c.tokens, c.cost, c.turns, c.calls, c.rungs, c.durations, c.takeOvers}
}

// Webhook counts an answer of the webhook endpoint.
func (c *Counters) Webhook(status int) { c.webhooks.WithLabelValues(strconv.Itoa(status)).Inc() }

// Attempt counts an attempt that ended; the ending is empty for one that Pawl
// cut short before its agent told any.
func (c *Counters) Attempt(backend string, ending policy.Ending, outcome policy.Outcome) {
	c.attempts.WithLabelValues(backend, string(ending), string(outcome)).Inc()
}

// TakeOver counts a thread that was taken from a node that did not give it back.
func (c *Counters) TakeOver() { c.takeOvers.Inc() }

// Receipt counts what an attempt that ended used.
func (c *Counters) Receipt(backend string, r solver.Ended) {
	// A counter must not be given less than nothing, whatever an agent says.
	add := func(to *prometheus.CounterVec, n float64, labels ...string) {
		to.WithLabelValues(labels...).Add(max(0, n))
	}
	add(c.tokens, float64(r.Tokens.Input-r.Tokens.CachedInput), backend, "input")
	add(c.tokens, float64(r.Tokens.CachedInput), backend, "cached_input")
	add(c.tokens, float64(r.Tokens.Output), backend, "output")
	if r.CostUSD != nil {
		add(c.cost, *r.CostUSD, backend)
	}
	add(c.turns, float64(r.Turns), backend)
	add(c.calls, float64(r.ToolCalls), backend)
	for _, g := range r.Rungs {
		add(c.rungs, float64(max(1, g.Times)), strconv.Itoa(g.Rung), strconv.FormatBool(g.Recovered))
	}
	c.durations.WithLabelValues(backend).Observe((time.Duration(r.AgentMS) * time.Millisecond).Seconds())
}

// Decision counts a decision that was taken, those to start an attempt
// included.
func (c *Counters) Decision(rule string, action policy.Action) {
	c.decisions.WithLabelValues(rule, string(action)).Inc()
}
