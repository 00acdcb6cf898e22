package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/local"
	"github.com/pawlbot/pawl/policy"
)

// agentCase is a run of a real CLI whose provider plays a scenario, and the expected result.
type agentCase struct {
	name, scenario string
	// set holds settings of the provider.
	set map[string]string
	// Additions to the configuration; see cliRig.
	backend, fields, more string
	// verify holds the commands of --verify.
	verify []string
	// sleeps names the CLIs that mostly wait in this case. The test runs more of these cases at the same time.
	sleeps string
	only   string // the CLIs that play it; empty for all
	// The expected results of the run and of its last attempt; an empty value is not checked.
	state, rule string
	ending      policy.Ending
	outcome     policy.Outcome
	attempts    int
	check       func(s *cliRig, r local.Result, last policy.Receipt)
}

// exceptOpenCode names all CLIs except OpenCode. It is for cases that test Pawl more than the CLI. A task takes
// OpenCode about five times the CPU time of another CLI. Recorded runs test how Pawl reads OpenCode's output.
var (
	everyCLI       = every("")
	exceptOpenCode = every(config.OpenCode)
)

// every names the CLIs of config's table except one.
func every(except string) string {
	kinds := slices.DeleteFunc(config.CLIs(), func(kind string) bool { return kind == except })
	return strings.Join(kinds, " ")
}

// TestEveryCLIHasCases checks that each CLI has cases in which it works, is refused and is cut off.
func TestEveryCLIHasCases(t *testing.T) {
	for _, kind := range config.CLIs() {
		if !slices.Contains(strings.Fields(everyCLI), kind) {
			t.Errorf("everyCLI lacks %s", kind)
		}
		if !slices.ContainsFunc(realCLIs(), func(c realCLI) bool { return c.kind == kind }) {
			t.Errorf("realCLIs lacks %s", kind)
		}
		for what, cases := range map[string][]agentCase{"works": workingCases(), "is refused": refusedCases(), "is cut off": cutCases()} {
			if !slices.ContainsFunc(cases, func(c agentCase) bool { return c.only == "" || strings.Contains(c.only, kind) }) {
				t.Errorf("%s plays no case in which it %s", kind, what)
			}
		}
	}
}

// agentCases returns all cases of TestRealAgents.
func agentCases() []agentCase {
	return append(append(workingCases(), refusedCases()...), cutCases()...)
}

// workingCases returns the cases that end with a change.
func workingCases() []agentCase {
	return []agentCase{
		{
			name: "edits", scenario: "edit-success", fields: "prices: [{model: gpt-5.5, input: 1, cached_input: 0.5, output: 10}]", only: "codex",
			state: "done", rule: "done", ending: "completed", outcome: "unverified", attempts: 1, check: edited,
		},
		{
			name: "edits", scenario: "edit-success", only: every(config.Codex),
			state: "done", rule: "done", ending: "completed", outcome: "unverified", attempts: 1, check: edited,
		},
		{
			name: "an empty answer is retried", scenario: "empty", set: map[string]string{"fails": "1"}, only: exceptOpenCode,
			state: "done", ending: "completed", outcome: "unverified", attempts: 1,
			check: func(s *cliRig, r local.Result, last policy.Receipt) {
				if rung := rungOf(last, policy.RungAnswer); rung.Times != 1 || !rung.Recovered || rung.Tokens == 0 || rung.WastedTokens == 0 {
					s.t.Errorf("rungs %+v, want one that recovered, with the empty answer's cost", last.Rungs)
				}
				s.greets(r)
			},
		},
		{
			name: "prose ends the attempt; another effort works", scenario: "prose", set: map[string]string{"fails": "1"}, only: exceptOpenCode,
			state: "done", ending: "completed", outcome: "unverified", attempts: 2,
			check: func(s *cliRig, r local.Result, last policy.Receipt) {
				if rung := rungOf(last, policy.RungAnswer); rung.Times != 1 || !rung.Recovered || rung.Tokens == 0 || rung.WastedTokens == 0 {
					s.t.Errorf("rungs %+v, want one that recovered", last.Rungs)
				}
				if first := r.Attempts[0].Receipt; first.Ending != policy.NoAnswer || !first.Rambled || !strings.Contains(first.Detail, "bytes of prose") {
					s.t.Errorf("the first attempt ended %s, %q", first.Ending, first.Detail)
				}
				if requests := s.requests(); len(requests) < 2 || s.cli.kind == "codex" && requests[0].Effort == requests[1].Effort {
					s.t.Errorf("%d requests, want at least two, the second with another effort", len(requests))
				}
				s.greets(r)
			},
		},
		{
			name: "runs the tests with the tool", scenario: "mcp", verify: []string{"test -f hello.txt"},
			state: "done", ending: "completed", outcome: "unverified", attempts: 1,
			check: func(s *cliRig, _ local.Result, last policy.Receipt) {
				if rung := rungOf(last, policy.RungTests); rung.Times != 1 || rung.Recovered || !strings.Contains(rung.Trigger, "1 of 1 calls failed") {
					s.t.Errorf("rungs %+v, want one call of run_tests, which failed", last.Rungs)
				}
				first := s.requests()[0]
				if !slices.ContainsFunc(first.Tools, func(tool string) bool { return strings.Contains(tool, "run_tests") }) {
					s.t.Errorf("the first request offers the tools %q, want run_tests among them", first.Tools)
				}
			},
		},
		{
			name: "continues the session", scenario: "resume", verify: []string{"test -f turn2.txt"},
			state: "done", ending: "completed", outcome: "unverified", attempts: 2, check: resumed,
		},
		{
			name: "escalates the effort", scenario: "effort", verify: []string{"false"},
			backend: "effort: medium", more: "policy: {ladder: {verify_retries: 0}}",
			state: "stopped", ending: "completed", attempts: 2, check: switched,
		},
	}
}

