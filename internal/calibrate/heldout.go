package calibrate

// hits are the pairs of some tasks, and those called similar by the rule and
// by the threshold in use.
type hits struct {
	same, different       int
	ruleTrue, ruleFalse   int
	inUseTrue, inUseFalse int
}

// add counts n times the hits of another.
func (h *hits) add(o hits, n int) {
	h.same += n * o.same
	h.different += n * o.different
	h.ruleTrue += n * o.ruleTrue
	h.ruleFalse += n * o.ruleFalse
	h.inUseTrue += n * o.inUseTrue
	h.inUseFalse += n * o.inUseFalse
}

// gain is by how much the rule's TPR − FPR is higher; NaN without a label.
func (h hits) gain() float64 {
	return float64(h.ruleTrue-h.inUseTrue)/float64(h.same) - float64(h.ruleFalse-h.inUseFalse)/float64(h.different)
}

// heldOut chooses for each task the cut on the other tasks, and compares what
// these cuts do on the tasks that they have not seen with what the level in use
// does.
func (s scale) heldOut(inUse int, o Options) HeldOut {
	all := s.count()
	tasks := make([]hits, len(s.tasks))
	var sum hits
	for i, task := range s.tasks {
		all.add(task, -1)
		chosen := all.choose()
		all.add(task, 1)
		tasks[i] = hit(task, chosen, inUse)
		sum.add(tasks[i], 1)
	}
	var gains spread
	s.bootstrap(o, func(drawn []int, _ *counts) {
		var h hits
		for i, n := range drawn {
			h.add(tasks[i], n)
		}
		gains.add(h.gain())
	})
	v := HeldOut{
		TPR:  Number(float64(sum.ruleTrue) / float64(sum.same)),
		FPR:  Number(float64(sum.ruleFalse) / float64(sum.different)),
		Gain: Number(sum.gain()), Gain95: gains.interval(),
	}
	v.Better = v.Gain95[0] > 0 && s.with(true) >= minTasks && s.with(false) >= minTasks
	return v
}

// hit judges the pairs of one task.
func hit(task []cell, chosen, inUse int) hits {
	var h hits
	for _, p := range task {
		one := hits{different: 1, ruleFalse: within(p.level, chosen), inUseFalse: within(p.level, inUse)}
		if p.same {
			one = hits{same: 1, ruleTrue: within(p.level, chosen), inUseTrue: within(p.level, inUse)}
		}
		h.add(one, 1)
	}
	return h
}

// within is 1 where a level is called similar, else 0.
func within(level, last int) int {
	if level <= last {
		return 1
	}
	return 0
}
