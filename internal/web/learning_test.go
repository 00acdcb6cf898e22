package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver"
)

// learnt returns a learning report with four backends and seven sources.
func learnt(context.Context) (solver.LearningReport, error) {
	arm := func(name string, good, bad float64, n int) learning.Arm {
		return learning.Arm{Option: policy.Option{Backend: name, Model: name + "-1"}, Posterior: learning.Posterior{Mean: (1 + good) / (2 + good + bad), Weight: 2 + good + bad, N: n}, Rewards: n,
			Attempts: n, Priced: n, CostUSD: float64(n) / 2, Solved: n / 2}
	}
	broken := func(at time.Duration, attempt string, c learning.ValidityRule) learning.Violation {
		return learning.Violation{Source: learning.JudgeSource, Check: c, Attempt: attempt, Reason: "implausible", At: now.Add(-at)}
	}
	s := solver.LearningReport{Mode: policy.ModeAuto, InForce: policy.ModeLearn}
	s.Arms = learning.View([]learning.Arm{arm("codex", 31, 12, 47), arm("claude", 9, 8, 17), arm("gemini", 1, 5, 6), arm("opencode", 0, 0, 0)})
	s.FirstTries = []learning.FirstTries{{Backend: "claude", Runs: 3, Passed: 1}, {Backend: "codex", Runs: 21, Passed: 14}}
	usd := 1.75
	s.Weeks = []learning.Week{{From: now.Add(-7 * 24 * time.Hour), Attempts: 31, Rungs: []learning.Fired{{Rung: 1, Times: 4, Recovered: 2, Counted: 4, Tokens: 1234},
		{Rung: 2, Times: 9, Recovered: 3, Counted: 9, Tokens: 1_200_000, Priced: 6, CostUSD: &usd, MS: 3_900_000}, {Rung: 3}, {Rung: 4, Times: 1, MS: 90_000}},
		Arms: []learning.Earned{{Backend: "claude", Rewards: 9, Mean: 0.41}, {Backend: "codex", Rewards: 20, Mean: 0.72}}},
		{From: now.Add(-14 * 24 * time.Hour), Attempts: 12, Rungs: []learning.Fired{{Rung: 1}, {Rung: 2}, {Rung: 3}, {Rung: 4}}, Arms: []learning.Earned{{Backend: "codex", Rewards: 12, Mean: 0.6}}}}
	s.Rungs = learning.Rungs(s.Weeks)
	s.Similarities = []int{0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 2, 5, 1, 0, 0, 0, 1, 0, 2}
	s.Sources = []learning.SourceHealth{
		{Source: learning.PeopleSource, Attempts: 40, Values: 12, Coverage: 0.3, Valid: 1},
		{Source: learning.VerifierSource, Attempts: 40, Values: 38, Coverage: 0.95, Valid: 1},
		{Source: learning.JudgeSource, Attempts: 40, Values: 30, Failed: 9, Coverage: 0.75, Valid: 0.87, Degraded: true,
			Reason: "4 violations in 7 days, more than 2; newest first: acme/widgets#9/1 (floor_with_work), acme/widgets#7/2 (floor_with_work)",
			Violations: []learning.Violation{
				broken(60*time.Hour, "acme/gadgets#3/1", "unavailable"), broken(50*time.Hour, "acme/gadgets#4/1", "top_without_change"),
				broken(9*time.Hour, "acme/widgets#7/2", "floor_with_work"), broken(2*time.Hour, "acme/widgets#9/1", "floor_with_work"),
			}},
		{Source: learning.JournalSource},
	}
	return s, nil
}

// The health of sources matters only if there is a choice of backends.
func TestOneBackendShowsNoSignals(t *testing.T) {
	s := open(t, func(o *web.Options) {
		o.Learning = func(ctx context.Context) (solver.LearningReport, error) {
			l, err := learnt(ctx)
			l.Arms, l.FirstTries = l.Arms[:1], nil
			return l, err
		}
	})
	page := s.page("/backends")
	if !strings.Contains(page, "No run of the last 8 weeks counts as a first try.") {
		t.Errorf("the page does not explain the missing first tries:\n%s", page)
	}
	if !strings.Contains(page, "so there is no choice") || strings.Contains(page, "degraded") || strings.Contains(page, "journal") {
		t.Errorf("the page shows signals:\n%s", page)
	}
}

