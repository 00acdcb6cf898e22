package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Policy configures every decision.
type Policy struct {
	Paused bool `yaml:"paused"` // the kill switch
	// AllowedBots holds user ids, since logins can change owners.
	AllowedBots   []int64 `yaml:"allowed_bots"`
	policy.Limits `yaml:",inline"`
	Learning      Learning `yaml:"learning"`
}

type Learning struct {
	Mode         policy.Mode   `yaml:"mode"`
	Judge        []string      `yaml:"judge"`
	JudgeEnv     []string      `yaml:"judge_env"`
	JudgeTimeout time.Duration `yaml:"judge_timeout"`
	// JudgeProvider and JudgeModel enable the built-in judge.
	JudgeProvider string `yaml:"judge_provider"`
	JudgeModel    string `yaml:"judge_model"`
	JudgeTokens   int64  `yaml:"judge_tokens"`
}

// Upper limits catch typos. Our choice.
const (
	// maxRestarts and maxPerDay exceed normal use.
	maxRestarts = 500
	maxPerDay   = 1000
	// maxGlobal allows a hundred threads at their maximum.
	maxGlobal   = 100 * maxPerDay
	maxWait     = 8 * 24 * time.Hour // as limit.Latest, the latest reset that Pawl accepts
	maxTry      = 10
	maxRunTests = 1000
	// maxThreshold exceeds the edits of every recorded run.
	maxThreshold = 100_000
)

func (s *source) validatePolicy(p Policy, providers []Provider) {
	for i, id := range p.AllowedBots {
		s.addIf(
			id <= 0,
			fmt.Sprintf("policy.allowed_bots[%d]", i),
			"%d is not a user id; use the positive number under \"id\" at api.github.com/users/NAME[bot]",
			id,
		)
	}
	between(s, "policy.restarts.max", p.Restarts.Max, 0, maxRestarts)
	between(s, "policy.restarts.backoff_after", p.Restarts.BackoffAfter, 0, maxRestarts)
	between(s, "policy.restarts.backoff_cap", p.Restarts.BackoffCap, time.Second, maxWait)
	between(s, "policy.restarts.max_per_thread_per_day", p.Restarts.MaxPerThreadPerDay, 1, maxPerDay)
	between(s, "policy.usage_limit.max_consecutive", p.UsageLimit.MaxConsecutive, 1, maxTry)
	between(s, "policy.headroom.hold_at", p.Headroom.HoldAt, 0.01, 1)
	between(s, "policy.headroom.reserve", p.Headroom.Reserve, 0, p.Headroom.HoldAt)
	s.validateSeverity(p.Severity)
	s.addIf(
		p.Stagnation.Similarity <= 0 || p.Stagnation.Similarity > 1,
		"policy.stagnation.similarity",
		"%v is out of range; use a number above 0 and up to 1, such as 0.85",
		p.Stagnation.Similarity,
	)
	between(s, "policy.stagnation.escalate_after", p.Stagnation.EscalateAfter, 1, maxTry)
	between(s, "policy.ladder.verify_retries", p.Ladder.VerifyRetries, 0, maxTry)
	between(s, "policy.ladder.run_tests_calls", p.Ladder.RunTestsCalls, 1, maxRunTests)
	s.validateBudget(p.Budget)
	between(s, "policy.generations.max", p.Generations.Max, 0, maxTry)
	between(s, "policy.transient.max_consecutive", p.Transient.MaxConsecutive, 1, maxRestarts)
	between(s, "policy.transient.backoff_start", p.Transient.BackoffStart, time.Second, maxWait)
	between(s, "policy.transient.backoff_cap", p.Transient.BackoffCap, p.Transient.BackoffStart, maxWait)
	between(s, "policy.convergence.max_rounds", p.Convergence.MaxRounds, 0, maxRestarts)
	between(s, "policy.convergence.blocking_rounds", p.Convergence.BlockingRounds, 0, p.Convergence.MaxRounds)
	between(s, "policy.convergence.max_growth", p.Convergence.MaxGrowth, 1, maxRestarts)
	between(s, "policy.unattended.max_attempts", p.Unattended.MaxAttempts, 0, maxRestarts)
	between(s, "policy.update_every", p.UpdateEvery, 0, maxWait)
	between(s, "policy.caps.per_repository_per_day", p.Caps.PerRepositoryPerDay, 1, maxGlobal)
	between(s, "policy.caps.per_installation_per_day", p.Caps.PerInstallationPerDay, 1, maxGlobal)
	between(s, "policy.caps.per_server_per_day", p.Caps.PerServerPerDay, 1, maxGlobal)
	between(s, "policy.caps.per_account_per_day", p.Caps.PerAccountPerDay, 1, maxGlobal)
	s.oneOf("policy.learning.mode", string(p.Learning.Mode), string(policy.ModeAuto), string(policy.ModeFixed), string(policy.ModeShadow), string(policy.ModeLearn))
	s.validateCommand("policy.learning.judge", p.Learning.Judge)
	between(s, "policy.learning.judge_tokens", p.Learning.JudgeTokens, 5000, math.MaxInt64)
	s.addIf(
		p.Learning.JudgeProvider != "" && len(p.Learning.Judge) > 0,
		"policy.learning.judge_provider",
		"is given together with judge; keep one of the two",
	)
	s.addIf(p.Learning.JudgeProvider != "" && !slices.ContainsFunc(providers, func(o Provider) bool { return o.Name == p.Learning.JudgeProvider }), "policy.learning.judge_provider",
		"%s is missing from providers; add it there", s.found("policy.learning.judge_provider"))
	s.addIf(
		(p.Learning.JudgeProvider == "") != (p.Learning.JudgeModel == ""),
		"policy.learning.judge_model",
		"belongs to judge_provider; set both or neither",
	)
	between(s, "policy.learning.judge_timeout", p.Learning.JudgeTimeout, time.Second, time.Hour)
}

