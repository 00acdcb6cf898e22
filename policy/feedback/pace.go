package feedback

import (
	"math"
	"slices"
	"time"
)

const (
	// inARow is how many remarks tell a program by when they come.
	inARow = 6
	// even is how far a gap between two of them may be from a whole multiple of the
	// smallest one, in parts of that: what looks every five minutes whether it has
	// something to say says it after five, ten or fifteen. GitHub tells whole seconds,
	// in which small gaps are multiples by chance: those up to gross must be equal.
	even, gross = 0.02, 30
	// quick is within which time of an attempt's end nobody has read what was done and
	// answered it, time and again. It holds the delivery by GitHub as well.
	quick = 10 * time.Second
)

// Moment is when somebody asked for something, and how long that was after the end of the
// last attempt; negative before the first and while one ran.
type Moment struct {
	At    time.Time
	After time.Duration
	Seqs  []int64 // the events that hold what was said then
}

// Mechanical are the events of what somebody said, oldest first, at a program's pace: at
// even intervals, or each time within seconds of an attempt's end.
func Mechanical(said []Moment) (seqs []int64) {
	slow := func(m Moment) bool { return m.After < 0 || m.After > quick }
	for n := inARow; n <= len(said); n++ {
		if row := said[n-inARow : n]; evenly(row) || !slices.ContainsFunc(row, slow) {
			for _, m := range row {
				seqs = append(seqs, m.Seqs...)
			}
		}
	}
	return seqs
}

// evenly reports whether all gaps are equal, or whole multiples of the smallest.
func evenly(row []Moment) bool {
	var gaps []float64
	for i := range row[1:] {
		gaps = append(gaps, row[i+1].At.Sub(row[i].At).Seconds())
	}
	least := slices.Min(gaps)
	uneven := func(g float64) bool { return math.Abs(g/least-math.Round(g/least)) > even }
	return slices.Max(gaps)-least <= 1 || least > gross && !slices.ContainsFunc(gaps, uneven)
}
