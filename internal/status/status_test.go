package status

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestStatusReport(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { t := now.Add(d); return &t }
	var out strings.Builder
	usd := 1.75
	weeks := []learning.Week{{From: now.AddDate(0, 0, -7), Attempts: 31, Rungs: []learning.Fired{{Rung: 1, Times: 4, Recovered: 2, Counted: 4, Tokens: 1234},
		{Rung: 2, Times: 9, Recovered: 3, Counted: 9, Tokens: 1_200_000, Priced: 6, CostUSD: &usd, MS: 3_900_000}, {Rung: 3}, {Rung: 4, Times: 1, MS: 90_000}}}}
	report := Report{
		now: now, LeftOut: 12,
		Threads: []Thread{
			{Thread: "acme/widgets#7", State: "waiting", Headline: "Waiting: the backend rests, 5h 12m left (until 14:03 UTC)", Attempts: 2, Title: "Parser drops the last row"},
			{Thread: "acme/widgets#8", State: "done", Headline: "Done: verified", Attempts: 1, Title: "Use port 9999"},
		},
		Cooldowns: []Cooldown{
			{thread.Cooldown{Backend: "codex", Cooldown: policy.Cooldown{Class: "severe", Until: *at(5*time.Hour + 12*time.Minute)}}, "acme/widgets"},
			{thread.Cooldown{Backend: "claude", Cooldown: policy.Cooldown{Class: "mild", Until: *at(20 * time.Second)}}, "acme/widgets"},
		},
		Breakers: []Breaker{
			{Account: "main", Breaker: policy.Breaker{Kind: "usage_limit", Consecutive: 3}, Open: true, ResetsAt: at(51 * time.Hour)},
			{Account: "old", Breaker: policy.Breaker{Kind: "usage_limit", Consecutive: 1}, ResetsAt: at(-time.Hour)},
			{Account: "other", Breaker: policy.Breaker{Kind: "auth", Consecutive: 1}, Open: true},
		},
		Backends: []Backend{{Name: "codex", Kind: "codex", Account: "main"}},
		Levels:   []policy.Ledger{{Level: "this server", Used: policy.Used{Attempts: 7, Tokens: 90, USD: 1.5}, MaxAttempts: 500, MaxUSD: 200}},
		Learning: solver.LearningReport{
			Mode: policy.ModeAuto, InForce: policy.ModeLearn,
			FirstTries: []learning.FirstTries{{Backend: "claude", Runs: 3, Passed: 1}, {Backend: "codex", Runs: 21, Passed: 14}},
			Rungs:      learning.Rungs(weeks), Weeks: weeks,
			Arms: learning.View([]learning.Arm{
				{Option: policy.Option{Backend: "codex", Model: "gpt-5", Effort: "medium"}, Posterior: learning.Posterior{Mean: 0.711, Weight: 45, N: 47}, Rewards: 47,
					Attempts: 50, Priced: 50, Solved: 20, CostUSD: 30, Seconds: 9000, Chosen: "codex drew highest; its mean is 0.71 from 47 rewards"},
				{Option: policy.Option{Backend: "claude"}, Posterior: learning.Posterior{Mean: 0.5, Weight: 2}},
			}),
			Sources: []learning.SourceHealth{
				{Source: learning.VerifierSource, Attempts: 40, Values: 38, Coverage: 0.95, Valid: 1},
				{Source: learning.JudgeSource, Attempts: 40, Values: 30, Coverage: 0.75, Valid: 0.87, Degraded: true,
					Agreement: learning.Agreement{Good: 12, Bad: 8, Hits: 10, Rejects: 7}, Violations: make([]learning.Violation, 4), Reason: "4 violations in 7 days, more than 2; newest first: acme/widgets#7/2 (floor_with_work)"},
			},
		},
	}
	report.Print(&out)
	PrintLearning(&out, report.Learning)
	want := `THREAD          ATTEMPTS  STANDS                                                     TITLE
acme/widgets#7  2         Waiting: the backend rests, 5h 12m left (until 14:03 UTC)  Parser drops the last row
acme/widgets#8  1         Done: verified                                             Use port 9999
and 12 other threads, which changed earlier: --json lists them
codex on acme/widgets: severe edit loop, 5h 12m left (until 14:03 UTC)
claude on acme/widgets: mild edit loop, under a minute left (until 08:51 UTC)
account main: 3 × usage_limit in a row, breaker open, 2d 3h left (until 2026-03-06 11:51 UTC)
account old: 1 × usage_limit in a row, breaker closed, was reset at 07:51 UTC
account other: 1 × auth in a row, breaker open, when it resets is unknown
in the last 24 hours on this server: 7 of 500 attempts (493 left), 1.50 of 200.00 USD (198.50 left), 90 tokens
backend codex (codex) on account main
What Pawl learned about the backends: pawl status --learning

Learning: mode auto, in force learn
ARM                   REWARDS  MEAN  90 % INTERVAL  SHARE  ATTEMPTS  USD A SOLVED  MINUTES
codex (gpt-5 medium)  47       0.71  0.60–0.82      97 %   50        1.50          3.0      ···········━━━●━━···
claude                0        0.50  0.05–0.95      3 %    0         –             –        ·━━━━━━━━━●━━━━━━━━━
last choice: codex drew highest; its mean is 0.71 from 47 rewards

SIGNAL    ATTEMPTS  COVERAGE  VALID  AGREES    VIOLATIONS
verifier  40        95 %      100 %  –         0
judge     40        75 %      87 %   17 of 20  4           degraded, not learned from: 4 violations in 7 days, more than 2; newest first: acme/widgets#7/2 (floor_with_work)

First tries of the last 8 weeks that passed the verify commands without a recovery
BACKEND  RUNS  PASSED  SHARE
claude   3     1       33 %
codex    21    14      67 %

Recoveries of the last 8 weeks
RUNG                        FIRED  HELPED  TOKENS     COST              TIME
1, no answer                4      2       1,234      –                 –
2, retry with what failed   9      3       1,200,000  $1.75 for 6 of 9  1h 5m
3, more effort              0      0       –          –                 –
4, the agent ran the tests  1      0       –          –                 1m 30s

Recoveries by weeks, recovered of fired
WEEK FROM   ATTEMPTS  RUNG 1  RUNG 2  RUNG 3  RUNG 4
2026-02-25  31        2 of 4  3 of 9  0 of 0  0 of 1
`
	got := regexp.MustCompile(` +\n`).ReplaceAllString(out.String(), "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// With one backend, neither its grade nor the signals' health is shown.
func TestOneBackendHidesLearning(t *testing.T) {
	var out strings.Builder
	one := solver.LearningReport{Arms: make([]learning.ArmView, 1), Sources: []learning.SourceHealth{{Source: learning.JudgeSource, Attempts: 4, Degraded: true}}}
	if printLearning(&out, one); out.Len() != 0 {
		t.Errorf("%q", out.String())
	}
	if printRecoveries(&out, solver.LearningReport{Weeks: make([]learning.Week, 1)}); !strings.Contains(out.String(), "No run of the last 8 weeks counts as a first try.") {
		t.Errorf("without first tries: %q", out.String())
	}
	one.Arms = append(one.Arms, learning.ArmView{})
	if printLearning(&out, one); !strings.Contains(out.String(), "judge") {
		t.Errorf("with two: %q", out.String())
	}
}

// Lists are empty, not null, and the text has only existing items.
func TestEmptyDatabase(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	cfg := config.Default()
	cfg.DataDir, cfg.Backends = t.TempDir(), []config.Backend{config.NewBackend("mine", config.Command)}
	r, err := Read(t.Context(), cfg, db, time.Now(), AllThreads)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"threads", "breakers", "cooldowns"} {
		if !strings.Contains(string(text), `"`+list+`":[]`) {
			t.Errorf("%s is not an empty list: %s", list, text)
		}
	}
	var out strings.Builder
	r.Print(&out)
	PrintLearning(&out, r.Learning)
	for _, want := range []string{"No thread", "backend mine (command)", "No attempt of the last 8 weeks has ended."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, &out)
		}
	}
}

// The text shows the most recently changed threads, and JSON shows all. Both count the omitted ones.
func TestReportCountsOmittedThreads(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := range 3 {
		id := thread.ID{Owner: "acme", Name: "widgets", Number: n + 1}
		started := thread.NewEvent{Kind: thread.KindAttemptStarted, At: time.Now(), Data: thread.Started{N: 1}}
		if _, err := db.Append(t.Context(), id, false, started); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	for most, want := range map[int][2]int{2: {2, 1}, AllThreads: {3, 0}} {
		r, err := Read(t.Context(), cfg, db, time.Now(), most)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{len(r.Threads), r.LeftOut}; got != want {
			t.Errorf("at most %d: %v threads are listed and left out, want %v", most, got, want)
		}
	}
}
