package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/policy"
)

// scrapeTime limits a scrape's queries; Prometheus allows 10 s by default.
const scrapeTime = 5 * time.Second

// metrics answers GET /metrics. Without the database, it exports the other metrics.
func metrics(o Options, p parts) http.Handler {
	r := o.Counters.registry
	r.MustRegister(o.GitHub...)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &scrape{o, p})
	h := promhttp.HandlerFor(r, promhttp.HandlerOpts{
		Registry: r, ErrorHandling: promhttp.ContinueOnError, ErrorLog: scrapeLog{o.Log}, MaxRequestsInFlight: scrapesAtOnce,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard(w.Header())
		h.ServeHTTP(w, r)
	})
}

type scrapeLog struct{ zerolog.Logger }

func (l scrapeLog) Println(v ...any) { l.Error().Msg(strings.TrimSpace(fmt.Sprintln(v...))) }

// scrape reads the store at each scrape.
type scrape struct {
	Options
	parts parts
}

// Describe sends nothing: Collect describes each metric.
func (s *scrape) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector, which passes no context.
func (s *scrape) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	s.node(ctx, out)
	for _, read := range []func(context.Context, numbers) error{s.queue, s.breakers, s.windows, s.day, s.cooldowns, s.backends} {
		if err := read(ctx, out); err != nil {
			out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		}
	}
}

type numbers chan<- prometheus.Metric

// give sends one value; labels alternate names and values.
func (to numbers) give(name, help string, v float64, labels ...string) {
	with := prometheus.Labels{}
	for pair := range slices.Chunk(labels, 2) {
		with[pair[0]] = strings.ToValidUTF8(pair[1], "\uFFFD") // Prometheus refuses invalid UTF-8
	}
	to <- prometheus.MustNewConstMetric(prometheus.NewDesc("pawl_"+name, help, nil, with), prometheus.GaugeValue, v)
}

