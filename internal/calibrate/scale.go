package calibrate

import (
	"cmp"
	"math"
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

func (c *counts) reset() {
	clear(c.same)
	clear(c.different)
	c.nSame, c.nDiff = 0, 0
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
