package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func ours(body string) []string {
	var out []string
	for l := range strings.Lines(body) {
		if strings.HasPrefix(l, "pawl_") {
			out = append(out, strings.TrimSpace(l))
		}
	}
	slices.Sort(out)
	return out
}

func TestMetricsOfStoreAndNode(t *testing.T) {
	s := open(t, nil)
	s.everything()
	s.counters.Attempt("codex", policy.Completed, policy.WorkUnverified)
	s.counters.Attempt("codex", policy.Completed, policy.WorkUnverified)
	s.counters.Decision("usage_limit_breaker", policy.DoStop)
	s.counters.TakeOver()
	body := s.page("/metrics")
	want := []string{
		`pawl_account_used_ratio{account="main",window="5h"} 0.42`,
		`pawl_account_used_ratio{account="main",window="7d"} 0.97`,
		`pawl_attempts_running 1`,
		`pawl_attempts_total{backend="codex",ending="completed",outcome="unverified"} 2`,
		`pawl_attempts_waiting{labels=""} 0`,
		`pawl_breaker_consecutive{account="main",kind="usage_limit"} 3`,
		`pawl_breaker_open{account="main",kind="usage_limit"} 1`,
		`pawl_build_info{commit="0f3c9a1",go="go1.26",version="v1.2.3"} 1`,
		`pawl_cooldowns{backend="codex",class="severe"} 1`,
		`pawl_database_clock_ahead_seconds 0`,
		`pawl_day_bound{what="attempts"} 500`,
		`pawl_day_bound{what="tokens"} 4e+08`,
		`pawl_day_bound{what="usd"} 200`,
		`pawl_day_used{what="attempts"} 0`,
		`pawl_day_used{what="tokens"} 0`,
		`pawl_day_used{what="usd"} 0`,
		`pawl_decisions_total{action="stop",rule="usage_limit_breaker"} 1`,
		`pawl_deliveries{state="failed"} 0`,
		`pawl_deliveries{state="given_up"} 0`,
		`pawl_deliveries{state="handled"} 0`,
		`pawl_deliveries{state="received"} 2`,
		`pawl_deliveries{state="unparsable"} 0`,
		`pawl_delivery_age_seconds 0`,
		`pawl_github_requests_total{method="GET",route="/repos/{owner}/{repo}"} 3`,
		`pawl_healthy{part="database"} 1`,
		`pawl_image_bytes 5.24288e+06`,
		`pawl_images 1`,
		`pawl_layer_bytes 3.145728e+06`,
		`pawl_layers 2`,
		`pawl_limit_seconds_left{account="main",kind="usage_limit"} 18720`,
		`pawl_queue_age_seconds 0`,
		`pawl_take_overs_total 1`,
		`pawl_threads{state="queued"} 0`,
		`pawl_threads{state="running"} 1`,
		`pawl_threads{state="waiting"} 1`,
		`pawl_webhooks_total{code="200"} 0`,
		`pawl_webhooks_total{code="400"} 0`,
		`pawl_webhooks_total{code="401"} 0`,
		`pawl_webhooks_total{code="405"} 0`,
		`pawl_webhooks_total{code="408"} 0`,
		`pawl_webhooks_total{code="413"} 0`,
		`pawl_webhooks_total{code="503"} 0`,
	}
	if diff := cmp.Diff(want, ours(body)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	for _, name := range []string{"go_goroutines ", "process_resident_memory_bytes ", "promhttp_metric_handler_errors_total"} {
		if !strings.Contains(body, "\n"+name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestMetricsWithoutDatabase(t *testing.T) {
	s := open(t, nil)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`pawl_build_info{commit="0f3c9a1",go="go1.26",version="v1.2.3"} 1`,
		`pawl_database_clock_ahead_seconds 0`,
		`pawl_github_requests_total{method="GET",route="/repos/{owner}/{repo}"} 3`,
		`pawl_healthy{part="database"} 0`,
		`pawl_image_bytes 5.24288e+06`,
		`pawl_images 1`,
		`pawl_layer_bytes 3.145728e+06`,
		`pawl_layers 2`,
		`pawl_take_overs_total 0`,
		`pawl_webhooks_total{code="200"} 0`,
		`pawl_webhooks_total{code="400"} 0`,
		`pawl_webhooks_total{code="401"} 0`,
		`pawl_webhooks_total{code="405"} 0`,
		`pawl_webhooks_total{code="408"} 0`,
		`pawl_webhooks_total{code="413"} 0`,
		`pawl_webhooks_total{code="503"} 0`,
	}
	if diff := cmp.Diff(want, ours(s.page("/metrics"))); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if !strings.Contains(s.log.String(), "database is closed") {
		t.Errorf("the log does not name the reason: %s", s.log)
	}
}

func TestWebhookAnswersAreCountedByStatus(t *testing.T) {
	s := open(t, func(o *web.Options) {
		o.Hook = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.Method {
			case http.MethodPut:
				http.Error(w, "no", http.StatusServiceUnavailable)
			case http.MethodGet:
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		})
	})
	for _, method := range []string{http.MethodPost, http.MethodPost, http.MethodPut, http.MethodGet} {
		s.sendPublic(method, web.HookPath)
	}
	s.page("/healthz") // not counted
	var got []string
	for _, l := range ours(s.page("/metrics")) {
		if strings.HasPrefix(l, "pawl_webhooks_total") && !strings.HasSuffix(l, " 0") {
			got = append(got, l)
		}
	}
	want := []string{`pawl_webhooks_total{code="200"} 2`, `pawl_webhooks_total{code="405"} 1`, `pawl_webhooks_total{code="503"} 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestHostileLabelsLeaveTheMetricsReadable(t *testing.T) {
	s := open(t, nil)
	s.attacked("evil/x#3")
	for _, l := range ours(s.page("/metrics")) {
		if !strings.Contains(l, "} ") && strings.Contains(l, "{") {
			t.Errorf("broken line %q", l)
		}
	}
}

func TestWaitingAttemptsAreCountedByLabels(t *testing.T) {
	s := open(t, nil)
	for n, labels := range [][]string{nil, {"gpu", "arm64"}, {"gpu", "arm64"}} {
		id := thread.ID{Owner: "acme", Name: "widgets", Number: n + 1}
		l, err := s.store.Acquire(t.Context(), id, "node")
		if err == nil {
			err = s.store.AppendLeased(t.Context(), l, thread.Batch{Place: policy.PlaceOf(labels)})
		}
		if err == nil {
			err = s.store.Release(t.Context(), l, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	body := s.page("/metrics")
	for _, want := range []string{`pawl_attempts_waiting{labels=""} 1`, `pawl_attempts_waiting{labels="arm64,gpu"} 2`} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("the metrics have no line %s", want)
		}
	}
}