// node exports values that need no database.
func (s *scrape) node(ctx context.Context, to numbers) {
	to.give("build_info", "Always 1; the labels name the program.", 1, "version", s.Build.Version, "commit", s.Build.Commit, "go", s.Build.Go)
	layers, bytes := s.Layers()
	to.give("layers", "Setup layers on this server.", float64(layers))
	to.give("layer_bytes", "Disk space of the setup layers.", float64(bytes))
	images, bytes := s.Images()
	to.give("images", "Unpacked container images on this server.", float64(images))
	to.give("image_bytes", "Disk space of the unpacked images.", float64(bytes))
	to.give("database_clock_ahead_seconds", "How far the database's clock is ahead of this machine's; 0 on SQLite.",
		s.Skew().Seconds())
	for _, r := range s.parts.answers(ctx) {
		to.give("healthy", "Whether a part of this server works; without its database it is not ready.", flag(r[0].OK), "part", r[0].Name)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *scrape) queue(ctx context.Context, to numbers) error {
	stats, err := s.Store.Stats(ctx)
	if err != nil {
		return err
	}
	for _, state := range deliveryStates() {
		to.give("deliveries", "Stored webhook deliveries by state.", float64(stats.Deliveries[state]), "state", string(state))
	}
	to.give("delivery_age_seconds", "How long the oldest untried delivery has waited.", stats.DeliveryAge.Seconds())
	for state, n := range map[string]int{"running": stats.Running, "queued": stats.Queued, "waiting": stats.Waiting} {
		to.give("threads", "Threads by state: a step is running, a step is due, or waiting for a time.", float64(n), "state", state)
	}
	to.give("attempts_running", "Running attempts on all servers that share the database.", float64(stats.Attempts))
	waiting, err := s.Store.Waiting(ctx)
	if err != nil {
		return err
	}
	for place, n := range waiting {
		to.give("attempts_waiting", "Attempts that wait for a free slot or for a server with their labels.", float64(n),
			"labels", strings.Join(policy.LabelsOf(place), ","))
	}
	to.give("queue_age_seconds", "How long the oldest due thread has waited for a step.", stats.QueueAge.Seconds())
	return nil
}

func (s *scrape) breakers(ctx context.Context, to numbers) error {
	breakers, err := s.Store.Breakers(ctx)
	now := s.Now()
	for account, b := range breakers {
		_, open := b.Open(now, s.Limits().UsageLimit.MaxConsecutive)
		b = b.For(b.Claim.Thread) // a thread's claim does not delay other threads
		of := []string{"account", account, "kind", string(b.Kind)}
		to.give("breaker_consecutive", "Failures of a kind in a row on a backend account.", float64(b.Consecutive), of...)
		to.give("breaker_open", "1 while the breaker blocks a backend account.", flag(open), of...)
		if b.ResetsAt.After(now) {
			to.give("limit_seconds_left", "Time until a backend account's limit resets, if known.", b.ResetsAt.Sub(now).Seconds(), of...)
		}
	}
	return err
}

func (s *scrape) windows(ctx context.Context, to numbers) error {
	meters, err := s.Store.Meters(ctx)
	now := s.Now()
	for account, windows := range meters {
		for _, m := range windows {
			if m.Current(now) {
				to.give("account_used_ratio", "Used share of an account's usage window, as its provider last reported it.",
					m.Used, "account", account, "window", m.Name)
			}
		}
	}
	return err
}

func (s *scrape) day(ctx context.Context, to numbers) error {
	used, err := s.Store.Usage(ctx, "", 0, s.Now().Add(-policy.Day))
	if err != nil {
		return err
	}
	l := s.Limits().Server(used)
	for what, n := range map[string][2]float64{
		"attempts": {float64(l.Attempts), float64(l.MaxAttempts)}, "tokens": {float64(l.Tokens), float64(l.MaxTokens)}, "usd": {l.USD, l.MaxUSD},
	} {
		to.give("day_used", "Usage of the last 24 hours on all servers that share the database: attempts, tokens, usd.", n[0], "what", what)
		to.give("day_bound", "Limits of that usage: policy.caps and policy.budget; 0 means no limit.", n[1], "what", what)
	}
	return nil
}

func (s *scrape) cooldowns(ctx context.Context, to numbers) error {
	cooldowns, err := s.Store.Cooldowns(ctx, "")
	counts := map[[2]string]int{}
	for _, all := range cooldowns {
		for _, c := range all {
			counts[[2]string{c.Backend, string(c.Class)}]++
		}
	}
	for what, n := range counts {
		to.give("cooldowns", "Repositories where a backend is in cooldown after an edit loop.", float64(n), "backend", what[0], "class", what[1])
	}
	return err
}

func (s *scrape) backends(ctx context.Context, to numbers) error {
	known, err := s.Learning(ctx)
	if err != nil {
		return err
	}
	for _, a := range known.Arms {
		to.give("backend_reward_mean", "Expected reward of a backend: the posterior mean over all repositories.", a.Mean, "backend", a.Backend)
		to.give("backend_choice_ratio", "How often sampling would choose a backend.", a.Share, "backend", a.Backend)
		to.give("backend_rewards", "Learned rewards by backend; late signals may remove some.", float64(a.Rewards), "backend", a.Backend)
	}
	for _, h := range known.Sources {
		name := string(h.Source)
		if h.Attempts > 0 {
			to.give("signal_coverage_ratio", "Share of the last 7 days' attempts with a value from a source of grades.", h.Coverage, "source", name)
		}
		if h.Values > 0 {
			to.give("signal_valid_ratio", "Share of plausible values of a source of grades in the last 7 days.", h.Valid, "source", name)
		}
		to.give("signal_violations", "Implausible values of a source of grades in the last 7 days.", float64(len(h.Violations)), "source", name)
		to.give("signal_degraded", "1 while violations exclude a source of grades from learning.", flag(h.Degraded), "source", name)
	}
	return nil
}

// Counters counts this process's work and is safe for concurrent use. Labels come from the configuration or Pawl, which
// limits the number of series.
type Counters struct {
	registry                                                                    *prometheus.Registry
	webhooks, attempts, decisions, tokens, estimated, cost, turns, calls, rungs *prometheus.CounterVec
	durations                                                                   *prometheus.HistogramVec
	takeOvers                                                                   prometheus.Counter
	listed                                                                      *prometheus.GaugeVec
}

func NewCounters() *Counters {
	registry := prometheus.NewRegistry()
	in := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return in.NewCounterVec(prometheus.CounterOpts{Name: "pawl_" + name + "_total", Help: help}, labels)
	}
	c := &Counters{
		registry:  registry,
		webhooks:  counter("webhooks", "Requests to the webhook address of this node, by the status of the answer.", "code"),
		attempts:  counter("attempts", "Attempts that ended on this node.", "backend", "ending", "outcome"),
		decisions: counter("decisions", "Decisions taken on this node.", "rule", "action"),
		tokens:    counter("tokens", "Tokens that attempts on this node used; input excludes cached input.", "backend", "kind"),
		estimated: counter("tokens_estimated", "Tokens that no provider reported, estimated at four bytes a token.", "backend"),
		cost:      counter("cost_usd", "Known cost of attempts on this node in US dollars.", "backend"),
		turns:     counter("turns", "Turns that agents on this node reported.", "backend"),
		calls:     counter("tool_calls", "Tool calls that agents on this node reported.", "backend"),
		rungs:     counter("rungs", "Recoveries on this node, by rung and success.", "rung", "recovered"),
		takeOvers: in.NewCounter(prometheus.CounterOpts{Name: "pawl_take_overs_total",
			Help: "Threads that this node took over after another node's lease expired."}),
		listed: in.NewGaugeVec(prometheus.GaugeOpts{Name: "pawl_deliveries_listed_timestamp_seconds",
			Help: "When this node last read GitHub's list of deliveries, or started; the duty is catch-up or poll."}, []string{"duty"}),
		durations: in.NewHistogramVec(prometheus.HistogramOpts{Name: "pawl_attempt_duration_seconds",
			// Failing agents run for seconds, long attempts for hours.
			Buckets: []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200},
			Help:    "How long the agents of attempts on this node ran."}, []string{"backend"}),
	}
	// Start each counter at 0, so that the first response counts as an increase.
	for _, status := range []int{
		http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable,
	} {
		c.webhooks.WithLabelValues(strconv.Itoa(status))
	}
	return c
}

