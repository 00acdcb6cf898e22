package calibrate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// scored is one pair measured.
type scored struct {
	group string
	same  bool
	score float64
}

// scale holds the measured pairs of one view: the distinct scores from high to
// low, which are all the thresholds that make a difference, and for each task
// its pairs, each at the level of its score.
type scale struct {
	cuts  []float64
	tasks [][]cell
}

type cell struct {
	level int
	same  bool
}

// newScale sorts tasks by name, so that the order of the input changes nothing.
func newScale(pairs []scored) scale {
	var s scale
	var names []string
	for _, p := range pairs {
		s.cuts = append(s.cuts, p.score)
		names = append(names, p.group)
	}
	slices.SortFunc(s.cuts, func(a, b float64) int { return cmp.Compare(b, a) })
	s.cuts = slices.Compact(s.cuts)
	slices.Sort(names)
	names = slices.Compact(names)
	s.tasks = make([][]cell, len(names))
	for _, p := range pairs {
		task, _ := slices.BinarySearch(names, p.group)
		level, _ := slices.BinarySearchFunc(s.cuts, p.score, func(a, b float64) int { return cmp.Compare(b, a) })
		s.tasks[task] = append(s.tasks[task], cell{level, p.same})
	}
	return s
}

// level is the last level that a threshold calls similar; −1 for none.
func (s scale) level(threshold float64) int {
	n := 0
	for n < len(s.cuts) && s.cuts[n] >= threshold {
		n++
	}
	return n - 1
}

// counts are the pairs at each level, by label.
type counts struct {
	same, different []int
	nSame, nDiff    int
}

func (s scale) none() counts {
	return counts{same: make([]int, len(s.cuts)), different: make([]int, len(s.cuts))}
}

func (s scale) count() counts {
	c := s.none()
	for _, task := range s.tasks {
		c.add(task, 1)
	}
	return c
}

// add counts the pairs of a task, n times; a negative n takes them away.
func (c *counts) add(task []cell, n int) {
	for _, p := range task {
		if p.same {
			c.same[p.level] += n
			c.nSame += n
		} else {
			c.different[p.level] += n
			c.nDiff += n
		}
	}
}

// auc is the probability that a pair labelled same has a higher score than one
// labelled different, ties counting half (Mann and Whitney). It is NaN where a
// label is missing.
func (c *counts) auc() float64 {
	if c.nSame == 0 || c.nDiff == 0 {
		return math.NaN()
	}
	halves, below := 0, c.nDiff
	for i, same := range c.same {
		below -= c.different[i]
		halves += same * (2*below + c.different[i])
	}
	return float64(halves) / float64(2*c.nSame*c.nDiff)
}

// rates are the true and the false positive rate when the levels up to last
// are called similar; NaN where there is no pair to have one.
func (c *counts) rates(last int) (tpr, fpr float64) {
	tp, fp := 0, 0
	for i := range last + 1 {
		tp += c.same[i]
		fp += c.different[i]
	}
	return float64(tp) / float64(c.nSame), float64(fp) / float64(c.nDiff)
}

// choose is the rule of recommendation: the level with the highest true
// positive rate among those with a false positive rate of at most MaxFPR, and
// of equals the one with the highest threshold. It is −1 where no level finds
// anything at that price.
func (c *counts) choose() int {
	best, most := -1, 0
	if c.nDiff == 0 {
		return best
	}
	tp, fp := 0, 0
	for i := range c.same {
		tp += c.same[i]
		fp += c.different[i]
		if float64(fp) > MaxFPR*float64(c.nDiff) {
			break
		}
		if tp > most {
			best, most = i, tp
		}
	}
	return best
}

// curve is what a measure of similarity can do, with the cut that the rule
// chooses.
func (s scale) curve(o Options) Curve {
	all := s.count()
	chosen := all.choose()
	var auc, threshold spread
	s.bootstrap(o, func(_ []int, c *counts) {
		auc.add(c.auc())
		if level := c.choose(); level >= 0 {
			threshold.add(s.cuts[level])
		}
	})
	v := Curve{AUC: Number(all.auc()), AUC95: auc.interval(), ROC: s.roc(all)}
	if !v.AUC.Known() {
		v.AUC95 = unknown()
	} else if chosen >= 0 {
		cut := s.cut(chosen, o)
		cut.Threshold, cut.Threshold95 = Number(s.cuts[chosen]), threshold.interval()
		v.Recommended = &cut
	}
	return v
}

// cut is what calling the levels up to last similar does.
func (s scale) cut(last int, o Options) Cut {
	all := s.count()
	var tprs, fprs spread
	s.bootstrap(o, func(_ []int, c *counts) {
		tpr, fpr := c.rates(last)
		tprs.add(tpr)
		fprs.add(fpr)
	})
	tpr, fpr := all.rates(last)
	return Cut{
		Threshold: Number(math.NaN()), Threshold95: unknown(),
		TPR: Number(tpr), TPR95: tprs.share(tpr, s.with(true)),
		FPR: Number(fpr), FPR95: fprs.share(fpr, s.with(false)),
	}
}