func (s *source) validateBudget(b policy.Budget) {
	keys, index := fields(reflect.TypeFor[policy.Budget]())
	for _, key := range keys {
		v := reflect.ValueOf(b).FieldByIndex(index[key])
		s.addIf(isNegative(v), "policy.budget."+key, "%v is out of range; use a positive number, or 0 for no limit", v)
	}
}

func isNegative(v reflect.Value) bool {
	switch {
	case v.CanInt():
		return v.Int() < 0
	case v.CanFloat():
		return v.Float() < 0
	}
	return false
}

func (s *source) validateSeverity(v policy.SeverityLimits) {
	rising(s, []string{"min_edits", "moderate_edits", "severe_edits"}, []int{v.MinEdits, v.ModerateEdits, v.SevereEdits}, 1, maxThreshold)
	rising(s, []string{"min_repeats", "moderate_repeats", "severe_repeats"}, []int{v.MinRepeats, v.ModerateRepeats, v.SevereRepeats}, 1, maxThreshold)
	rising(s, []string{"mild_cooldown", "moderate_cooldown", "severe_cooldown"}, []time.Duration{v.MildCooldown, v.ModerateCooldown, v.SevereCooldown}, 0, maxWait)
	s.oneOf("policy.severity.cooldown_scope", string(v.CooldownScope), string(policy.OfRepository), string(policy.OfServer))
	rising(s, []string{"severe_grade", "moderate_grade", "mild_grade"}, []float64{v.SevereGrade, v.ModerateGrade, v.MildGrade}, 0, 1)
}

func rising[T cmp.Ordered](s *source, names []string, values []T, low, high T) {
	const group = "policy.severity."
	for i, v := range values {
		between(s, group+names[i], v, low, high)
	}
	for i := range values[1:] {
		if values[i] > values[i+1] {
			keys := []string{group + names[i], group + names[i+1]} // the file has at least one of the two
			s.add(keys[max(0, slices.IndexFunc(keys, s.set))],
				"%s %v is above %s %v; a worse class needs more edits, a longer cooldown and a lower grade",
				names[i], values[i], names[i+1], values[i+1])
		}
	}
}
