package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// scrapeTime bounds what one scrape asks of the database; Prometheus gives up
// after 10 s by default.
const scrapeTime = 5 * time.Second

// metrics answers GET /metrics from a registry of its own. When the database
// cannot be read the metrics that do not come from it are still given.
func metrics(o Options) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		o.Counters.attempts, o.Counters.decisions, newScrape(o))
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

// scrape reads the store and the GitHub client each time it is asked.
type scrape struct {
	Options
	deliveries, deliveryAge, threads, queueAge *prometheus.Desc
	breakers, resets, cooldowns                *prometheus.Desc
	requests, build                            *prometheus.Desc
}

func newScrape(o Options) *scrape {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("pawl_"+name, help, labels, nil)
	}
	return &scrape{
		Options:     o,
		deliveries:  desc("deliveries", "Webhook deliveries kept, by what became of them.", "state"),
		deliveryAge: desc("delivery_age_seconds", "How long the oldest delivery that is not handled has waited."),
		threads:     desc("threads", "Threads that a step runs on, that need a step, and that wait for a time.", "state"),
		queueAge:    desc("queue_age_seconds", "How long the oldest thread that needs a step has waited."),
		breakers:    desc("breaker_consecutive", "Failures of a kind in a row on a backend account.", "account", "kind"),
		resets:      desc("limit_seconds_left", "How long until the limit of a backend account is reset, where that is known.", "account", "kind"),
		cooldowns:   desc("cooldown_seconds_left", "How long a backend still rests on a repository.", "backend", "repo", "class"),
		requests:    desc("github_requests_total", "Requests sent to GitHub by this node, tries that failed included.", "method", "route"),
		build:       desc("build_info", "Always 1; the labels name the program.", "version", "commit", "go"),
	}
}

// Describe implements prometheus.Collector.
func (s *scrape) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.deliveries, s.deliveryAge, s.threads, s.queueAge, s.breakers, s.resets, s.cooldowns, s.requests, s.build} {
		out <- d
	}
}

// Collect implements prometheus.Collector, which knows no context.
func (s *scrape) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	give(out, s.build, prometheus.GaugeValue, 1, s.Build.Version, s.Build.Commit, s.Build.Go)
	for _, r := range s.Requests() {
		give(out, s.requests, prometheus.CounterValue, float64(r.Sent), r.Method, r.Route)
	}
	s.counts(ctx, out)
	s.held(ctx, out)
}

func (s *scrape) counts(ctx context.Context, out chan<- prometheus.Metric) {
	stats, err := s.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.threads, err)
		return
	}
	for _, state := range deliveryStates() {
		give(out, s.deliveries, prometheus.GaugeValue, float64(stats.Deliveries[state]), string(state))
	}
	give(out, s.deliveryAge, prometheus.GaugeValue, stats.DeliveryAge.Seconds())
	give(out, s.threads, prometheus.GaugeValue, float64(stats.Running), "running")
	give(out, s.threads, prometheus.GaugeValue, float64(stats.Queued), "queued")
	give(out, s.threads, prometheus.GaugeValue, float64(stats.Waiting), "waiting")
	give(out, s.queueAge, prometheus.GaugeValue, stats.QueueAge.Seconds())
}

func (s *scrape) held(ctx context.Context, out chan<- prometheus.Metric) {
	breakers, err := s.Store.Breakers(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.breakers, err)
	}
	now := s.Now()
	for account, b := range breakers {
		give(out, s.breakers, prometheus.GaugeValue, float64(b.Consecutive), account, string(b.Kind))
		if b.ResetsAt.After(now) {
			give(out, s.resets, prometheus.GaugeValue, b.ResetsAt.Sub(now).Seconds(), account, string(b.Kind))
		}
	}
	cooldowns, err := s.Store.Cooldowns(ctx, "", now)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.cooldowns, err)
	}
	for repo, all := range cooldowns {
		for _, c := range all {
			give(out, s.cooldowns, prometheus.GaugeValue, c.Until.Sub(now).Seconds(), c.Backend, repo, c.Class)
		}
	}
}

// give sends one number. Labels may come from outside, and a metric with broken
// UTF-8 would be refused.
func give(out chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	out <- m
}