// refusedCases returns the cases in which the provider refuses requests.
func refusedCases() []agentCase {
	return []agentCase{
		{
			name: "a usage limit with a reset time", scenario: "usage-limit", sleeps: "gemini opencode",
			state: "stopped", rule: "usage_limit", ending: "usage_limit", outcome: "usage_limit", attempts: 1, check: usedUp,
		},
		{
			name: "a refused key", scenario: "auth-401",
			state: "stopped", rule: "auth", ending: "auth", outcome: "auth", attempts: 1,
			check: func(s *cliRig, r local.Result, last policy.Receipt) {
				if last.Limit == nil || last.Limit.Kind != "auth" || !last.Limit.ResetsAt.IsZero() {
					s.t.Errorf("limit %+v, want auth", last.Limit)
				}
				if _, b := s.attempts(r); b.Kind != policy.Auth || b.Consecutive != 1 {
					s.t.Errorf("breaker %+v, want one rejected login", b)
				}
			},
		},
		{
			// This is like an agent that changes its own command line. OpenCode requests only models that it knows.
			name: "another model than the backend's", scenario: "edit-success", only: exceptOpenCode,
			backend: `argv: [bash, -c, 'c=$1; shift; exec "$c" "$${@/%MODEL/another-model}"', bash, CLI]`,
			state:   "stopped", rule: "no_progress", ending: "crashed", attempts: 1,
			check: func(s *cliRig, _ local.Result, last policy.Receipt) {
				if n := len(s.requests()); n > 0 {
					s.t.Errorf("the provider got %d requests for another model, want none", n)
				}
				if !strings.Contains(last.Detail, "is not allowed here: use "+s.cli.model) {
					s.t.Errorf("the CLI shows %q, want the allowed model", last.Detail)
				}
			},
		},
	}
}

// cutCases returns the cases that Pawl ends.
func cutCases() []agentCase {
	return []agentCase{
		{
			// Restarts are off here. TestTimeLimitsEndTheAgent tests the stop after the third silence.
			name: "an answer that hangs", scenario: "hang-midstream", backend: "idle_timeout: 20s", sleeps: everyCLI, more: "policy: {restarts: {max: 0}}",
			state: "stopped", ending: "timed_out", outcome: "silent", attempts: 1, check: ended,
		},
		{
			// Codex prints nothing for 15 s, while its model's answer arrives.
			name: "slow output is not silence", scenario: "slow", set: map[string]string{"delay_ms": "1500"}, backend: "idle_timeout: 8s", only: "codex",
			state: "stopped", ending: "completed", attempts: 1, check: func(*cliRig, local.Result, policy.Receipt) {},
		},
		{
			// Claude Code moves a command to the background after 15 s.
			name: "a command that hangs", scenario: "hang-tool", backend: "timeout: 10s", sleeps: everyCLI, only: "claude gemini opencode",
			state: "stopped", ending: "timed_out", outcome: "timed_out", attempts: 1, check: ended,
		},
		{
			// Codex asks its model again when a command takes more than 10 s.
			name: "a command that hangs", scenario: "hang-tool", backend: "timeout: 8s", sleeps: everyCLI, only: "codex",
			state: "stopped", ending: "timed_out", outcome: "timed_out", attempts: 1, check: ended,
		},
		{
			name: "an edit loop", scenario: "flipflop-loop", set: map[string]string{"edits": "60"}, only: exceptOpenCode,
			more:  "policy: {restarts: {max: 1}, severity: {min_edits: 4, min_repeats: 2, moderate_edits: 6, moderate_repeats: 4, severe_edits: 8, severe_repeats: 6, mild_cooldown: 0s, moderate_cooldown: 0s, severe_cooldown: 0s}}",
			state: "stopped", ending: "killed", outcome: "edit_loop", attempts: 2,
			check: func(s *cliRig, _ local.Result, last policy.Receipt) {
				if !strings.Contains(last.Detail, "severe edit loop") || last.Edits.Operations < 6 || last.Edits.MaxRepeatPath != "flip.txt" {
					s.t.Errorf("%+v, %q; want it cut off as a severe loop over flip.txt", last.Edits, last.Detail)
				}
				if n := len(s.requests()); n >= 60 {
					s.t.Errorf("%d requests, want fewer than 60: the loop was not cut off", n)
				}
			},
		},
		{
			name: "a used-up budget", scenario: "edit-loop", only: exceptOpenCode, more: "policy: {budget: {tokens_per_attempt: 2000}}",
			state: "stopped", ending: "turn_limit", attempts: 1,
			check: func(s *cliRig, r local.Result, last policy.Receipt) {
				text := strings.ToLower(fmt.Sprint(last.Final, last.Detail, last.Reasons, r.Reasons))
				for _, others := range []string{"credit balance", "usage limit", "quota", "payment"} {
					if strings.Contains(text, others) {
						s.t.Errorf("the CLI reports the budget as its provider's limit: %s", text)
					}
				}
				if !strings.Contains(last.Budget, "tokens of its budget of 2000") || last.Limit != nil {
					s.t.Errorf("budget %q, limit %+v; want the budget of 2000 tokens", last.Budget, last.Limit)
				}
				if n := len(s.requests()); n > 3 {
					s.t.Errorf("%d requests, want no more than the budget allows", n)
				}
			},
		},
	}
}

