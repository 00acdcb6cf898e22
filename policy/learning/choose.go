package learning

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Arm is an option with its history in one context.
type Arm struct {
	policy.Option
	Posterior Posterior `json:"posterior"`
	Rewards   int       `json:"rewards"`          // in all contexts
	Awaited   int       `json:"awaited"`          // attempts of the last two weeks without a reward yet
	Attempts  int       `json:"attempts"`         // rewarded or not
	Solved    int       `json:"solved"`           // attempts with a reward above 0.5
	CostUSD   float64   `json:"cost_usd"`         // of all attempts
	Priced    int       `json:"priced"`           // attempts with known cost
	Seconds   float64   `json:"seconds"`          // agent run time of all attempts
	Chosen    string    `json:"chosen,omitempty"` // why it was last chosen
}

// Name returns the backend with model and effort.
func (a Arm) Name() string {
	name := a.Backend
	if runs := strings.TrimSpace(a.Model + " " + a.Effort); runs != "" {
		name += " (" + runs + ")"
	}
	if a.Escalated {
		name += ", escalated"
	}
	return name
}

// Cost returns dollars per attempt; 0 if unknown.
func (a Arm) Cost() float64 { return a.CostUSD / float64(max(1, a.Priced)) }

// How configures the choice.
type How struct {
	Mode policy.Mode
	// Explore allows arms with few rewards.
	Explore bool
}

// explored is the share of choices for the arm with the fewest rewards, so that a judge alone cannot exclude an arm. It
// applies until each arm has exploredBy plus 1/exploredOf of an even share of rewards, pending ones included. explored
// is a requirement; the others are our choice (make worlds).
const (
	explored   = 0.05
	exploredBy = 3
	exploredOf = 50
)

// Choose chooses among arms in the configured order. An unknown mode means ModeFixed.
func Choose(h How, arms []Arm, seed uint64) policy.Choice {
	c := policy.Choice{Seed: seed, Mode: h.inForce(arms)}
	taken := slices.IndexFunc(arms, func(a Arm) bool { return a.Masked == "" })
	if taken < 0 {
		c.Reasons = []string{"every backend is held back"}
		return c
	}
	if c.Mode != policy.ModeFixed {
		samples, would := draw(arms, seed)
		if least := h.exploration(arms, seed); least >= 0 {
			would, c.Explored = least, true
		}
		c.Samples, c.Would = samples, arms[would].Backend
		if c.Mode == policy.ModeLearn {
			taken = would
		}
	}
	c.Chosen = arms[taken].Backend
	c.Reasons = []string{reason(c, arms[taken])}
	return c
}

func (h How) inForce(arms []Arm) policy.Mode {
	if len(arms) < 2 {
		return policy.ModeFixed
	}
	switch h.Mode {
	case policy.ModeShadow, policy.ModeLearn:
		return h.Mode
	case policy.ModeAuto, "":
		return policy.ModeLearn
	default:
		return policy.ModeFixed
	}
}

func reason(c policy.Choice, a Arm) string {
	const first = " is the first of the configured order that is free"
	switch {
	case c.Mode == policy.ModeFixed:
		return c.Chosen + first
	case c.Mode == policy.ModeShadow:
		return fmt.Sprintf("%s%s; sampling would take %s", c.Chosen, first, c.Would)
	case c.Explored:
		return fmt.Sprintf("%s has %s so far and is tried to learn of it", c.Chosen, policy.Plural(a.Rewards, "reward"))
	}
	return fmt.Sprintf("%s drew highest; its mean is %.2f from %s", c.Chosen, a.Posterior.Mean, policy.Plural(a.Rewards, "reward"))
}

// exploration returns the arm to explore; -1 for none.
func (h How) exploration(arms []Arm, seed uint64) int {
	if !h.Explore {
		return -1
	}
	if rand.New(chance(seed, "explore")).Float64() >= explored {
		return -1
	}
	return neglected(arms)
}

// neglected returns the free arm with the fewest rewards; -1 if each has enough.
func neglected(arms []Arm) int {
	all := 0
	for _, a := range arms {
		all += a.Rewards + a.Awaited
	}
	least, fewest := -1, exploredBy+all/(exploredOf*len(arms))
	for i, a := range arms {
		n := a.Rewards + a.Awaited
		if a.Masked == "" && n < fewest {
			least, fewest = i, n
		}
	}
	return least
}

func chance(seed uint64, purpose string) rand.Source { return rand.NewPCG(seed, policy.Hash(purpose)) }

// draw samples every arm and returns the highest unmasked one. Each arm's random source depends only on the seed and
// its name.
func draw(arms []Arm, seed uint64) (samples []policy.Sample, highest int) {
	samples, highest = make([]policy.Sample, len(arms)), -1
	for i, a := range arms {
		v := a.Posterior.sharp(chance(seed, a.Backend)).Rand()
		samples[i] = policy.Sample{Backend: a.Backend, Value: v, Mean: a.Posterior.Mean, Weight: a.Posterior.Weight, Masked: a.Masked}
		if a.Masked != "" {
			continue
		}
		if highest < 0 || v > samples[highest].Value {
			highest = i
		}
	}
	return samples, highest
}

type ArmView struct {
	Arm
	Mean float64 `json:"mean"` // expected reward
	// Low and High bound the 90 % interval.
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Share     float64 `json:"share"`      // the probability that sampling chooses the arm now; 0 if masked
	PerSolved float64 `json:"per_solved"` // dollars per solved attempt; 0 if unknown
}

// priced reports whether all attempts have a known cost.
func (a Arm) priced() bool { return a.Priced > 0 && a.Priced == a.Attempts }

// shareDraws is the number of draws, with one fixed seed; the standard error is below 0.008.
const shareDraws = 4000

func View(arms []Arm) []ArmView {
	views := make([]ArmView, len(arms))
	for i, a := range arms {
		d := a.Posterior.Beta(nil)
		views[i] = ArmView{Arm: a, Mean: d.Mean(), Low: d.Quantile(0.05), High: d.Quantile(0.95)}
		if a.priced() && a.Solved > 0 {
			views[i].PerSolved = a.CostUSD / float64(a.Solved)
		}
	}
	draws := rand.NewPCG(1, 0)
	for range shareDraws {
		highest, most := -1, 0.0
		for i, a := range arms {
			if a.Masked != "" || a.Escalated {
				continue
			}
			v := a.Posterior.sharp(draws).Rand()
			if highest < 0 || v > most {
				highest, most = i, v
			}
		}
		if highest >= 0 {
			views[highest].Share += 1.0 / shareDraws
		}
	}
	return views
}
