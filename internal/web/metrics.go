package web

import (
	"context"
	"fmt"
	"net/http"
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

// scrapeTime bounds what one scrape asks of the database; Prometheus gives up after 10 s by default.
const scrapeTime = 5 * time.Second

// metrics answers GET /metrics, without a database with the other metrics.
func metrics(o Options, p parts) http.Handler {
	r := o.Counters.registry
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &scrape{o, p, descriptions()})
	h := promhttp.HandlerFor(r, promhttp.HandlerOpts{
		Registry: r, ErrorHandling: promhttp.ContinueOnError, ErrorLog: scrapeLog{o.Log}, MaxRequestsInFlight: scrapesAtOnce,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard(w.Header())
		h.ServeHTTP(w, r)
	})
}

// scrapeLog writes promhttp's complaints to the server's log.
type scrapeLog struct{ zerolog.Logger }

func (l scrapeLog) Println(v ...any) { l.Error().Msg(strings.TrimSpace(fmt.Sprintln(v...))) }

// descriptions are the metrics that are read at each scrape. Those that count up end in _total.
func descriptions() map[string]*prometheus.Desc {
	all := map[string]*prometheus.Desc{}
	desc := func(name, help string, labels ...string) {
		all[name] = prometheus.NewDesc("pawl_"+name, help, labels, nil)
	}
	desc("deliveries", "Webhook deliveries kept, by what became of them.", "state")
	desc("delivery_age_seconds", "How long the oldest delivery has waited that nobody has tried to handle.")
	desc("threads", "Threads that a step runs on, that need a step, and that wait for a time.", "state")
	desc("queue_age_seconds", "How long the oldest thread that needs a step has waited.")
	desc("breaker_consecutive", "Failures of a kind in a row on a backend account.", "account", "kind")
	desc("breaker_open", "Whether a backend account may not be called at all.", "account", "kind")
	desc("limit_seconds_left", "How long until the limit of a backend account is reset, where that is known.", "account", "kind")
	desc("cooldowns", "On how many repositories a backend rests after an edit loop.", "backend", "class")
	desc("day_used", "What attempts of the last 24 hours used on this server: attempts, tokens, usd.", "what")
	desc("day_bound", "What they may use: policy.caps and policy.budget; 0 is no bound.", "what")
	desc("github_requests_total", "Requests sent to GitHub by this node, tries that failed included.", "method", "route")
	desc("github_points_total", "Points that requests of this node cost by GitHub's count, by installation; 0 is the App itself, -1 no credentials.", "installation")
	desc("database_clock_ahead_seconds", "How far the clock of the database is ahead of this machine's, on SQLite how far this machine's was set back since the start; 0 while they agree within a second.")
	desc("layers", "Layers that setups left on this server.")
	desc("layer_bytes", "What these take on its disk.")
	desc("images", "Container images that are unpacked on this server.")
	desc("image_bytes", "What these take on its disk.")
	desc("signal_coverage_ratio", "For how many of the attempts of the last 7 days a source of grades gave a value.", "source")
	desc("signal_valid_ratio", "How many of the values of a source of grades in the last 7 days were plausible.", "source")
	desc("signal_violations", "Implausible values of a source of grades in the last 7 days.", "source")
	desc("signal_degraded", "Whether nothing is learned from a source of grades because of its violations.", "source")
	desc("backend_reward_mean", "The reward that is expected of a backend, its posterior mean over all repositories.", "backend")
	desc("backend_choice_ratio", "How often sampling would choose a backend.", "backend")
	desc("backend_rewards", "Rewards that were learned from, by backend; late signals may take some back.", "backend")
	desc("healthy", "Whether a part of this server works; without its database it is not ready.", "part")
	desc("build_info", "Always 1; the labels name the program.", "version", "commit", "go")
	return all
}

// scrape reads the store and the GitHub client each time it is asked.
type scrape struct {
	Options
	parts parts
	descs map[string]*prometheus.Desc
}

func (s *scrape) Describe(out chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector, which knows no context.
func (s *scrape) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	s.give(out, "build_info", 1, s.Build.Version, s.Build.Commit, s.Build.Go)
	for _, r := range s.Requests() {
		s.give(out, "github_requests_total", float64(r.Sent), r.Method, r.Route)
	}
	for _, p := range s.Points() {
		s.give(out, "github_points_total", float64(p.Used), strconv.FormatInt(p.Installation, 10))
	}
	layers, bytes := s.Layers()
	s.give(out, "layers", float64(layers))
	s.give(out, "layer_bytes", float64(bytes))
	images, bytes := s.Images()
	s.give(out, "images", float64(images))
	s.give(out, "image_bytes", float64(bytes))
	s.give(out, "database_clock_ahead_seconds", s.Skew().Seconds())
	for _, r := range s.parts.answers(ctx) {
		s.give(out, "healthy", flag(r[0].OK), r[0].Name)
	}
	s.counts(ctx, out)
	s.held(ctx, out)
	s.backends(ctx, out)
}