// edited checks the receipt of a single edit.
func edited(s *cliRig, r local.Result, last policy.Receipt) {
	s.greets(r)
	if len(last.RefusedHosts) > 0 { // the configuration turns off the CLIs' own requests
		s.t.Errorf("the CLI requested %q, want no requests of its own", last.RefusedHosts)
	}
	t := last.Tokens
	if t.Input != 2400 || t.CachedInput != 400 || t.Output == 0 || last.ToolCalls == 0 || last.Turns == 0 || last.AgentMS == 0 || last.Edits.Operations != 1 || len(last.Rungs) != 0 {
		s.t.Errorf("receipt %+v, want the tokens of two answers, one edit and no rung", last)
	}
	want := (float64(t.Input-t.CachedInput)*1 + float64(t.CachedInput)*0.5 + float64(t.Output)*10) / 1e6
	if s.fields != "" && (last.CostUSD == nil || math.Abs(*last.CostUSD-want) > 1e-9) {
		s.t.Errorf("cost %v, want %v", last.CostUSD, want)
	}
	for _, q := range s.requests() {
		if q.Model != s.cli.model {
			s.t.Errorf("the request's model is %q, want %q", q.Model, s.cli.model)
		}
		if strings.Contains(string(q.Body), `"web_search"`) { // Codex offers it by default
			s.t.Errorf("the request offers web search to the provider: %s", q.Body)
		}
	}
}

// usedUp checks that Pawl recorded the usage limit with its reset, did not wait, and counted it for the account. The
// provider sends a duration instead of a time, so the reset is a little later on a slow machine.
func usedUp(s *cliRig, r local.Result, last policy.Receipt) {
	requests := s.requests()
	if last.Limit == nil || len(requests) == 0 || len(requests) > 3 {
		s.t.Fatalf("limit %+v after %d requests", last.Limit, len(requests))
	}
	if off := last.Limit.ResetsAt.Sub(requests[len(requests)-1].Time.Add(time.Hour)); off.Abs() > 30*time.Second || last.Limit.Source != "structured" {
		s.t.Errorf("reset at %s (%s), which is off by %s", last.Limit.ResetsAt, last.Limit.Source, off)
	}
	if last.AgentMS > (10 * time.Minute).Milliseconds() {
		s.t.Errorf("the attempt took %d ms", last.AgentMS)
	}
	if _, b := s.attempts(r); b.Kind != policy.UsageLimit || b.Consecutive != 1 || !b.ResetsAt.Equal(last.Limit.ResetsAt) {
		s.t.Errorf("breaker %+v, want one usage limit until %s", b, last.Limit.ResetsAt)
	}
}

// ended checks that Pawl ended the attempt at its time limit.
func ended(s *cliRig, _ local.Result, last policy.Receipt) {
	if !strings.Contains(strings.Join(last.Reasons, "\n"), "killed") || last.AgentMS > (10*time.Minute).Milliseconds() {
		s.t.Errorf("%d ms, %q; want it killed at its time limit", last.AgentMS, last.Reasons)
	}
	if len(s.requests()) == 0 {
		s.t.Log("the machine was so busy that the agent had not called its model yet")
	}
}

