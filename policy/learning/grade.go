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

// grade is the grade without its parts. alone is the place of the source that decides alone, or -1, and weight that
// of the others together.
func (g *Graded) grade(set *signalSet, not *aside) (grade Grade, alone int, weight float64) {
	alone = -1
	sum := 0.0
	for p, source := range sources {
		switch {
		case !set[p].usable() || not[p] != "":
		case source.weight > 0:
			sum, weight = sum+source.weight*set[p].Value, weight+source.weight
		case alone < 0:
			alone = p
		}
	}
	switch no := g.Facts.unrewarded(); {
	case no != "":
		grade.Missing = no
	case alone >= 0:
		grade.Value, grade.Known, grade.By = set[alone].Value, true, sources[alone].name
	case weight > sources[JournalSource.place()].weight:
		grade.Value, grade.Known = sum/weight, true
	case weight > 0:
		grade.Missing = "there is only the agent's own word"
	default:
		grade.Missing = "no source gave a value that is believed"
	}
	return grade, alone, weight
}

func (g *Graded) explain(set *signalSet, not *aside) Grade {
	grade, alone, weight := g.grade(set, not)
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
