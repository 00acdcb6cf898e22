package calibrate

import (
	"math"
	"slices"
)

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
