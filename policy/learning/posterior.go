package learning

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pawlbot/pawl/policy"
)

// Posterior is a Beta distribution of an arm's next reward.
type Posterior struct {
	Mean   float64 `json:"mean"`
	Weight float64 `json:"weight"` // equivalent number of good-or-bad rewards
	N      int     `json:"n"`      // rewards in all contexts
	// Awaited is the additional weight of pending rewards.
	Awaited float64 `json:"awaited,omitempty"`
}

// Beta returns the distribution; chance is only for drawing.
func (p Posterior) Beta(chance rand.Source) distuv.Beta {
	return distuv.Beta{Alpha: p.Mean * p.Weight, Beta: (1 - p.Mean) * p.Weight, Src: chance}
}

// sharpness scales the variance for sampling: few attempts justify little exploration. Our choice: in the simulated
// worlds (80 attempts, two backends) 0.15 saves 67 %, 0.4 a little less, and 1 only 42 %.
const sharpness = 0.15

// sharp returns the distribution for sampling. Pending rewards narrow it as if known (Desautels and others, 2014, on
// batches).
func (p Posterior) sharp(chance rand.Source) distuv.Beta {
	p.Weight = (p.Weight+p.Awaited+1)/sharpness - 1
	return p.Beta(chance)
}

// Discount weighs a reward with k newer ones of its arm by Discount^k, so an arm remembers about 1/(1−Discount) = 100
// rewards (a requirement).
const Discount = 0.99

// changedWeight weighs rewards of the same backend with another model or effort (our choice).
const changedWeight = 0.2

// awaitedFor limits the wait for a reward: people mostly act within two weeks (our choice).
const awaitedFor = 14 * 24 * time.Hour

// Variances of an arm's mean reward, of what a shared repository, category or whole context adds, and of one reward.
// The standard deviations are 0.25, 0.1, 0.1, 0.05 and 0.35 (our choice).
const (
	armVariance      = 0.0625
	repoVariance     = 0.01
	categoryVariance = 0.01
	exactVariance    = 0.0025
	rewardVariance   = 0.12
)

// alike returns the covariance of an arm's worth in two contexts. Empty parts match nothing.
func alike(a, b policy.Context) float64 {
	v := armVariance
	shared := 0
	if a.Repo != "" && a.Repo == b.Repo {
		v += repoVariance
		shared++
	}
	if a.Category != "" && a.Category == b.Category {
		v += categoryVariance
		shared++
	}
	if shared == 2 && a.Size == b.Size {
		v += exactVariance
	}
	return v
}

type rewards struct{ sum, weight float64 }

// pooled returns the mean and variance of a Gaussian process over contexts: a context's own rewards count fully,
// others by their covariance. Without rewards it returns the prior.
func pooled(in map[policy.Context]rewards, prior float64, at policy.Context) (mean, variance float64) {
	contexts := slices.SortedFunc(maps.Keys(in), func(a, b policy.Context) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Size, b.Size))
	})
	n := len(contexts)
	if n == 0 {
		return prior, alike(at, at)
	}
	all, here, off := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i, a := range contexts {
		for j, b := range contexts[:i+1] {
			all.SetSym(i, j, alike(a, b))
		}
		r := in[a]
		all.SetSym(i, i, all.At(i, i)+rewardVariance/r.weight)
		here.SetVec(i, alike(a, at))
		off.SetVec(i, r.sum/r.weight-prior)
	}
	var factor mat.Cholesky
	var pull mat.VecDense
	factor.Factorize(all) // the variance added on the diagonal makes it positive definite
	if err := factor.SolveVecTo(&pull, here); err != nil {
		return prior, alike(at, at)
	}
	return prior + mat.Dot(&pull, off), max(0, alike(at, at)-mat.Dot(&pull, here))
}

func beta(mean, variance float64) Posterior {
	const edge, leastWeight = 0.05, 2.0 // keeps the distribution unimodal and the mean inside the interval
	mean = min(1-edge, max(edge, mean))
	return Posterior{Mean: mean, Weight: max(leastWeight, mean*(1-mean)/max(variance, 1e-6)-1)}
}

// The priors favour the configured order by one step per position. Two rewards outweigh a step (our choice).
const (
	firstPrior  = 0.55
	priorStep   = 0.03
	lowestPrior = 0.4
)

// Arms returns the options with their history in a context, in the configured order.
func (l Learned) Arms(c policy.Context, options []policy.Option) []Arm {
	arms := make([]Arm, len(options))
	for i, o := range options {
		arms[i] = l.arm(o, max(lowestPrior, firstPrior-priorStep*float64(i)), c)
	}
	return arms
}

func (l Learned) arm(o policy.Option, prior float64, c policy.Context) Arm {
	a, newer := Arm{Option: o}, 0
	come, all := map[policy.Context]rewards{}, map[policy.Context]rewards{} // without and with pending rewards
	for _, i := range slices.Backward(l.of[armKey{o.Backend, o.Escalated}]) {
		r := &l.rows[i]
		weight, same := 1.0, r.Model == o.Model && r.Effort == o.Effort
		if same {
			a.spent(r)
		} else {
			weight = changedWeight
		}
		switch {
		case r.learnt:
			weight *= math.Pow(Discount, float64(newer)) * r.weight
			newer++
			at := come[r.Context]
			come[r.Context] = rewards{at.sum + weight*r.reward, at.weight + weight}
			if same {
				a.Rewards++
			}
		case !r.awaited(l.now):
			continue
		case same:
			a.Awaited++
		}
		all[r.Context] = rewards{weight: all[r.Context].weight + weight}
	}
	a.Posterior = beta(pooled(come, prior, c))
	_, variance := pooled(all, prior, c)
	a.Posterior.Awaited = max(0, beta(a.Posterior.Mean, variance).Weight-a.Posterior.Weight)
	a.Posterior.N = a.Rewards
	return a
}

// awaited reports whether an attempt's reward may still come.
func (r *checkedRow) awaited(now time.Time) bool {
	return r.Facts.unrewarded() == "" && now.Sub(r.At) <= awaitedFor
}

// solved is the reward above which an attempt counts as solved. Failed checks and requested changes give less.
const solved = 0.5

func (a *Arm) spent(r *checkedRow) {
	if a.Chosen == "" { // newest first
		a.Chosen = r.Chosen
	}
	a.Attempts++
	a.Seconds += r.Seconds
	a.CostUSD += r.CostUSD
	if r.CostUSD > 0 {
		a.Priced++
	}
	if r.learnt && r.reward > solved {
		a.Solved++
	}
}

// armKey names a backend's arms: configured effort and rung 3's effort.
type armKey struct {
	backend   string
	escalated bool
}
