package forge

import (
	"slices"
	"time"
)

// Tally counts what began within one span of time: the unix second at which the
// span begins, and how much. A list of them is in order of time.
type Tally [2]int64

// window is a limit on what may happen within any stretch of time of a length,
// counted in spans of a width. An entry leaves the window its whole width and
// the skew late, so that no stretch by GitHub's clock holds more than is
// allowed.
type window struct {
	width  time.Duration // whole seconds
	length time.Duration
	most   int
}

// leaves is when an entry no longer counts.
func (w window) leaves(t Tally) time.Time {
	return time.Unix(t[0], 0).Add(w.width + w.length + clockSkew)
}

// free returns the earliest time, from at on, at which n more fit. Entries
// later than at are counted, too, so what is booked ahead keeps its place.
func (w window) free(list []Tally, at time.Time, n int) time.Time {
	over := int64(n - w.most)
	for _, t := range list {
		over += t[1]
	}
	for _, t := range list {
		if over <= 0 {
			break
		}
		over -= t[1]
		at = later(at, w.leaves(t))
	}
	return at
}

// add returns the list with n more at a time. The list itself stays.
func (w window) add(list []Tally, at time.Time, n int) []Tally {
	begin := at.Unix() - at.Unix()%int64(w.width/time.Second)
	i := len(list)
	for i > 0 && list[i-1][0] > begin {
		i--
	}
	if i > 0 && list[i-1][0] == begin {
		list = slices.Clone(list)
		list[i-1][1] += int64(n)
		return list
	}
	return slices.Insert(slices.Clip(list), i, Tally{begin, int64(n)})
}

// settle returns the list without what has left the window. What lies beyond
// latest, because a clock was wrong, counts as if it happened now.
func (w window) settle(list []Tally, now, latest time.Time) []Tally {
	first := 0
	for first < len(list) && !w.leaves(list[first]).After(now) {
		first++
	}
	list = list[first:]
	strange := 0
	end := len(list)
	for end > 0 && list[end-1][0] > latest.Unix() {
		end--
		strange += int(list[end][1])
	}
	list = list[:end:end]
	if strange > 0 {
		list = w.add(list, now, strange)
	}
	return list
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