func TestLearningMetrics(t *testing.T) {
	s := open(t, func(o *web.Options) {
		o.Learning = learnt
		o.Skew = func() time.Duration { return -90 * time.Minute }
	})
	got := ours(s.page("/metrics"))
	for _, want := range []string{
		`pawl_backend_reward_mean{backend="opencode"} 0.5`, `pawl_backend_rewards{backend="codex"} 47`,
		`pawl_signal_coverage_ratio{source="judge"} 0.75`, `pawl_signal_valid_ratio{source="judge"} 0.87`,
		`pawl_signal_degraded{source="judge"} 1`, `pawl_signal_degraded{source="verifier"} 0`, `pawl_signal_violations{source="judge"} 4`,
		`pawl_database_clock_ahead_seconds -5400`,
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(strings.Join(got, "\n"), `pawl_signal_coverage_ratio{source="journal"}`) {
		t.Error("a source without opportunities has a coverage")
	}
}

func TestDegradedSourceLeavesTheServerReady(t *testing.T) {
	s := open(t, func(o *web.Options) {
		o.Learning = learnt
		o.Details = []web.Detail{{Name: "github", Run: func(context.Context) (bool, string) { return false, "no answer 3s ago: refused" }}}
	})
	code, got := s.ready()
	want := []check{
		{"github", false, "no answer 3s ago: refused"},
		{"signal judge", false, "degraded: 4 violations in 7 days, more than 2; newest first: acme/widgets#9/1 (floor_with_work), acme/widgets#7/2 (floor_with_work)"},
	}
	if diff := cmp.Diff(want, got.Details); diff != "" || code != http.StatusOK || !got.Ready {
		t.Errorf("%d, ready %t, details (-want +got):\n%s", code, got.Ready, diff)
	}
}

func TestUnreadableGradesFailOnlyTheirOwnParts(t *testing.T) {
	s := open(t, func(o *web.Options) {
		o.Learning = func(context.Context) (solver.LearningReport, error) {
			return solver.LearningReport{}, errors.New("no such table")
		}
	})
	if code, got := s.ready(); code != http.StatusOK || len(got.Details) != 1 || got.Details[0].OK {
		t.Errorf("%d %+v, want ready with one bad detail", code, got)
	}
	if got := ours(s.page("/metrics")); len(got) == 0 || strings.Contains(strings.Join(got, "\n"), "pawl_backend_rewards") {
		t.Errorf("metrics: %q", got)
	}
}

func TestReceiptsAreCounted(t *testing.T) {
	s := open(t, nil)
	s.counters.Receipt("codex", policy.Receipt{
		Tokens: policy.Tokens{Input: 1000, CachedInput: 800, Output: 50, Estimated: 30}, CostUSD: cost(0.25), Turns: 4, ToolCalls: 9, AgentMS: 45_000,
		Rungs: []policy.Rung{{Rung: 4, Times: 3, Helped: 3, Recovered: true}, {Rung: 2, Times: 1}, {Rung: 1, Times: 3, Helped: 2}, {Rung: 4, Times: 2, Unneeded: true}},
	})
	s.counters.Receipt("codex", policy.Receipt{Tokens: policy.Tokens{Input: 5, CachedInput: 10}, AgentMS: 7_300_000})
	var got []string
	for _, l := range ours(s.page("/metrics")) {
		for _, name := range []string{"pawl_tokens", "pawl_cost", "pawl_turns", "pawl_tool_calls", "pawl_rungs", "pawl_attempt_duration_seconds_count", `le="60"`} {
			if strings.Contains(l, name) {
				got = append(got, l)
			}
		}
	}
	want := []string{
		`pawl_attempt_duration_seconds_bucket{backend="codex",le="60"} 1`, `pawl_attempt_duration_seconds_count{backend="codex"} 2`,
		`pawl_cost_usd_total{backend="codex"} 0.25`,
		`pawl_rungs_total{recovered="false",rung="1"} 1`, `pawl_rungs_total{recovered="false",rung="2"} 1`, `pawl_rungs_total{recovered="false",rung="4"} 0`,
		`pawl_rungs_total{recovered="true",rung="1"} 2`, `pawl_rungs_total{recovered="true",rung="2"} 0`, `pawl_rungs_total{recovered="true",rung="4"} 3`,
		`pawl_rungs_total{recovered="unneeded",rung="4"} 2`,
		`pawl_tokens_estimated_total{backend="codex"} 30`,
		`pawl_tokens_total{backend="codex",kind="cached_input"} 810`, `pawl_tokens_total{backend="codex",kind="input"} 200`,
		`pawl_tokens_total{backend="codex",kind="output"} 50`,
		`pawl_tool_calls_total{backend="codex"} 9`, `pawl_turns_total{backend="codex"} 4`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
