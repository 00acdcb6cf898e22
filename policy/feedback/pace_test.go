package feedback

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

// moments are remarks with fresh words after such gaps in seconds.
func moments(gaps ...float64) (all []Moment) {
	at := began
	for _, g := range gaps {
		at = at.Add(time.Duration(g * float64(time.Second)))
		all = append(all, Moment{At: at, Fresh: true})
	}
	return all
}

// mechanical is how many of the moments count as a program's, each when it came.
func mechanical(said []Moment) (n int) {
	for i := range said {
		if Mechanical(said[:i+1]) {
			n++
		}
	}
	return n
}

func TestRemarksOfAProgramAreKnown(t *testing.T) {
	stale := func(which ...int) []Moment {
		all := moments(100, 7000, 900, 40, 2500, 11, 460, 3000)
		for _, i := range which {
			all[i].Fresh = false
		}
		return all
	}
	for name, tc := range map[string]struct {
		said []Moment
		want int
	}{
		"every ten minutes":                {moments(0, 600, 600.4, 599.8, 600, 600.1), 1},
		"and three more":                   {moments(0, 600, 600.4, 599.8, 600, 600.1, 600, 600, 600), 4},
		"every ten seconds":                {moments(0, 10, 10.1, 10, 9.95, 10), 1},
		"every six, by whole seconds":      {moments(0, 6, 7, 6, 6, 7), 1},
		"every three, by whole seconds":    {moments(0, 3, 4, 3, 3, 4), 0},
		"every five minutes, where it can": {moments(0, 300, 900, 300, 1501, 600), 1},
		"after a first of a person":        {moments(0, 47, 600, 600, 600, 600, 600), 1},
		"five at even intervals":           {moments(0, 600, 600, 600, 600), 0},
		"a person":                         {moments(0, 62, 345, 17, 1900, 600, 130), 0},
		"a person among them":              {moments(0, 600, 600, 600, 77, 600, 600, 600), 0},
		"at multiples of a few seconds":    {moments(0, 4, 8, 20, 16, 12), 0},
		"six without a fresh word":         {stale(1, 2, 3, 4, 5, 6), 1},
		"eight without a fresh word":       {stale(0, 1, 2, 3, 4, 5, 6, 7), 3},
		"five without a fresh word":        {stale(0, 1, 2, 3, 4), 0},
		"a fresh word among them":          {stale(0, 1, 2, 3, 5, 6, 7), 0},
		"nothing":                          {nil, 0},
	} {
		if got := mechanical(tc.said); got != tc.want {
			t.Errorf("%s: %d of %d are a program's, want %d", name, got, len(tc.said), tc.want)
		}
	}
}

// People's intervals are simulated, as few of them are recorded: spread as waiting times
// are, or over orders of magnitude, each sequence with a pace of its own.
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
			t.Errorf("%s: %d of %d people are taken for a program", name, taken, sequences)
		}
	}
}
