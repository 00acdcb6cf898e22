package learning

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

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

// Discount multiplies an older reward's weight for each newer one of the same arm and cell: one that k newer
// ones follow weighs Discount^k, whatever other arms got and time passed. So an arm remembers about
// 1/(1−Discount) = 100 rewards: given, not measured.
const Discount = 0.99

// Posterior is what is known of one arm in one cell, a Beta distribution over the next reward. Zero is the
// prior, Beta(1,1): everything from 0 to 1 is equally likely.
type Posterior struct {
	// Good and Bad are the discounted sums of the rewards r and of 1−r.
	Good float64 `json:"good"`
	Bad  float64 `json:"bad"`
	N    int     `json:"n"` // the number of rewards
}

// Beta is the distribution. Chance is needed only to draw from it.
func (p Posterior) Beta(chance rand.Source) distuv.Beta {
	return distuv.Beta{Alpha: 1 + p.Good, Beta: 1 + p.Bad, Src: chance}
}

// plus is the posterior with one more reward, 0..1, that is newer than all before it and counts like weight of them.
func (p Posterior) plus(reward, weight float64) Posterior {
	return Posterior{Good: p.Good*Discount + weight*reward, Bad: p.Bad*Discount + weight*(1-reward), N: p.N + 1}
}

// minObservations is how many rewards an arm must have at a level, else the next wider one counts: given.
const minObservations = 3

type cell struct {
	backend string
	level   policy.Level
	context policy.Context
}

// cells are the cells that a reward is added to, the most specific first.
func cells(backend string, c policy.Context) [3]cell {
	return [3]cell{{backend, policy.Exact, c}, {backend, policy.ByCategory, policy.Context{Category: c.Category}}, {backend, policy.Global, policy.Context{}}}
}

// Posterior looks up what is known of a backend in a context, and at which
// level. Without three rewards anywhere it is what little the global level has.
func (l Learned) Posterior(backend string, c policy.Context) (Posterior, policy.Level) {
	var p Posterior
	for _, at := range cells(backend, c) {
		p = l.cells[at]
		if p.N >= minObservations {
			return p, at.level
		}
	}
	return p, policy.Global
}

func (l Learned) Arms(c policy.Context, options []policy.Option) []Arm {
	arms := make([]Arm, len(options))
	for i, o := range options {
		arms[i].Option = o
		arms[i].Posterior, arms[i].Level = l.Posterior(o.Backend, c)
		arms[i].Rewards = l.cells[cell{backend: o.Backend, level: policy.Global}].N
	}
	return arms
}

type ArmView struct {
	Arm
	Mean float64 `json:"mean"` // the expected reward
	// Low and High are the 90 % interval, with 5 % on either side.
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Effective float64 `json:"effective"` // how many undiscounted rewards the posterior is worth
	Share     float64 `json:"share"`     // the probability that sampling chooses the arm now; a masked one has none
}

// Shares are estimated from shareDraws draws from a fixed seed, so the same arms
// always show the same shares; their standard error is below 0.008.
const (
	shareDraws = 4000
	shareSeed  = 1
)

func View(arms []Arm) []ArmView {
	views := make([]ArmView, len(arms))
	for i, a := range arms {
		p := a.Posterior
		d := p.Beta(nil)
		views[i] = ArmView{Arm: a, Mean: d.Mean(), Low: d.Quantile(0.05), High: d.Quantile(0.95), Effective: p.Good + p.Bad}
	}
	chance := rand.NewPCG(shareSeed, 0)
	for range shareDraws {
		highest, most := -1, 0.0
		for i, a := range arms {
			if a.Masked != "" {
				continue
			}
			if v := a.Posterior.Beta(chance).Rand(); highest < 0 || v > most {
				highest, most = i, v
			}
		}
		if highest >= 0 {
			views[highest].Share += 1.0 / shareDraws
		}
	}
	return views
}
