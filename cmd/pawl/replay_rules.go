package main

import (
	"slices"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// shared is what the tables that threads share would hold if this thread were
// the only one. The zero value holds nothing.
type shared struct {
	breakers  map[string]policy.Breaker
	cooldowns map[string]solver.Cooldown
	arms      []policy.Backend // those of the recording, without what is held against them
}

// knows notes the backend of an attempt.
func (s *shared) knows(a solver.Started, cfg config.Server) {
	i := slices.IndexFunc(s.arms, func(b policy.Backend) bool { return b.Name == a.Backend })
	if i < 0 {
		i = len(s.arms)
		s.arms = append(s.arms, policy.Backend{Name: a.Backend, Account: a.Account})
	}
	configured := slices.ContainsFunc(cfg.Backends, func(b config.Backend) bool { return b.Name == a.Backend && b.EscalatedEffort != "" })
	s.arms[i].CanEscalate = s.arms[i].CanEscalate || a.Decision.Escalated || configured
}

// end notes what an attempt means for its account and its backend.
func (s *shared) end(a policy.Attempt, l policy.Limits) {
	if s.breakers == nil {
		s.breakers, s.cooldowns = map[string]policy.Breaker{}, map[string]solver.Cooldown{}
	}
	s.breakers[a.Account] = s.breakers[a.Account].After(a.Ending, a.ResetsAt, a.StartedAt, a.EndedAt)
	if v := l.Severity.Judge(a.Edits); a.Outcome == policy.EditLoop && v.Class != policy.None {
		s.cooldowns[a.Backend] = solver.Cooldown{Backend: a.Backend, Class: string(v.Class), Until: a.EndedAt.Add(v.Cooldown)}
	}
}

// facts are what policy decides by at a moment of the replay.
func (s *shared) facts(st solver.State, now time.Time, cfg config.Server) policy.Facts {
	// Problems of the narrowing are those of another server's configuration.
	effective, _ := cfg.Narrow(st.Repo)
	f := st.Facts(now)
	f.Limits = solver.Limits(effective.Policy)
	f.Verify = len(effective.Verify) > 0
	for _, a := range st.Attempts {
		// A local run names its verify commands on the command line.
		f.Verify = f.Verify || len(a.Receipt.Verify) > 0
	}
	for _, arm := range s.arms {
		arm.Breaker = s.breakers[arm.Account]
		if c, ok := s.cooldowns[arm.Name]; ok && now.Before(c.Until) {
			arm.CooldownUntil, arm.Cooldown = c.Until, policy.Class(c.Class)
		}
		f.Backends = append(f.Backends, arm)
	}
	return f
}
