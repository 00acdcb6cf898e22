package solver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// learnedAge and learnedRows limit the rows. Older rewards count for nothing: 0.99 to the power of 1,000 is 0.00004.
const (
	learnedAge  = 180 * 24 * time.Hour
	learnedRows = 2000
)

// Learned returns the results of attempts within learnedAge, at most learnedRows, by backend. It caches them for
// learnedFor.
func (s *Solver) Learned(ctx context.Context) (learning.Learned, error) {
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	now := s.Env.Now()
	if s.learned.fresh(now) {
		return s.learned.is, nil
	}
	rows, err := s.Env.Store.Graded(ctx, now.Add(-learnedAge), learnedRows)
	if err != nil {
		return learning.Learned{}, fmt.Errorf("read grades: %w", err)
	}
	graded := make([]learning.Graded, 0, len(rows))
	for _, r := range rows {
		var g learning.Graded
		if err := json.Unmarshal(r.Data, &g); err != nil {
			s.Env.Log.Error().Err(err).Str("attempt", r.ID).Msg("a grade cannot be read and is left out")
			continue
		}
		graded = append(graded, g)
	}
	s.learned.is, s.learned.at = learning.Learn(graded, now), now
	return s.learned.is, nil
}

// learnedFor is the longest time until a new reward counts.
const learnedFor = 2 * time.Second

type learnedCache struct {
	mu sync.Mutex
	at time.Time
	is learning.Learned
}

// fresh reports whether the cache is current. Times in the future come from a wrong clock.
func (c *learnedCache) fresh(now time.Time) bool {
	if c.at.IsZero() {
		return false
	}
	age := now.Sub(c.at)
	return age >= 0 && age < learnedFor
}

// choice returns the function that chooses among several free backends.
func (s *step) choice(ctx context.Context, e config.Effective) (func([]policy.Option) policy.Choice, error) {
	l := e.Policy.Learning
	if len(e.Backends) < 2 {
		return nil, nil
	}
	if l.Mode == "" || l.Mode == policy.ModeFixed {
		return nil, nil
	}
	learned, err := s.pub.solver.Learned(ctx)
	task, seed := s.pub.state.Task(s.pub.thread).Context(), seed(s.pub.thread, len(s.pub.state.Attempts)+1)
	// Only a thread's first attempt explores.
	how := learning.How{Mode: l.Mode, Explore: len(s.pub.state.Attempts) == 0}
	return func(options []policy.Option) policy.Choice {
		for i, o := range options {
			b := attempt.BackendNamed(e.Backends, o.Backend)
			options[i].Model, options[i].Effort = b.Model, b.Effort
		}
		return learning.Choose(how, learned.Arms(task, options), seed)
	}, err
}

// seed depends only on the thread and the attempt, so that a repeated choice has the same result.
func seed(t thread.ID, n int) uint64 { return policy.Hash(fmt.Sprintf("%s/%d", t, n)) }

// learn stores changed grades of the thread's attempts.
func (s *step) learn(ctx context.Context) (progress, error) {
	for i, a := range s.pub.state.Attempts {
		if a.EndedAt.IsZero() || a.NoAgent {
			continue
		}
		if a.Decision.Purpose != policy.ToChange { // Pawl cannot measure an answer's worth
			continue
		}
		g := s.pub.state.Grade(s.pub.thread, i, s.pub.Config.Policy.Severity)
		data, err := json.Marshal(g)
		if err != nil {
			return nothing, err
		}
		key, sum := thread.GradeKey(a.N), thread.Hash(string(data))
		if s.pub.state.Acts[key].Hash == sum {
			continue
		}
		row := thread.GradeRow{ID: g.ID, At: g.At, Backend: g.Backend, Repo: s.pub.thread.Repo(), Data: data}
		if err := s.pub.env.Store.PutGraded(ctx, row); err != nil {
			return nothing, fmt.Errorf("write the grade of attempt %d: %w", a.N, err)
		}
		if err := s.pub.acted(ctx, key, thread.Act{Hash: sum}); err != nil {
			return nothing, err
		}
	}
	return nothing, nil
}

