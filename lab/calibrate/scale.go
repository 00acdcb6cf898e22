package main

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

type scored struct {
	group string
	same  bool
	score float64
}

// scale holds one view's pairs by task and level. The levels are the distinct scores from high to low; no other
// thresholds need to be compared.
type scale struct {
	cuts  []float64
	tasks [][]cell
}

type cell struct {
	level int
	same  bool
}

// newScale sorts tasks by name, so the order of input does not matter.
func newScale(pairs []scored) scale {
	var s scale
	for _, p := range pairs {
		s.cuts = append(s.cuts, p.score)
	}
	slices.SortFunc(s.cuts, func(a, b float64) int { return cmp.Compare(b, a) })
	s.cuts = slices.Compact(s.cuts)
	tasks := map[string][]cell{}
	for _, p := range pairs {
		tasks[p.group] = append(tasks[p.group], cell{s.level(p.score), p.same})
	}
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		s.tasks = append(s.tasks, tasks[name])
	}
	return s
}

// level returns the last level that a threshold calls similar; −1 if it calls no level similar.
func (s scale) level(threshold float64) int {
	n, found := slices.BinarySearchFunc(s.cuts, threshold, func(a, b float64) int { return cmp.Compare(b, a) })
	if !found {
		n--
	}
	return n
}

// tally counts the pairs of one label by level, and in total.
type tally struct {
	at []int
	n  int
}

// rate returns the share of pairs at the levels up to last; NaN without pairs.
func (t tally) rate(last int) float64 {
	hits := 0
	for _, n := range t.at[:last+1] {
		hits += n
	}
	return float64(hits) / float64(t.n)
}

type counts struct{ same, different tally }

func (s scale) none() counts {
	return counts{tally{at: make([]int, len(s.cuts))}, tally{at: make([]int, len(s.cuts))}}
}

func (s scale) count() counts {
	c := s.none()
	for _, task := range s.tasks {
		c.add(task, 1)
	}
	return c
}

// add counts a task's pairs n times; a negative n subtracts them.
func (c *counts) add(task []cell, n int) {
	for _, p := range task {
		of := &c.different
		if p.same {
			of = &c.same
		}
		of.at[p.level] += n
		of.n += n
	}
}

// auc returns the probability that a same pair scores higher than a different one, ties counting half (Mann and
// Whitney); NaN if a label is missing.
func (c counts) auc() float64 {
	halves, below := 0, c.different.n
	for i, same := range c.same.at {
		below -= c.different.at[i]
		halves += same * (2*below + c.different.at[i])
	}
	return float64(halves) / float64(2*c.same.n*c.different.n)
}

// choose returns the level that has the highest true positive rate with a false positive rate of at most MaxFPR. Among
// equal rates it takes the highest threshold. It returns −1 if there is no such level.
func (c counts) choose() int {
	best, most := -1, 0
	if c.different.n == 0 {
		return best
	}
	tp, fp := 0, 0
	for i := range c.same.at {
		tp += c.same.at[i]
		fp += c.different.at[i]
		if float64(fp) > MaxFPR*float64(c.different.n) {
			break
		}
		if tp > most {
			best, most = i, tp
		}
	}
	return best
}

// recommended returns the threshold that the rule chooses; nil if it chooses none.
func (s scale) recommended(all counts, o Options) *Cut {
	chosen := all.choose()
	if chosen < 0 {
		return nil
	}
	cut := s.cut(settable(Number(s.cuts[chosen])), chosen, o)
	in := s.interval(o, func(c counts) float64 {
		if level := c.choose(); level >= 0 {
			return s.cuts[level]
		}
		return math.NaN()
	})
	cut.Threshold95 = Range{settable(in[0]), settable(in[1])}
	return &cut
}

// cut describes a threshold that calls the levels up to last similar.
func (s scale) cut(threshold Number, last int, o Options) Cut {
	all := s.count()
	tpr, fpr := all.same.rate(last), all.different.rate(last)
	return Cut{
		Threshold: threshold, Threshold95: unknown(),
		TPR:   Number(tpr),
		TPR95: uncertain(s.interval(o, func(c counts) float64 { return c.same.rate(last) }), tpr, s.with(true)),
		FPR:   Number(fpr),
		FPR95: uncertain(s.interval(o, func(c counts) float64 { return c.different.rate(last) }), fpr, s.with(false)),
	}
}

