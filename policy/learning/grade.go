package learning

// signalSet holds the one signal of each source that counts, by its place; nil where it said nothing.
type signalSet [sourceCount]*Signal

// aside says of each source, by its place, why it is not believed; empty where it is.
type aside [sourceCount]string

// signals picks the signal of each source that counts: of people the one that decides, of others the newest, of
// two at once the later. So a second signal of a kind replaces, and never adds.
func (g *Graded) signals() signalSet {
	var set signalSet
	for i := range g.Signals {
		s := &g.Signals[i]
		switch p := s.Source.place(); {
		case p < 0:
		case p == 0 && set[0] == nil:
			set[0] = people(g.Signals)
		case p == 0:
		case set[p] == nil, !s.At.Before(set[p].At):
			set[p] = s
		}
	}
	return set
}

// value is the grade without its explanation; false when there is none.
func (g *Graded) value(set *signalSet, not *aside) (float64, bool) {
	if g.Facts.unrewarded() != "" {
		return 0, false
	}
	if p := set.alone(not); p >= 0 {
		return set[p].Value, true
	}
	sum, weight := set.mean(not)
	if weight <= sources[JournalSource.place()].weight {
		return 0, false
	}
	return sum / weight, true
}

// alone is the place of the source that decides alone, or -1.
func (set *signalSet) alone(not *aside) int {
	for p := range 2 { // people, severity
		if set[p].usable() && not[p] == "" {
			return p
		}
	}
	return -1
}

// mean adds up what the sources say that do not decide alone.
func (set *signalSet) mean(not *aside) (sum, weight float64) {
	for p := 2; p < sourceCount; p++ {
		if set[p].usable() && not[p] == "" {
			w := sources[p].weight
			sum, weight = sum+w*set[p].Value, weight+w
		}
	}
	return sum, weight
}

// explain is value with its parts and reasons.
func (g *Graded) explain(set *signalSet, not *aside) Grade {
	var grade Grade
	grade.Value, grade.Known = g.value(set, not)
	alone := set.alone(not)
	_, weight := set.mean(not)
	switch no := g.Facts.unrewarded(); {
	case grade.Known && alone >= 0:
		grade.By = sources[alone].name
	case grade.Known:
	case no != "":
		grade.Missing = no
	case weight > 0:
		grade.Missing = "there is only the agent's own word"
	default:
		grade.Missing = "no source gave a value that is believed"
	}
	for p, source := range sources {
		s := set[p]
		part := GradePart{Source: source.name}
		if s != nil {
			part.Value = s.Value
		}
		switch {
		case !s.usable():
			part.Value, part.Why = 0, s.why()
		case not[p] != "":
			part.Why = "set aside: " + not[p]
		case alone >= 0 && alone != p:
			part.Why = string(sources[alone].name) + " decides"
		case !grade.Known:
			part.Why = grade.Missing
		case alone == p:
			part.Share, part.Why = 1, s.Detail
		default:
			part.Share, part.Why = source.weight/weight, s.Detail
		}
		grade.Parts = append(grade.Parts, part)
	}
	return grade
}
