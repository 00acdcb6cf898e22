package learning

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Fired is how often a recovery fired and how often it helped, what was not needed left out.
type Fired struct {
	Rung      int `json:"rung"`
	Times     int `json:"times"`
	Recovered int `json:"recovered"`
}

// FiredIn are the recoveries of an attempt.
func FiredIn(rungs []policy.Rung) (all []Fired) {
	for _, r := range rungs {
		f := Fired{Rung: r.Rung, Times: max(1, r.Times), Recovered: r.Helped}
		if r.Recovered {
			f.Recovered = f.Times
		}
		if !r.Unneeded {
			all = append(all, f)
		}
	}
	return all
}

// Week is what the recoveries of seven days came to.
type Week struct {
	From     time.Time `json:"from"`
	Attempts int       `json:"attempts"` // at changes, that had an agent and came to their end
	Rungs    []Fired   `json:"rungs"`    // all four, in order
	Arms     []Earned  `json:"arms"`     // by name, those that were rewarded
}

// Earned is what the attempts of one backend were worth.
type Earned struct {
	Backend string  `json:"backend"`
	Rewards int     `json:"rewards"`
	Mean    float64 `json:"mean"`
}

// shownWeeks is how many weeks are shown, the one that ends now included.
const shownWeeks = 8

// count adds an attempt to its week.
func (w *Week) count(r *checkedRow) {
	w.Attempts++
	if r.learnt {
		w.earn(r.Backend, r.reward)
	}
	for _, f := range r.Fired {
		if f.Rung < policy.RungAnswer || f.Rung > policy.RungTests {
			continue
		}
		w.Rungs[f.Rung-1].Times += f.Times
		w.Rungs[f.Rung-1].Recovered += f.Recovered
	}
}

// Weeks are the last eight, the newest first, up to the oldest that had an attempt.
func (l Learned) Weeks() (all []Week) {
	const week = 7 * 24 * time.Hour
	for n := range shownWeeks {
		w := Week{From: l.now.Add(-time.Duration(n+1) * week)}
		for rung := policy.RungAnswer; rung <= policy.RungTests; rung++ {
			w.Rungs = append(w.Rungs, Fired{Rung: rung})
		}
		for i := range l.rows {
			r := &l.rows[i]
			if r.At.After(w.From) && !r.At.After(w.From.Add(week)) {
				w.count(r)
			}
		}
		all = append(all, w)
	}
	for len(all) > 0 && all[len(all)-1].Attempts == 0 {
		all = all[:len(all)-1]
	}
	return all
}

func (w *Week) earn(backend string, reward float64) {
	at, known := slices.BinarySearchFunc(w.Arms, backend, func(e Earned, name string) int { return cmp.Compare(e.Backend, name) })
	if !known {
		w.Arms = slices.Insert(w.Arms, at, Earned{Backend: backend})
	}
	e := &w.Arms[at]
	e.Rewards++
	e.Mean += (reward - e.Mean) / float64(e.Rewards)
}

// similarityBins is into how many equal parts the similarities from 0 to 1 are counted.
const similarityBins = 20

// Similarities counts by twentieths how similar retries were to the attempt before them in the same run; empty without one.
func (l Learned) Similarities() []int {
	var bins []int
	for i := range l.rows {
		if s := l.rows[i].Similarity; s != nil {
			if bins == nil {
				bins = make([]int, similarityBins)
			}
			bins[min(similarityBins-1, max(0, int(*s*similarityBins)))]++
		}
	}
	return bins
}