// LearningReport describes what was learned about the configured backends, and the health of its sources.
type LearningReport struct {
	// Mode is the configured mode, InForce the effective one.
	Mode    policy.Mode             `json:"mode"`
	InForce policy.Mode             `json:"in_force"`
	Arms    []learning.ArmView      `json:"arms"`
	Sources []learning.SourceHealth `json:"sources"`
	// FirstTries counts each backend's first attempts of the last eight weeks. Rungs counts recoveries, and Weeks
	// counts them by week.
	FirstTries []learning.FirstTries `json:"first_tries"`
	Rungs      []learning.Fired      `json:"rungs"`
	Weeks      []learning.Week       `json:"weeks"`
	// Similarities counts retries by their similarity to the previous attempt, in twentieths.
	Similarities []int `json:"similarities"`
	// Quarantined lists the newest ignored attempts with reasons.
	Quarantined []learning.Judged `json:"quarantined"`
}

const shownQuarantined = 20

// LearningReport also covers backends that cannot run now, since their worth does not depend on that.
func (s *Solver) LearningReport(ctx context.Context) (LearningReport, error) {
	learned, err := s.Learned(ctx)
	if err != nil {
		return LearningReport{}, err
	}
	c := s.Env.Current()
	l := c.Policy.Learning
	var options, escalated []policy.Option
	for _, b := range c.Backends {
		options = append(options, policy.Option{Backend: b.Name, Model: b.Model, Effort: b.Effort})
		if b.EscalatedEffort != "" {
			escalated = append(escalated, policy.Option{Backend: b.Name, Model: b.Model, Effort: b.EscalatedEffort, Escalated: true})
		}
	}
	arms := learned.Arms(policy.Context{}, options)
	inForce := learning.Choose(learning.How{Mode: l.Mode}, arms, 0).Mode
	// Arms at the effort of rung 3 are shown once they have run.
	arms = append(arms, slices.DeleteFunc(learned.Arms(policy.Context{}, escalated), func(a learning.Arm) bool { return a.Attempts == 0 })...)
	quarantined := append([]learning.Judged{}, learned.Judged()...)
	quarantined = slices.DeleteFunc(quarantined, func(j learning.Judged) bool { return len(j.Quarantine) == 0 })
	weeks := learned.Weeks()
	return LearningReport{
		Mode: l.Mode, InForce: inForce, Arms: learning.View(arms), Sources: learned.Health(),
		FirstTries: learned.FirstTries(), Rungs: learning.Rungs(weeks), Weeks: weeks, Similarities: learned.Similarities(),
		Quarantined: quarantined[max(0, len(quarantined)-shownQuarantined):],
	}, nil
}

// cooldowns returns a function that finds an arm's longest cooldown for a repository. A runaway in another repository
// counts as severe.
func (s *Solver) cooldowns(ctx context.Context, repo string, scope policy.Scope, now time.Time) (func(config.Backend, string) policy.Cooldown, error) {
	of := repo
	if scope == policy.OfServer {
		of = ""
	}
	all, err := s.Env.Store.Cooldowns(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("cooldowns: %w", err)
	}
	return func(b config.Backend, effort string) policy.Cooldown {
		arm := [3]string{b.Name, b.Model, effort}
		var longest policy.Cooldown
		var here *policy.Cooldown // this repository's runaway
		for in, list := range all {
			for _, c := range list {
				if arm != [3]string{c.Backend, c.Model, c.Effort} {
					continue
				}
				if c.Class == policy.Runaway && in == repo {
					here = &c.Cooldown
				}
				if c.Until.After(longest.Until) {
					longest = c.Cooldown
				}
			}
		}
		switch {
		case here != nil:
			longest.Class, longest.Damage = policy.Runaway, here.Damage
		case longest.Class == policy.Runaway: // in another repository
			longest.Class = policy.Severe
		}
		return longest
	}, nil
}