func (s scale) with(same bool) int {
	n := 0
	for _, task := range s.tasks {
		if slices.ContainsFunc(task, func(c cell) bool { return c.same == same }) {
			n++
		}
	}
	return n
}

// roc returns the curve's corners.
func (s scale) roc(all counts) []Point {
	points := []Point{}
	if all.same.n == 0 || all.different.n == 0 {
		return points
	}
	tp, fp := 0, 0
	for i, cut := range s.cuts {
		tp += all.same.at[i]
		fp += all.different.at[i]
		last := i == len(s.cuts)-1
		if !last && (all.same.at[i] == 0 && all.same.at[i+1] == 0 || all.different.at[i] == 0 && all.different.at[i+1] == 0) {
			continue
		}
		points = append(points, Point{Number(cut), Number(float64(tp) / float64(all.same.n)), Number(float64(fp) / float64(all.different.n))})
	}
	return points
}

// heldOut chooses the threshold for each task from the other tasks, and compares it with the level in use.
func (s scale) heldOut(inUse int, o Options) HeldOut {
	// The levels of unseen are bits: whether the rule, and whether the threshold in use, call a pair similar.
	const rule, use = 1, 2
	unseen := scale{cuts: make([]float64, rule+use+1), tasks: make([][]cell, len(s.tasks))}
	all := s.count()
	for i, task := range s.tasks {
		all.add(task, -1)
		chosen := all.choose()
		all.add(task, 1)
		for _, p := range task {
			by := 0
			if p.level <= chosen {
				by += rule
			}
			if p.level <= inUse {
				by += use
			}
			unseen.tasks[i] = append(unseen.tasks[i], cell{by, p.same})
		}
	}
	rate := func(t tally) Number { return Number(float64(t.at[rule]+t.at[rule+use]) / float64(t.n)) }
	more := func(t tally) float64 { return float64(t.at[rule]-t.at[use]) / float64(t.n) }
	gain := func(c counts) float64 { return more(c.same) - more(c.different) }
	all = unseen.count()
	v := HeldOut{TPR: rate(all.same), FPR: rate(all.different), Gain: Number(gain(all)), Gain95: unseen.interval(o, gain)}
	v.Better = v.Gain95[0] > 0 && s.with(true) >= minTasks && s.with(false) >= minTasks
	return v
}

// confidence is the level of all intervals.
const confidence = 0.95

// interval returns a number's bootstrap interval over tasks drawn with replacement. Equal seeds give equal draws.
func (s scale) interval(o Options, number func(counts) float64) Range {
	chance := rand.New(rand.NewPCG(o.Seed, 0))
	came := make([]float64, o.Resamples)
	for i := range came {
		c := s.none()
		for range s.tasks {
			c.add(s.tasks[chance.IntN(len(s.tasks))], 1)
		}
		came[i] = number(c)
	}
	return middle(came)
}

// middle returns the middle 95 % of the known values.
func middle(came []float64) Range {
	came = slices.DeleteFunc(came, math.IsNaN)
	if len(came) == 0 {
		return unknown()
	}
	slices.Sort(came)
	return Range{Number(quantile(came, (1-confidence)/2)), Number(quantile(came, (1+confidence)/2))}
}

func unknown() Range { return Range{Number(math.NaN()), Number(math.NaN())} }

// uncertain returns a rate's interval over tasks. If the rate is 0 or 1, all resamples agree. It then returns the exact
// binomial interval (Clopper and Pearson) with tasks as trials.
func uncertain(r Range, rate float64, tasks int) Range {
	beyond := 1 - math.Pow((1-confidence)/2, 1/float64(tasks))
	switch {
	case !r[0].Known():
	case rate == 0:
		r[1] = Number(beyond)
	case rate == 1:
		r[0] = Number(1 - beyond)
	}
	return r
}

// quantile interpolates between the two nearest sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