// resumed checks that the second attempt continued the session of the first one. The model gets the earlier
// conversation, and the receipt counts only the second attempt's tokens.
func resumed(s *cliRig, r local.Result, last policy.Receipt) {
	s.has(r, "turn1.txt", "turn 1\n")
	s.has(r, "turn2.txt", "turn 2\n")
	all, _ := s.attempts(r)
	if all[1].Session == "" || all[1].Session != r.Attempts[0].Session || !strings.Contains(all[1].Continues, "continues the session of attempt 1") {
		s.t.Errorf("session %q (%s), want the first attempt's, %q", all[1].Session, all[1].Continues, r.Attempts[0].Session)
	}
	if all[0].Session != "" || last.Tokens.Input != 2400 || r.Attempts[0].Tokens.Input != 2400 {
		s.t.Errorf("tokens %+v and %+v, want the tokens of two answers each", r.Attempts[0].Tokens, last.Tokens)
	}
	requests := s.requests()
	body := string(requests[len(requests)-1].Body)
	if !strings.Contains(body, "turn1.txt") || !strings.Contains(body, "turn2.txt") || strings.Count(body, "Make the change in the files of the current directory") != 2 {
		s.t.Errorf("the last of %d requests does not contain the earlier conversation", len(requests))
	}
}

// switched checks that the provider gets the backend's effort first, and the escalated effort after verification failed.
func switched(s *cliRig, r local.Result, last policy.Receipt) {
	own, high := "medium", "high"
	if s.cli.kind == "gemini" { // its effort is a number of thinking tokens
		own, high = "8192", "24576"
	}
	var got []string
	for _, q := range s.requests() {
		if len(got) == 0 || got[len(got)-1] != q.Effort {
			got = append(got, q.Effort)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint([]string{own, high}) {
		s.t.Errorf("efforts %q, want %s, then %s", got, own, high)
	}
	if rung := rungOf(last, policy.RungEffort); rung.Times != 1 || rung.Recovered {
		s.t.Errorf("rungs %+v, want the escalated effort, not recovered", last.Rungs)
	}
}

// TestRealAgents runs the real CLIs with the built binary, in the sandbox. Their provider plays one scenario per case.
func TestRealAgents(t *testing.T) {
	modules(t)
	t.Parallel()
	var busy, asleep []func()
	for _, c := range agentCases() {
		for _, cli := range realCLIs() {
			if c.only != "" && !strings.Contains(c.only, cli.kind) {
				continue
			}
			run := func() { t.Run(cli.kind+"/"+c.name, func(t *testing.T) { c.play(t, cli) }) }
			if strings.Contains(c.sleeps, cli.kind) {
				asleep = append(asleep, run)
			} else {
				busy = append(busy, run)
			}
		}
	}
	var both sync.WaitGroup
	both.Go(func() { atATime(runtime.NumCPU(), busy) })
	both.Go(func() { atATime(4, asleep) })
	both.Wait()
}

// atATime runs all functions, up to most of them at the same time.
func atATime(most int, all []func()) {
	var group sync.WaitGroup
	free := make(chan struct{}, most)
	for _, f := range all {
		free <- struct{}{}
		group.Go(func() { defer func() { <-free }(); f() })
	}
	group.Wait()
}

func (c agentCase) play(t *testing.T, cli realCLI) {
	s := newCLIRig(t, cli, c.scenario)
	for k, v := range c.set {
		s.provider.Set(k, v)
	}
	s.backend, s.fields, s.more = strings.NewReplacer("MODEL", cli.model, "CLI", cli.kind).Replace(c.backend), c.fields, c.more
	var args []string
	for _, v := range c.verify {
		args = append(args, "--verify", v)
	}
	code, r := s.runs(args...)
	last := r.Attempts[len(r.Attempts)-1]
	if string(r.State) != c.state || c.rule != "" && string(r.Rule) != c.rule || (code == 0) != (c.state == "done") || len(r.Attempts) != c.attempts {
		t.Errorf("exit code %d, %s (%s %q) after %d attempts; want %s (%s) after %d", code, r.State, r.Rule, r.Reasons, len(r.Attempts), c.state, c.rule, c.attempts)
	}
	if last.Ending != c.ending || c.outcome != "" && last.Outcome != c.outcome {
		t.Errorf("ending %s, outcome %s; want %s, %s", last.Ending, last.Outcome, c.ending, c.outcome)
	}
	c.check(s, r, last.Receipt)
	s.noProcessLeft()
	t.Logf("%d attempts, the last took %d ms", len(r.Attempts), last.AgentMS)
}
