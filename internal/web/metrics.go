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
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// scrapeTime bounds what one scrape asks of the database; Prometheus gives up
// after 10 s by default.
const scrapeTime = 5 * time.Second

// metrics answers GET /metrics from a registry of its own. When the database
// cannot be read the metrics that do not come from it are still given.
func metrics(o Options, learned *standing, p parts) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newScrape(o, learned, p))
	r.MustRegister(o.Counters.all()...)
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
	learned                                    *standing
	parts                                      parts
	deliveries, deliveryAge, threads, queueAge *prometheus.Desc
	breakers, open, resets, cooldowns          *prometheus.Desc
	requests, points, skew, build              *prometheus.Desc
	coverage, valid, violations, degraded      *prometheus.Desc
	mean, share, rewards, healthy              *prometheus.Desc
}

func newScrape(o Options, learned *standing, p parts) *scrape {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("pawl_"+name, help, labels, nil)
	}
	return &scrape{
		Options:     o,
		learned:     learned,
		parts:       p,
		deliveries:  desc("deliveries", "Webhook deliveries kept, by what became of them.", "state"),
		deliveryAge: desc("delivery_age_seconds", "How long the oldest delivery has waited that nobody has tried to handle."),
		threads:     desc("threads", "Threads that a step runs on, that need a step, and that wait for a time.", "state"),
		queueAge:    desc("queue_age_seconds", "How long the oldest thread that needs a step has waited."),
		breakers:    desc("breaker_consecutive", "Failures of a kind in a row on a backend account.", "account", "kind"),
		open:        desc("breaker_open", "Whether a backend account may not be called at all.", "account", "kind"),
		resets:      desc("limit_seconds_left", "How long until the limit of a backend account is reset, where that is known.", "account", "kind"),
		cooldowns:   desc("cooldowns", "On how many repositories a backend rests after an edit loop.", "backend", "class"),
		requests:    desc("github_requests_total", "Requests sent to GitHub by this node, tries that failed included.", "method", "route"),
		points:      desc("github_points_total", "Points that requests of this node cost by GitHub's count, by installation; 0 is the App itself, -1 no credentials.", "installation"),
		skew:        desc("database_clock_ahead_seconds", "How far the clock of the database is ahead of this machine's, on SQLite how far this machine's was set back since the start; 0 while they agree within a second."),
		coverage:    desc("signal_coverage_ratio", "For how many of the attempts of the last 7 days a source of grades gave a value.", "source"),
		valid:       desc("signal_valid_ratio", "How many of the values of a source of grades in the last 7 days were plausible.", "source"),
		violations:  desc("signal_violations", "Implausible values of a source of grades in the last 7 days.", "source"),
		degraded:    desc("signal_degraded", "Whether nothing is learned from a source of grades because of its violations.", "source"),
		mean:        desc("backend_reward_mean", "The reward that is expected of a backend, its posterior mean over all repositories.", "backend"),
		share:       desc("backend_choice_ratio", "How often sampling would choose a backend.", "backend"),
		rewards:     desc("backend_rewards", "Rewards that were learned from, by backend; late signals may take some back.", "backend"),
		healthy:     desc("healthy", "Whether a part of this server works; without its database it is not ready.", "part"),
		build:       desc("build_info", "Always 1; the labels name the program.", "version", "commit", "go"),
	}
}

// Describe implements prometheus.Collector.
func (s *scrape) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.deliveries, s.deliveryAge, s.threads, s.queueAge, s.breakers, s.open, s.resets, s.cooldowns, s.requests, s.points, s.skew, s.build,
		s.coverage, s.valid, s.violations, s.degraded, s.mean, s.share, s.rewards, s.healthy,
	} {
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
	if s.Points != nil {
		for _, p := range s.Points() {
			give(out, s.points, prometheus.CounterValue, float64(p.Used), strconv.FormatInt(p.Installation, 10))
		}
	}
	if s.Skew != nil {
		give(out, s.skew, prometheus.GaugeValue, s.Skew().Seconds())
	}
	for _, r := range s.parts.answers(ctx) {
		give(out, s.healthy, prometheus.GaugeValue, flag(r[0].OK), r[0].Name)
	}
	s.counts(ctx, out)
	s.held(ctx, out)
	s.worth(ctx, out)
}

// worth is what was learned, and from what.
func (s *scrape) worth(ctx context.Context, out chan<- prometheus.Metric) {
	known, err := s.learned.get(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.mean, err)
		return
	}
	for _, a := range known.Arms {
		give(out, s.mean, prometheus.GaugeValue, a.Mean, a.Backend)
		give(out, s.share, prometheus.GaugeValue, a.Share, a.Backend)
		give(out, s.rewards, prometheus.GaugeValue, float64(a.Rewards), a.Backend)
	}
	for _, h := range known.Sources {
		name := string(h.Source)
		if h.Attempts > 0 {
			give(out, s.coverage, prometheus.GaugeValue, h.Coverage, name)
		}
		if h.Values > 0 {
			give(out, s.valid, prometheus.GaugeValue, h.Valid, name)
		}
		give(out, s.violations, prometheus.GaugeValue, float64(len(h.Violations)), name)
		give(out, s.degraded, prometheus.GaugeValue, flag(h.Degraded), name)
	}
}

// flag is 1 for true.
func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
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
		_, open := b.Open(now, s.MaxLimits)
		give(out, s.open, prometheus.GaugeValue, flag(open), account, string(b.Kind))
		if b.ResetsAt.After(now) {
			give(out, s.resets, prometheus.GaugeValue, b.ResetsAt.Sub(now).Seconds(), account, string(b.Kind))
		}
	}
	cooldowns, err := s.Store.Cooldowns(ctx, "", now)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.cooldowns, err)
	}
	resting := map[[2]string]int{}
	for _, all := range cooldowns {
		for _, c := range all {
			resting[[2]string{c.Backend, c.Class}]++
		}
	}
	for what, n := range resting {
		give(out, s.cooldowns, prometheus.GaugeValue, float64(n), what[0], what[1])
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
