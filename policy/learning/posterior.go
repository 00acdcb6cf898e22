package learning

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pawlbot/pawl/policy"
)

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

// plus is the posterior with one more reward, 0..1, that is newer than all before it.
func (p Posterior) plus(reward float64) Posterior {
	return Posterior{Good: p.Good*Discount + reward, Bad: p.Bad*Discount + 1 - reward, N: p.N + 1}
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

// Arms gives the options what is known of them in a context.
func (l Learned) Arms(c policy.Context, options []policy.Option) []Arm {
	arms := make([]Arm, len(options))
	for i, o := range options {
		arms[i].Option = o
		arms[i].Posterior, arms[i].Level = l.Posterior(o.Backend, c)
		arms[i].Rewards = l.cells[cell{backend: o.Backend, level: policy.Global}].N
	}
	return arms
}

// ArmView is an arm as people see it.
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

// View shows arms as people see them.
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
