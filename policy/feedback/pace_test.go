package feedback

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

// moments returns comments with new words and these gaps in seconds between them.
func moments(gaps ...float64) (all []Moment) {
	at := began
	for _, g := range gaps {
		at = at.Add(time.Duration(g * float64(time.Second)))
		all = append(all, Moment{At: at, Fresh: true})
	}
	return all
}

// mechanical counts the comments that Pawl takes for a program's when they arrive.
func mechanical(all []Moment) (n int) {
	for i := range all {
		if Mechanical(all[:i+1]) {
			n++
		}
	}
	return n
}

func TestProgramsRemarksAreRecognised(t *testing.T) {
	stale := func(which ...int) []Moment {
		all := moments(100, 7000, 900, 40, 2500, 11, 460, 3000)
		for _, i := range which {
			all[i].Fresh = false
		}
		return all
	}
	for name, tc := range map[string]struct {
		moments []Moment
		want    int
	}{
		"every ten minutes":                     {moments(0, 600, 600.4, 599.8, 600, 600.1), 1},
		"every ten minutes, three more":         {moments(0, 600, 600.4, 599.8, 600, 600.1, 600, 600, 600), 4},
		"every ten seconds":                     {moments(0, 10, 10.1, 10, 9.95, 10), 1},
		"every six seconds, in whole seconds":   {moments(0, 6, 7, 6, 6, 7), 1},
		"every three seconds, in whole seconds": {moments(0, 3, 4, 3, 3, 4), 0},
		"every five minutes, with gaps":         {moments(0, 300, 900, 300, 1501, 600), 1},
		"after a user's first remark":           {moments(0, 47, 600, 600, 600, 600, 600), 1},
		"five at even intervals":                {moments(0, 600, 600, 600, 600), 0},
		"a user":                                {moments(0, 62, 345, 17, 1900, 600, 130), 0},
		"with a user's remark among them":       {moments(0, 600, 600, 600, 77, 600, 600, 600), 0},
		"at multiples of a few seconds":         {moments(0, 4, 8, 20, 16, 12), 0},
		"six without a new word":                {stale(1, 2, 3, 4, 5, 6), 1},
		"eight without a new word":              {stale(0, 1, 2, 3, 4, 5, 6, 7), 3},
		"five without a new word":               {stale(0, 1, 2, 3, 4), 0},
		"with a new word among them":            {stale(0, 1, 2, 3, 5, 6, 7), 0},
		"nothing":                               {nil, 0},
	} {
		if got := mechanical(tc.moments); got != tc.want {
			t.Errorf("%s: %d of %d are a program's, want %d", name, got, len(tc.moments), tc.want)
		}
	}
}

// Users' intervals are simulated, because few are recorded. They have an exponential distribution or are spread over orders
// of magnitude. Each sequence has its own average interval.
func TestUsersAreSeldomTakenForAProgram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const sequences, remarks = 10_000, 30
	for name, gap := range map[string]func(mean float64) float64{
		"exponential":         func(mean float64) float64 { return mean * r.ExpFloat64() },
		"log-normal, σ = 1":   func(mean float64) float64 { return mean * math.Exp(r.NormFloat64()) },
		"log-normal, σ = 0.5": func(mean float64) float64 { return mean * math.Exp(r.NormFloat64()/2) },
	} {
		taken := 0
		for range sequences {
			mean, gaps := 20*math.Exp(3*r.Float64()), []float64{}
			for range remarks {
				gaps = append(gaps, math.Ceil(2+gap(mean)))
			}
			if mechanical(moments(gaps...)) > 0 {
				taken++
			}
		}
		t.Logf("%s: %d of %d sequences of %d remarks", name, taken, sequences, remarks)
		if taken > sequences/1000 {
			t.Errorf("%s: %d of %d users are taken for a program", name, taken, sequences)
		}
	}
}
