package solver

import (
	"context"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// cooldownStore is a store with cooldowns only.
type cooldownStore struct {
	thread.Store
	all map[string][]thread.Cooldown
}

func (r cooldownStore) Cooldowns(_ context.Context, repo string) (map[string][]thread.Cooldown, error) {
	if repo == "" {
		return r.all, nil
	}
	return map[string][]thread.Cooldown{repo: r.all[repo]}, nil
}

// Another model or effort is free. So is another repository, unless the cooldown's scope is the server.
func TestCooldownAppliesToItsArmAndRepository(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	store := cooldownStore{all: map[string][]thread.Cooldown{"o/a": {{Backend: "codex", Model: "m", Effort: "low", Cooldown: policy.Cooldown{Class: policy.Runaway, Until: now.Add(time.Hour)}}}}}
	s := &Solver{Env: attempt.Env{Store: store}}
	for _, c := range []struct {
		what, repo, model, effort string
		scope                     policy.Scope
		want                      policy.Class
	}{
		{"the arm and repository of the loop", "o/a", "m", "low", policy.OfRepository, policy.Runaway},
		{"another model", "o/a", "n", "low", policy.OfRepository, ""},
		{"the escalated effort", "o/a", "m", "high", policy.OfRepository, ""},
		{"another repository", "o/b", "m", "low", policy.OfRepository, ""},
		{"another repository, with the server as scope", "o/b", "m", "low", policy.OfServer, policy.Severe},
	} {
		rests, err := s.cooldowns(t.Context(), c.repo, c.scope, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := rests(config.Backend{Name: "codex", Model: c.model}, c.effort); got.Class != c.want || got.Holds(now) != (c.want != "") {
			t.Errorf("%s: %+v, want %q", c.what, got, c.want)
		}
	}
}