// with is the number of tasks that have a pair with the label.
func (s scale) with(same bool) int {
	n := 0
	for _, task := range s.tasks {
		if slices.ContainsFunc(task, func(c cell) bool { return c.same == same }) {
			n++
		}
	}
	return n
}

// roc lists the corners of the curve; what lies on a straight line between two
// of them is left out.
func (s scale) roc(all counts) []Point {
	points := []Point{}
	if all.nSame == 0 || all.nDiff == 0 {
		return points
	}
	tp, fp := 0, 0
	for i, cut := range s.cuts {
		tp += all.same[i]
		fp += all.different[i]
		last := i == len(s.cuts)-1
		if !last && (all.same[i] == 0 && all.same[i+1] == 0 || all.different[i] == 0 && all.different[i+1] == 0) {
			continue
		}
		points = append(points, Point{Number(cut), Number(float64(tp) / float64(all.nSame)), Number(float64(fp) / float64(all.nDiff))})
	}
	return points
}

// hits are the pairs with a label in some tasks, and those of them called similar by
// the rule and by the threshold in use.
type hits struct{ pairs, rule, inUse int }

// add counts n times the hits of another.
func (h *hits) add(o hits, n int) {
	h.pairs += n * o.pairs
	h.rule += n * o.rule
	h.inUse += n * o.inUse
}

// rate is the share that the rule calls similar, gain by how much that is more than
// with the threshold in use; both are NaN without a pair.
func (h hits) rate() float64 { return float64(h.rule) / float64(h.pairs) }

func (h hits) gain() float64 { return float64(h.rule-h.inUse) / float64(h.pairs) }

// heldOut chooses for each task the cut on the other tasks, and compares what
// these cuts do on the tasks that they have not seen with what the level in use
// does.
func (s scale) heldOut(inUse int, o Options) HeldOut {
	all := s.count()
	same, different := make([]hits, len(s.tasks)), make([]hits, len(s.tasks))
	for i, task := range s.tasks {
		all.add(task, -1)
		chosen := all.choose()
		all.add(task, 1)
		for _, p := range task {
			h := &different[i]
			if p.same {
				h = &same[i]
			}
			h.pairs++
			if p.level <= chosen {
				h.rule++
			}
			if p.level <= inUse {
				h.inUse++
			}
		}
	}
	sum := func(times func(i int) int) (s, d hits) {
		for i := range same {
			s.add(same[i], times(i))
			d.add(different[i], times(i))
		}
		return s, d
	}
	var gains spread
	s.bootstrap(o, func(drawn []int, _ *counts) {
		same, different := sum(func(i int) int { return drawn[i] })
		gains.add(same.gain() - different.gain())
	})
	found, alarms := sum(func(int) int { return 1 })
	v := HeldOut{
		TPR: Number(found.rate()), FPR: Number(alarms.rate()),
		Gain: Number(found.gain() - alarms.gain()), Gain95: gains.interval(),
	}
	v.Better = v.Gain95[0] > 0 && s.with(true) >= minTasks && s.with(false) >= minTasks
	return v
}

// confidence is the share of resamples that an interval holds.
const confidence = 0.95

// bootstrap draws as many tasks as there are, with replacement, and shows visit
// how often each was drawn and what pairs that makes. It does so for every
// resample; the same seed gives the same draws. visit keeps neither argument.
func (s scale) bootstrap(o Options, visit func(drawn []int, c *counts)) {
	chance := rand.New(rand.NewPCG(o.Seed, 0))
	drawn := make([]int, len(s.tasks))
	for range o.Resamples {
		clear(drawn)
		for range s.tasks {
			drawn[chance.IntN(len(drawn))]++
		}
		c := s.none()
		for i, n := range drawn {
			c.add(s.tasks[i], n)
		}
		visit(drawn, &c)
	}
}

// spread collects what a number came to in the resamples.
type spread []float64

// add leaves out a resample in which the number does not exist.
func (s *spread) add(v float64) {
	if !math.IsNaN(v) {
		*s = append(*s, v)
	}
}

// interval holds the middle 95 % of the resamples.
func (s spread) interval() Range {
	if len(s) == 0 {
		return unknown()
	}
	slices.Sort(s)
	return Range{Number(quantile(s, (1-confidence)/2)), Number(quantile(s, (1+confidence)/2))}
}

// unknown is the interval of a number that does not exist.
func unknown() Range { return Range{Number(math.NaN()), Number(math.NaN())} }

// share is the interval of a rate over tasks. When none or all of the pairs are
// hit, every resample agrees and seems certain; then the interval is the exact
// binomial one (Clopper and Pearson) with a task as one trial.
func (s spread) share(rate float64, tasks int) Range {
	r := s.interval()
	if !r[0].Known() {
		return r
	}
	beyond := 1 - math.Pow((1-confidence)/2, 1/float64(tasks))
	switch rate {
	case 0:
		r[1] = Number(beyond)
	case 1:
		r[0] = Number(1 - beyond)
	}
	return r
}

// quantile interpolates between the two nearest of the sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
