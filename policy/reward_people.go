package policy

import "time"

// PeopleKind is what people did with the work of an attempt.
type PeopleKind string

// What people do with the work of an attempt.
const (
	Merged           PeopleKind = "merged"
	ClosedUnmerged   PeopleKind = "closed_unmerged"
	Reverted         PeopleKind = "reverted"
	Approved         PeopleKind = "approved"
	ChangesRequested PeopleKind = "changes_requested"
)

// Value is the grade that the event gives; false for a word that is none. The
// order is that of what people think of the work; the numbers are our choice: a
// merge is the best that can happen, a revert the worst, and a pull request is
// sometimes closed for reasons that have nothing to do with it.
func (k PeopleKind) Value() (float64, bool) {
	switch k {
	case Merged:
		return 1, true
	case Approved:
		return 0.9, true
	case ChangesRequested:
		return 0.3, true
	case ClosedUnmerged:
		return 0.1, true
	case Reverted:
		return 0, true
	}
	return 0, false
}

// PeopleSignal is the signal of what somebody did with the work; by is the login.
func PeopleSignal(kind PeopleKind, by string, at time.Time) Signal {
	s := Signal{Source: PeopleSource, Kind: kind, At: at, Detail: string(kind)}
	if by != "" {
		s.Detail += " by " + by
	}
	s.Value, s.Known = kind.Value()
	if !s.Known {
		s.Missing, s.Detail = "people did nothing that grades", ""
	}
	return s
}

// people gives the signal of people that decides; nil when there is none. An end
// of the pull request stands above reviews. Of each kind of end the first
// counts, so a merge that is told twice changes nothing, and of those the newest
// decides, so a revert undoes a merge. Of reviews the newest decides.
func people(signals []Signal) *Signal {
	var first [3]*Signal // of each kind of end
	var review *Signal
	for i := range signals {
		s := &signals[i]
		if s.Source != PeopleSource || !s.usable() {
			continue
		}
		switch s.Kind {
		case Merged:
			first[0] = earlier(s, first[0])
		case ClosedUnmerged:
			first[1] = earlier(s, first[1])
		case Reverted:
			first[2] = earlier(s, first[2])
		default:
			review = newer(s, review)
		}
	}
	var end *Signal
	for _, s := range first {
		if s != nil {
			end = newer(s, end)
		}
	}
	if end != nil {
		return end
	}
	return review
}

func earlier(s, than *Signal) *Signal {
	if than == nil || s.At.Before(than.At) {
		return s
	}
	return than
}

// newer gives the newer of two signals. A tie goes to the lower value, so that
// the order of the list does not matter.
func newer(s, than *Signal) *Signal {
	switch {
	case than == nil, s.At.After(than.At), s.At.Equal(than.At) && s.Value < than.Value:
		return s
	}
	return than
}
