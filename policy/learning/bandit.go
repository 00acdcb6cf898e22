package learning

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/pawlbot/pawl/policy"
)

// autoRewards is how many rewards two backends must have before ModeAuto learns: given, not measured.
const autoRewards = 20

// Arm is an option with what is known of it in one context.
type Arm struct {
	policy.Option
	Level     policy.Level `json:"level"` // the look-up level that Posterior comes from
	Posterior Posterior    `json:"posterior"`
	Rewards   int          `json:"rewards"` // the number of rewards of the backend in all contexts
}

// Choose chooses one of the options by what is known of them in a context.
func (l Learned) Choose(mode policy.Mode, c policy.Context, options []policy.Option, seed uint64) policy.Choice {
	return Choose(mode, l.Arms(c, options), seed)
}

// Choose chooses among arms in the configured order. An unknown mode is as cautious as ModeFixed.
func Choose(mode policy.Mode, arms []Arm, seed uint64) policy.Choice {
	c := policy.Choice{Seed: seed, Mode: inForce(mode, arms)}
	taken := slices.IndexFunc(arms, func(a Arm) bool { return a.Masked == "" })
	if taken < 0 {
		c.Reasons = []string{"every backend is held back"}
		return c
	}
	if c.Mode != policy.ModeFixed {
		samples, would := draw(arms, seed)
		c.Samples, c.Would = samples, arms[would].Backend
		if c.Mode == policy.ModeLearn {
			taken = would
		}
	}
	c.Chosen, c.Level = arms[taken].Backend, arms[taken].Level
	c.Reasons = []string{reason(c, arms[taken])}
	return c
}

// inForce resolves ModeAuto.
func inForce(m policy.Mode, arms []Arm) policy.Mode {
	switch m {
	case policy.ModeShadow, policy.ModeLearn:
		return m
	case policy.ModeAuto, "":
	default:
		return policy.ModeFixed
	}
	enough := 0
	for _, a := range arms {
		if a.Rewards >= autoRewards {
			enough++
		}
	}
	if enough >= 2 {
		return policy.ModeLearn
	}
	return policy.ModeShadow
}

func reason(c policy.Choice, a Arm) string {
	switch {
	case c.Mode == policy.ModeFixed:
		return c.Chosen + " is the first of the configured order that is free"
	case c.Mode == policy.ModeShadow:
		return fmt.Sprintf("%s is the first of the configured order that is free; sampling would take %s", c.Chosen, c.Would)
	}
	return fmt.Sprintf("%s drew highest from %d rewards (%s)", c.Chosen, a.Posterior.N, a.Level)
}

// draw samples every arm and gives the first highest one that is not masked. Each arm's source is made of the
// seed and its name: neither the order of the arms nor a mask changes what it draws.
func draw(arms []Arm, seed uint64) (samples []policy.Sample, highest int) {
	samples, highest = make([]policy.Sample, len(arms)), -1
	for i, a := range arms {
		name := fnv.New64a()
		_, _ = name.Write([]byte(a.Backend)) // a hash never fails
		v := a.Posterior.Beta(rand.NewPCG(seed, name.Sum64())).Rand()
		samples[i] = policy.Sample{Backend: a.Backend, Value: v, Good: a.Posterior.Good, Bad: a.Posterior.Bad, Level: a.Level, Masked: a.Masked}
		if a.Masked == "" && (highest < 0 || v > samples[highest].Value) {
			highest = i
		}
	}
	return samples, highest
}