// Attempt counts a finished attempt; ending is empty if Pawl ended it.
func (c *Counters) Attempt(backend string, ending policy.Ending, outcome policy.Outcome) {
	c.attempts.WithLabelValues(backend, string(ending), string(outcome)).Inc()
}

// Listed returns a function to call after each successful reading of GitHub's deliveries. The start counts as the
// first, so that alerts catch a duty that never succeeds.
func (c *Counters) Listed(duty string, now func() time.Time) func() {
	read := func() { c.listed.WithLabelValues(duty).Set(float64(now().Unix())) }
	read()
	return read
}

func (c *Counters) TakeOver() { c.takeOvers.Inc() }

func (c *Counters) Receipt(backend string, r policy.Receipt) {
	// A counter panics on negative values, which an agent may report.
	add := func(to *prometheus.CounterVec, n float64, labels ...string) {
		to.WithLabelValues(labels...).Add(max(0, n))
	}
	add(c.tokens, float64(r.Tokens.Input-r.Tokens.CachedInput), backend, "input")
	add(c.tokens, float64(r.Tokens.CachedInput), backend, "cached_input")
	add(c.tokens, float64(r.Tokens.Output), backend, "output")
	add(c.estimated, float64(r.Tokens.Estimated), backend)
	if r.CostUSD != nil {
		add(c.cost, *r.CostUSD, backend)
	}
	add(c.turns, float64(r.Turns), backend)
	add(c.calls, float64(r.ToolCalls), backend)
	for _, g := range r.Rungs {
		rung := strconv.Itoa(g.Rung)
		if g.Unneeded {
			add(c.rungs, float64(g.Times), rung, "unneeded")
			continue
		}
		add(c.rungs, float64(g.Helped), rung, "true")
		add(c.rungs, float64(g.Times-g.Helped), rung, "false")
	}
	c.durations.WithLabelValues(backend).Observe((time.Duration(r.AgentMS) * time.Millisecond).Seconds())
}

func (c *Counters) Decision(rule policy.Rule, action policy.Action) {
	c.decisions.WithLabelValues(string(rule), string(action)).Inc()
}
