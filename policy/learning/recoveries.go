package learning

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Fired counts a recovery's uses and successes, with their cost. It leaves out unneeded uses.
type Fired struct {
	Rung      int `json:"rung"`
	Times     int `json:"times"`
	Recovered int `json:"recovered"`
	// Counted of Times have known tokens; Priced, a known cost. The sums cover only those.
	Counted int      `json:"counted,omitempty"`
	Tokens  int64    `json:"tokens,omitempty"`
	Priced  int      `json:"priced,omitempty"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
	MS      int64    `json:"ms,omitempty"` // 0 if unknown
}

func FiredIn(rungs []policy.Rung) (all []Fired) {
	for _, r := range rungs {
		f := Fired{Rung: r.Rung, Times: max(1, r.Times), Recovered: r.Helped, Tokens: r.Tokens, CostUSD: r.CostUSD, MS: r.MS}
		if r.Recovered {
			f.Recovered = f.Times
		}
		if r.Tokens > 0 {
			f.Counted = f.Times
		}
		if r.CostUSD != nil {
			f.Priced = f.Times
		}
		if !r.Unneeded {
			all = append(all, f)
		}
	}
	return all
}

func (f Fired) plus(more Fired) Fired {
	f.Times += more.Times
	f.Recovered += more.Recovered
	f.Counted += more.Counted
	f.Tokens += more.Tokens
	f.Priced += more.Priced
	f.MS += more.MS
	if more.CostUSD == nil {
		return f
	}
	sum := *more.CostUSD
	if f.CostUSD != nil {
		sum += *f.CostUSD
	}
	f.CostUSD = &sum
	return f
}

// Took returns the recoveries' duration; 0 if unknown.
func (f Fired) Took() time.Duration { return time.Duration(f.MS) * time.Millisecond }

func noneFired() (all []Fired) {
	for rung := policy.RungAnswer; rung <= policy.RungTests; rung++ {
		all = append(all, Fired{Rung: rung})
	}
	return all
}

// FirstTry reports whether a run's first attempt passed its verify commands without a recovery. It returns nil if the
// backend did not cause the attempt's end, or a command cannot work.
func (f AttemptFacts) FirstTry(r policy.Receipt) *bool {
	if f.unrewarded() != "" || r.Verification() == policy.Broken {
		return nil
	}
	passed := r.Outcome.Work() && r.CommandsPassed()
	passed = passed && len(FiredIn(r.Rungs)) == 0
	return &passed
}

// FirstTries counts a backend's runs, and those whose first attempt passed its verify commands without a recovery.
type FirstTries struct {
	Backend string `json:"backend"`
	Runs    int    `json:"runs"`
	Passed  int    `json:"passed"`
}

// Share returns Passed per run, 0 to 1.
func (t FirstTries) Share() float64 { return float64(t.Passed) / float64(max(1, t.Runs)) }

// FirstTries returns the counts of the last eight weeks by backend name, for backends with a counted run.
func (l Learned) FirstTries() []FirstTries {
	all := []FirstTries{}
	for _, r := range l.shown() {
		if r.FirstTry == nil {
			continue
		}
		at, known := slices.BinarySearchFunc(all, r.Backend, func(t FirstTries, name string) int { return cmp.Compare(t.Backend, name) })
		if !known {
			all = slices.Insert(all, at, FirstTries{Backend: r.Backend})
		}
		all[at].Runs++
		if *r.FirstTry {
			all[at].Passed++
		}
	}
	return all
}

func (l Learned) shown() (rows []*checkedRow) {
	from := l.now.Add(-shownWeeks * week)
	for i := range l.rows {
		if l.rows[i].At.After(from) {
			rows = append(rows, &l.rows[i])
		}
	}
	return rows
}

// Rungs sums the recoveries of weeks: all four, in order.
func Rungs(weeks []Week) []Fired {
	all := noneFired()
	for _, w := range weeks {
		for i, f := range w.Rungs {
			all[i] = all[i].plus(f)
		}
	}
	return all
}

// Week counts the recoveries of seven days.
type Week struct {
	From     time.Time `json:"from"`
	Attempts int       `json:"attempts"` // attempts to change files that ended by themselves
	Rungs    []Fired   `json:"rungs"`    // all four, in order
	Arms     []Earned  `json:"arms"`     // rewarded arms, by name
}

// Earned averages the rewards of one backend.
type Earned struct {
	Backend string  `json:"backend"`
	Rewards int     `json:"rewards"`
	Mean    float64 `json:"mean"`
}

// shownWeeks includes the current week.
const (
	shownWeeks = 8
	week       = 7 * 24 * time.Hour
)

func (w *Week) count(r *checkedRow) {
	w.Attempts++
	if r.learnt {
		w.earn(r.Backend, r.reward)
	}
	for _, f := range r.Fired {
		if f.Rung < policy.RungAnswer || f.Rung > policy.RungTests {
			continue
		}
		w.Rungs[f.Rung-1] = w.Rungs[f.Rung-1].plus(f)
	}
}

// Weeks returns up to eight weeks, newest first, back to the oldest with an attempt.
func (l Learned) Weeks() (all []Week) {
	rows := l.shown()
	for n := range shownWeeks {
		w := Week{From: l.now.Add(-time.Duration(n+1) * week), Rungs: noneFired()}
		for _, r := range rows {
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

const similarityBins = 20

// Similarities counts, in twentieths, retries by their similarity to the previous attempt; empty for none.
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
