package policy

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Mode says who chooses the backend.
type Mode string

// The modes of the choice of a backend.
const (
	// ModeFixed takes the first of the configured order.
	ModeFixed Mode = "fixed"
	// ModeShadow takes the first, too, and says what would have been chosen.
	ModeShadow Mode = "shadow"
	// ModeLearn takes what Thompson sampling chooses.
	ModeLearn Mode = "learn"
	// ModeAuto, the default, is shadow until two backends have autoRewards
	// rewards each, then learn.
	ModeAuto Mode = "auto"
)

// autoRewards is the number of rewards that two backends must have before
// ModeAuto learns. The number was given, not measured.
const autoRewards = 20

// Option is a backend that may be chosen from. Masked is why it may not be taken
// now (a cooldown, a breaker, the repository's configuration, another one is
// pinned); empty when it may.
type Option struct {
	Backend string `json:"backend"`
	Masked  string `json:"masked,omitempty"`
}

// Arm is an option with what is known of it in one context.
type Arm struct {
	Option
	// Level is the look-up level that Posterior comes from.
	Level     Level     `json:"level"`
	Posterior Posterior `json:"posterior"`
	// Rewards is the number of rewards of the backend in all contexts.
	Rewards int `json:"rewards"`
}

// Sample is what one arm drew.
type Sample struct {
	Backend string  `json:"backend"`
	Value   float64 `json:"value"`
	// Good and Bad are the posterior that was drawn from.
	Good   float64 `json:"good"`
	Bad    float64 `json:"bad"`
	Level  Level   `json:"level"`
	Masked string  `json:"masked,omitempty"`
}

// Choice is which backend an attempt gets, with all that it rests on: the same
// arms and the same seed give the same choice.
type Choice struct {
	Seed uint64 `json:"seed"`
	// Mode is the mode that was in force; never ModeAuto.
	Mode Mode `json:"mode"`
	// Chosen is empty where every arm is masked.
	Chosen string `json:"chosen"`
	// Would is what sampling chooses; empty in ModeFixed and where every arm is
	// masked.
	Would string `json:"would,omitempty"`
	// Level is the level of the chosen arm's posterior.
	Level   Level    `json:"level,omitempty"`
	Samples []Sample `json:"samples,omitempty"`
	Reasons []string `json:"reasons"`
}

// Choose chooses among arms in the configured order. An unknown mode is as
// cautious as ModeFixed.
func Choose(mode Mode, arms []Arm, seed uint64) Choice {
	c := Choice{Seed: seed, Mode: mode.inForce(arms)}
	first := -1
	for i, a := range arms {
		if a.Masked == "" {
			first = i
			break
		}
	}
	if first < 0 {
		c.Reasons = []string{"every backend is held back"}
		return c
	}
	would := first
	if c.Mode != ModeFixed {
		c.Samples, would = draw(arms, seed)
		c.Would = arms[would].Backend
	}
	taken := first
	if c.Mode == ModeLearn {
		taken = would
	}
	c.Chosen, c.Level = arms[taken].Backend, arms[taken].Level
	c.Reasons = []string{c.reason(arms[taken])}
	return c
}

// inForce resolves ModeAuto.
func (m Mode) inForce(arms []Arm) Mode {
	switch m {
	case ModeShadow, ModeLearn:
		return m
	case ModeAuto, "":
	default:
		return ModeFixed
	}
	enough := 0
	for _, a := range arms {
		if a.Rewards >= autoRewards {
			enough++
		}
	}
	if enough >= 2 {
		return ModeLearn
	}
	return ModeShadow
}

func (c Choice) reason(a Arm) string {
	switch {
	case c.Mode == ModeFixed:
		return c.Chosen + " is the first of the configured order that is free"
	case c.Mode == ModeShadow:
		return fmt.Sprintf("%s is the first of the configured order that is free; sampling would take %s", c.Chosen, c.Would)
	}
	return fmt.Sprintf("%s drew highest from %d rewards (%s)", c.Chosen, a.Posterior.N, a.Level)
}

// draw samples every arm and gives the index of the highest one that is not
// masked; of equals the first. Each arm draws from a source of its own, made of
// the seed and its name, so that neither the order of the arms nor a mask
// changes what any arm draws.
func draw(arms []Arm, seed uint64) (samples []Sample, highest int) {
	samples, highest = make([]Sample, len(arms)), -1
	for i, a := range arms {
		name := fnv.New64a()
		_, _ = name.Write([]byte(a.Backend)) // a hash never fails
		v := a.Posterior.sample(rand.NewPCG(seed, name.Sum64()))
		samples[i] = Sample{Backend: a.Backend, Value: v, Good: a.Posterior.Good, Bad: a.Posterior.Bad, Level: a.Level, Masked: a.Masked}
		if a.Masked == "" && (highest < 0 || v > samples[highest].Value) {
			highest = i
		}
	}
	return samples, highest
}

// sample draws from the posterior.
func (p Posterior) sample(chance rand.Source) float64 {
	return distuv.Beta{Alpha: p.Alpha(), Beta: p.Beta(), Src: chance}.Rand()
}
