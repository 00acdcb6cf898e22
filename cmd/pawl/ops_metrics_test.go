package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// wantMetrics checks lines of /metrics, each against the least that it may be.
func (r *rig) wantMetrics(when string, least map[string]float64) {
	r.T.Helper()
	for name, want := range least {
		if got := r.Metric(name); got < want {
			r.T.Errorf("%s: %s is %v, want at least %v", when, name, got, want)
		}
	}
}

// sum is that of all lines of a metric.
func (r *rig) sum(name string) (total float64) {
	r.T.Helper()
	_, body := r.Get("/metrics")
	for l := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(l, name+"{"); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, "} ")+2:]), 64)
			r.Must(err)
			total += n
		}
	}
	return total
}

// What docs/operations.md tells of the metrics, of a server that works, is killed,
// goes on and meets a limit.
func TestMetricsOfAServerThatWorksAreThoseOfItsWork(t *testing.T) {
	t.Parallel() // it waits for the dead server's lease to run out
	r := newProcessRig(t, nil)
	r.Config = "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"
	reset := time.Now().Add(5 * time.Hour)
	r.Agent(`task=$(cat)
case $task in
*"Use it up"*) `+strings.TrimPrefix(fmt.Sprintf(testrig.Limited, testrig.ResetText(reset)), "cat > /dev/null\n")+`;;
*"Take your time"*) `+testrig.Gated+`;;
esac
echo two >> a.txt
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7}}'
`, "stream: codex, account: main")
	r.Start()
	first := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Over(testrig.ThreadName(first))
	r.Settle()
	r.wantMetrics("after a thread", map[string]float64{
		`pawl_decisions_total{action="attempt",rule="feedback"}`:                        1,
		`pawl_decisions_total{action="done",rule="done"}`:                               1,
		`pawl_attempts_total{backend="mine",ending="completed",outcome="edited"}`:       1,
		`pawl_attempt_duration_seconds_count{backend="mine"}`:                           1,
		`pawl_tokens_total{backend="mine",kind="input"}`:                                60,
		`pawl_deliveries{state="handled"}`:                                              2,
		`pawl_webhooks_total{code="200"}`:                                               2,
		`pawl_github_requests_total{method="POST",route="/repos/{owner}/{repo}/pulls"}`: 1,
		`pawl_healthy{part="queue"}`:                                                    1,
		`pawl_take_overs_total`:                                                         0,
	})
	if total := r.sum("pawl_github_points_total"); total < 10 {
		t.Errorf("the requests for a thread cost %v points, want more", total)
	}

	// A remark waits for the thread's next step while an agent is at work, and
	// while GitHub does not answer a delivery is not handled.
	second := r.Solve("Another line", "Take your time.")
	r.Await("the agent at work", func() bool { return r.Has("ready") })
	_, err := r.World.Comment(testrig.Repo, second, testrig.Writer, "/pawl solve with a full stop")
	r.Must(err)
	r.Await("a thread that is queued", func() bool {
		return r.Metric(`pawl_threads{state="queued"}`) == 1 && r.Metric("pawl_queue_age_seconds") > 0 && r.Metric(`pawl_threads{state="running"}`) == 1
	})
	r.World.Inject(fakegithub.Fault{Route: "* **", Times: -1, Latency: time.Hour})
	_, err = r.World.Comment(testrig.Repo, second, testrig.Writer, "/pawl solve and a comma")
	r.Must(err)
	r.Await("a delivery that is not handled", func() bool {
		return r.Metric(`pawl_deliveries{state="received"}`) >= 1 && r.Metric("pawl_delivery_age_seconds") > 0
	})

	r.Stop(syscall.SIGKILL)
	r.World.ClearFaults()
	r.Touch("go")
	r.Start()
	r.Over(testrig.ThreadName(second))
	r.Settle()
	r.wantMetrics("after the server was killed", map[string]float64{
		`pawl_take_overs_total`: 1,
		`pawl_attempts_total{backend="mine",ending="",outcome="interrupted"}`:     1,
		`pawl_attempts_total{backend="mine",ending="completed",outcome="edited"}`: 1,
	})

	r.Solve("A last line", "Use it up.")
	r.Await("the wait", func() bool { return r.Metric(`pawl_threads{state="waiting"}`) == 1 })
	r.wantMetrics("while the limit holds", map[string]float64{
		`pawl_decisions_total{action="wait",rule="usage_limit"}`:                         1,
		`pawl_attempts_total{backend="mine",ending="usage_limit",outcome="usage_limit"}`: 1,
		`pawl_breaker_consecutive{account="main",kind="usage_limit"}`:                    1,
		`pawl_limit_seconds_left{account="main",kind="usage_limit"}`:                     4 * 3600,
	})
	if got, _ := r.Hook([]byte("{}"), map[string]string{"X-Hub-Signature-256": "sha256=00"}); got != http.StatusUnauthorized {
		t.Fatalf("answered %d", got)
	}
	r.wantMetrics("after a wrong signature", map[string]float64{`pawl_webhooks_total{code="401"}`: 1})
}
