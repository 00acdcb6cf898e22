package config

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The upper bounds keep a slip of the keyboard from undoing what a number is
// for.
const (
	// maxRestarts and maxPerDay are far above use and far below the incident's
	// 1,249.
	maxRestarts = 500
	maxPerDay   = 1000
	// maxWait is the longest reset time that Pawl believes, eight days.
	maxWait = 8 * 24 * time.Hour
	maxTry  = 10
	// maxRunTests bounds the calls of the test tool in one attempt.
	maxRunTests = 1000
	// maxThreshold bounds counts of edits; it lies above every recorded run.
	maxThreshold = 100_000
)

func (s *source) validatePolicy(p Policy) {
	for i, id := range p.AllowedBots {
		if id <= 0 {
			s.add(fmt.Sprintf("policy.allowed_bots[%d]", i), "%d is not a user id; use the positive number under \"id\" at api.github.com/users/NAME[bot]", id)
		}
	}
	s.between("policy.restarts.max", int64(p.Restarts.Max), 0, maxRestarts)
	s.between("policy.restarts.backoff_after", int64(p.Restarts.BackoffAfter), 0, maxRestarts)
	s.span("policy.restarts.backoff_cap", p.Restarts.BackoffCap, time.Second, maxWait)
	s.between("policy.restarts.max_per_thread_per_day", int64(p.Restarts.MaxPerThreadPerDay), 1, maxPerDay)
	s.between("policy.usage_limit.max_consecutive", int64(p.UsageLimit.MaxConsecutive), 1, maxTry)
	s.validateSeverity(p.Severity)
	if p.Stagnation.Similarity <= 0 || p.Stagnation.Similarity > 1 {
		s.add("policy.stagnation.similarity", "%v is out of range; use a number above 0 and up to 1, such as 0.85", p.Stagnation.Similarity)
	}
	s.between("policy.stagnation.escalate_after", int64(p.Stagnation.EscalateAfter), 1, maxTry)
	s.between("policy.ladder.verify_retries", int64(p.Ladder.VerifyRetries), 0, maxTry)
	s.between("policy.ladder.run_tests_calls", int64(p.Ladder.RunTestsCalls), 1, maxRunTests)
	s.validateBudget(p.Budget)
	s.oneOf("policy.learning.mode", p.Learning.Mode, LearnAuto, LearnFixed, LearnShadow, Learn)
	for i, arg := range p.Learning.Judge {
		if strings.ContainsRune(arg, 0) || i == 0 && arg == "" {
			s.add(fmt.Sprintf("policy.learning.judge[%d]", i), "is empty or holds a NUL byte; the first item is the program, the others its arguments")
		}
	}
	s.span("policy.learning.judge_timeout", p.Learning.JudgeTimeout, time.Second, time.Hour)
}

func (s *source) validateBudget(b Budget) {
	s.between("policy.budget.tokens_per_attempt", b.TokensPerAttempt, 0, math.MaxInt64)
	s.between("policy.budget.tokens_per_thread_per_day", b.TokensPerThreadPerDay, 0, math.MaxInt64)
	for _, n := range []struct {
		key   string
		value float64
	}{{"usd_per_attempt", b.USDPerAttempt}, {"usd_per_thread_per_day", b.USDPerThreadPerDay}} {
		if !(n.value >= 0) || math.IsInf(n.value, 0) {
			s.add("policy.budget."+n.key, "%v is out of range; use US dollars, or 0 for no bound", n.value)
		}
	}
}

func (s *source) validateSeverity(v Severity) {
	type step struct {
		key   string
		value float64
		shown string
	}
	count := func(key string, n int) step { return step{"policy.severity." + key, float64(n), fmt.Sprint(n)} }
	wait := func(key string, d time.Duration) step {
		return step{"policy.severity." + key, float64(d), d.String()}
	}
	grade := func(key string, g float64) step { return step{"policy.severity." + key, g, fmt.Sprint(g)} }
	for _, n := range []step{
		count("min_edits", v.MinEdits), count("min_repeats", v.MinRepeats),
		count("moderate_edits", v.ModerateEdits), count("moderate_repeats", v.ModerateRepeats),
		count("severe_edits", v.SevereEdits), count("severe_repeats", v.SevereRepeats),
	} {
		s.between(n.key, int64(n.value), 1, maxThreshold)
	}
	s.span("policy.severity.mild_cooldown", v.MildCooldown, 0, maxWait)
	s.span("policy.severity.moderate_cooldown", v.ModerateCooldown, 0, maxWait)
	s.span("policy.severity.severe_cooldown", v.SevereCooldown, 0, maxWait)
	for _, g := range []step{grade("mild_grade", v.MildGrade), grade("moderate_grade", v.ModerateGrade), grade("severe_grade", v.SevereGrade)} {
		if g.value < 0 || g.value > 1 {
			s.add(g.key, "%s is out of range; a grade is a number from 0 to 1", g.shown)
		}
	}
	// Each row must not fall from left to right; grades are given from worst to
	// best because a worse class earns less.
	for _, row := range [][]step{
		{count("min_edits", v.MinEdits), count("moderate_edits", v.ModerateEdits), count("severe_edits", v.SevereEdits)},
		{count("min_repeats", v.MinRepeats), count("moderate_repeats", v.ModerateRepeats), count("severe_repeats", v.SevereRepeats)},
		{wait("mild_cooldown", v.MildCooldown), wait("moderate_cooldown", v.ModerateCooldown), wait("severe_cooldown", v.SevereCooldown)},
		{grade("severe_grade", v.SevereGrade), grade("moderate_grade", v.ModerateGrade), grade("mild_grade", v.MildGrade)},
	} {
		for i := range row[1:] {
			low, high := row[i], row[i+1]
			if low.value > high.value {
				s.add(s.givenOf(low.key, high.key), "%s %s is above %s %s; a worse class needs more edits, waits longer and earns a lower grade",
					lastWord(low.key), low.shown, lastWord(high.key), high.shown)
			}
		}
	}
}

// givenOf is the first of the keys that the file gives, so that the error
// points to what the reader wrote and not to a default.
func (s *source) givenOf(keys ...string) string {
	for _, key := range keys {
		if s.set(key) {
			return key
		}
	}
	return keys[0]
}

func (s *source) span(key string, value, low, high time.Duration) {
	if value < low || value > high {
		s.add(key, "%s is out of range; use %s to %s", value, low, high)
	}
}

func lastWord(key string) string {
	return key[len(parent(key))+1:]
}
