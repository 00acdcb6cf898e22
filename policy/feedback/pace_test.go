package feedback

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

// moments are remarks after such gaps in seconds, each long after an attempt ended.
func moments(gaps ...float64) (all []Moment) {
	at := began
	for i, g := range gaps {
		at = at.Add(time.Duration(g * float64(time.Second)))
		all = append(all, Moment{At: at, After: time.Hour, Seqs: []int64{int64(i + 1)}})
	}
	return all
}

func TestRemarksAtAProgramsPaceAreKnown(t *testing.T) {
	after := func(seconds ...float64) (all []Moment) {
		for i, s := range seconds {
			all = append(all, moments(100, 7000, 900, 40, 2500, 11, 460, 3000)[i])
			all[i].After = time.Duration(s * float64(time.Second))
		}
		return all
	}
	for name, tc := range map[string]struct {
		said []Moment
		want int
	}{
		"every ten minutes":                   {moments(0, 600, 600.4, 599.8, 600, 600.1), 6},
		"every ten seconds":                   {moments(0, 10, 10.1, 10, 9.95, 10), 6},
		"every five minutes, where it can":    {moments(0, 300, 900, 300, 1501, 600), 6},
		"after a first of a person":           {moments(0, 47, 600, 600, 600, 600, 600), 6},
		"every six seconds, by whole seconds": {moments(0, 6, 7, 6, 6, 7), 6},
		"five at even intervals":              {moments(0, 600, 600, 600, 600), 0},
		"a person":                            {moments(0, 62, 345, 17, 1900, 600, 130), 0},
		"a person among them":                 {moments(0, 600, 600, 600, 77, 600, 600, 600), 0},
		"seconds after each attempt":          {after(1, 3, 2, 8, 1, 2), 6},
		"seconds after five attempts":         {after(1, 3, 2, 8, 1), 0},
		"once only after a minute":            {after(1, 3, 2, 60, 1, 2, 3, 1), 0},
		"once while the attempt still ran":    {after(1, 3, 2, -1, 1, 2, 3, 1), 0},
		"at multiples of a few seconds":       {moments(0, 4, 8, 20, 16, 12), 0},
		"nothing":                             {nil, 0},
	} {
		got := map[int64]bool{}
		for _, seq := range Mechanical(tc.said) {
			got[seq] = true
		}
		if len(got) != tc.want {
			t.Errorf("%s: %d of %d are a program's, want %d", name, len(got), len(tc.said), tc.want)
		}
	}
}

// People's intervals are simulated, as few of them are recorded: spread as waiting times
// are, or over orders of magnitude, each sequence with a pace of its own.
func TestPeopleAreHardlyEverTakenForAProgram(t *testing.T) {
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
			if len(Mechanical(moments(gaps...))) > 0 {
				taken++
			}
		}
		t.Logf("%s: %d of %d sequences of %d remarks", name, taken, sequences, remarks)
		if taken > sequences/1000 {
			t.Errorf("%s: %d of %d people are taken for a program", name, taken, sequences)
		}
	}
}