func (s *scrape) backends(ctx context.Context, out chan<- prometheus.Metric) {
	known, err := s.Learning(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.descs["backend_reward_mean"], err)
		return
	}
	for _, a := range known.Arms {
		s.give(out, "backend_reward_mean", a.Mean, a.Backend)
		s.give(out, "backend_choice_ratio", a.Share, a.Backend)
		s.give(out, "backend_rewards", float64(a.Rewards), a.Backend)
	}
	for _, h := range known.Sources {
		name := string(h.Source)
		if h.Attempts > 0 {
			s.give(out, "signal_coverage_ratio", h.Coverage, name)
		}
		if h.Values > 0 {
			s.give(out, "signal_valid_ratio", h.Valid, name)
		}
		s.give(out, "signal_violations", float64(len(h.Violations)), name)
		s.give(out, "signal_degraded", flag(h.Degraded), name)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *scrape) counts(ctx context.Context, out chan<- prometheus.Metric) {
	stats, err := s.Store.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.descs["threads"], err)
		return
	}
	for _, state := range deliveryStates() {
		s.give(out, "deliveries", float64(stats.Deliveries[state]), string(state))
	}
	s.give(out, "delivery_age_seconds", stats.DeliveryAge.Seconds())
	s.give(out, "threads", float64(stats.Running), "running")
	s.give(out, "threads", float64(stats.Queued), "queued")
	s.give(out, "threads", float64(stats.Waiting), "waiting")
	s.give(out, "queue_age_seconds", stats.QueueAge.Seconds())
}

func (s *scrape) held(ctx context.Context, out chan<- prometheus.Metric) {
	breakers, err := s.Store.Breakers(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.descs["breaker_consecutive"], err)
	}
	now := s.Now()
	for account, b := range breakers {
		_, open := b.Open(now, s.Limits().UsageLimit.MaxConsecutive)
		b = b.For(b.Claim.Thread) // what one thread claims holds nobody else back, and is told
		s.give(out, "breaker_consecutive", float64(b.Consecutive), account, string(b.Kind))
		s.give(out, "breaker_open", flag(open), account, string(b.Kind))
		if b.ResetsAt.After(now) {
			s.give(out, "limit_seconds_left", b.ResetsAt.Sub(now).Seconds(), account, string(b.Kind))
		}
	}
	if used, err := s.Store.Usage(ctx, "", 0, now.Add(-policy.Day)); err != nil {
		out <- prometheus.NewInvalidMetric(s.descs["day_used"], err)
	} else {
		l := s.Limits().Server(used)
		for what, n := range map[string][2]float64{
			"attempts": {float64(l.Attempts), float64(l.MaxAttempts)}, "tokens": {float64(l.Tokens), float64(l.MaxTokens)}, "usd": {l.USD, l.MaxUSD},
		} {
			s.give(out, "day_used", n[0], what)
			s.give(out, "day_bound", n[1], what)
		}
	}
	cooldowns, err := s.Store.Cooldowns(ctx, "", now)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.descs["cooldowns"], err)
	}
	resting := map[[2]string]int{}
	for _, all := range cooldowns {
		for _, c := range all {
			resting[[2]string{c.Backend, string(c.Class)}]++
		}
	}
	for what, n := range resting {
		s.give(out, "cooldowns", float64(n), what[0], what[1])
	}
}

// give sends one number. A label from outside with broken UTF-8 would be refused.
func (s *scrape) give(out chan<- prometheus.Metric, name string, v float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	kind := prometheus.GaugeValue
	if strings.HasSuffix(name, "_total") {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(s.descs[name], kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(s.descs[name], err)
	}
	out <- m
}

// Counters count what this process has done, for many goroutines. Backends, endings, outcomes, rules, rungs and
// statuses are of the configuration or of Pawl, so no label can grow.
type Counters struct {
	registry                                                                    *prometheus.Registry
	webhooks, attempts, decisions, tokens, estimated, cost, turns, calls, rungs *prometheus.CounterVec
	durations                                                                   *prometheus.HistogramVec
	takeOvers                                                                   prometheus.Counter
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
		tokens:    counter("tokens", "Tokens that attempts of this node used; those of cached input are not counted as input again.", "backend", "kind"),
		estimated: counter("tokens_estimated", "Those of the tokens that no provider told, at four bytes a token.", "backend"),
		cost:      counter("cost_usd", "What attempts of this node cost in US dollars, where that is known.", "backend"),
		turns:     counter("turns", "Turns of the agents of this node, where they tell them.", "backend"),
		calls:     counter("tool_calls", "Calls of tools by the agents of this node, where they tell them.", "backend"),
		rungs:     counter("rungs", "Recoveries that fired on this node, by rung and whether they helped.", "rung", "recovered"),
		takeOvers: in.NewCounter(prometheus.CounterOpts{Name: "pawl_take_overs_total",
			Help: "Threads that this node took over when the lease of a node ran out that did not give it back."}),
		durations: in.NewHistogramVec(prometheus.HistogramOpts{Name: "pawl_attempt_duration_seconds",
			// An agent that fails at once takes seconds, a long attempt hours.
			Buckets: []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200},
			Help:    "How long the agents of attempts on this node ran."}, []string{"backend"}),
	}
	// What the endpoint answers is counted from 0 on, so that the first of a kind is an increase.
	for _, status := range []int{
		http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable,
	} {
		c.webhooks.WithLabelValues(strconv.Itoa(status))
	}
	return c
}

// Attempt counts an attempt that ended; the ending is empty where Pawl cut it short before.
func (c *Counters) Attempt(backend string, ending policy.Ending, outcome policy.Outcome) {
	c.attempts.WithLabelValues(backend, string(ending), string(outcome)).Inc()
}

func (c *Counters) TakeOver() { c.takeOvers.Inc() }

func (c *Counters) Receipt(backend string, r policy.Receipt) {
	// A counter must not be given less than nothing, whatever an agent says.
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
