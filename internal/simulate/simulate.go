// Package simulate measures how well the choice of a backend learns: attempts of
// made-up backends whose quality is known are graded by made-up signals, and the
// real code of policy validates them, learns and chooses. It is deterministic:
// the same options give the same report.
package simulate

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Scenario is how the backends and the signals behave.
type Scenario string

// The scenarios.
const (
	// Stationary: backends stay as good as they are, and signals are honest.
	Stationary Scenario = "stationary"
	// Drifting: every 125 attempts on average one backend becomes another.
	Drifting Scenario = "drifting"
	// Corrupted: stationary, and one attempt in five has corrupted signals.
	Corrupted Scenario = "corrupted"
	// Targeted: corrupted, but everything hits the best backend: two in five of
	// its attempts.
	Targeted Scenario = "targeted"
)

// Scenarios are all scenarios.
func Scenarios() []Scenario { return []Scenario{Stationary, Drifting, Corrupted, Targeted} }

// corrupted reports whether signals are corrupted.
func (s Scenario) corrupted() bool { return s == Corrupted || s == Targeted }

// Options say what to simulate. The zero value simulates nothing.
type Options struct {
	Attempts  int // of one run
	Arms      []int
	Seeds     int // runs of each cell, with the seeds 1 to Seeds
	Scenarios []Scenario
}

// Limits of the options, so that a wrong number ends in an error and not in a
// day of work: the time grows with the square of the attempts.
const (
	maxAttempts, maxArms, maxSeeds = 5000, 20, 10_000
	minAttempts, minSeeds          = 20, 2
)

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.Attempts < minAttempts || o.Attempts > maxAttempts:
		return fmt.Errorf("%d attempts: use %d to %d", o.Attempts, minAttempts, maxAttempts)
	case o.Seeds < minSeeds || o.Seeds > maxSeeds:
		return fmt.Errorf("%d seeds: use %d to %d", o.Seeds, minSeeds, maxSeeds)
	case len(o.Arms) == 0 || slices.Min(o.Arms) < 2 || slices.Max(o.Arms) > maxArms:
		return fmt.Errorf("arms %v: use numbers from 2 to %d", o.Arms, maxArms)
	case len(o.Scenarios) == 0:
		return fmt.Errorf("no scenario: use some of %v", Scenarios())
	}
	for _, s := range o.Scenarios {
		if !slices.Contains(Scenarios(), s) {
			return fmt.Errorf("scenario %q: use one of %v", s, Scenarios())
		}
	}
	return nil
}

// task is one seed of one cell.
type task struct {
	scenario Scenario
	arms     int
	seed     int
}

// Run simulates all cells, on all processors. It ends early, with the error of
// ctx, when ctx does.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	var tasks []task
	for _, s := range o.Scenarios {
		for _, arms := range o.Arms {
			for seed := range o.Seeds {
				tasks = append(tasks, task{s, arms, seed + 1})
			}
		}
	}
	results := make([]result, len(tasks))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				results[i] = play(tasks[i], o.Attempts)
			}
		})
	}
	for i := range tasks {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return Report{}, fmt.Errorf("simulate: %w", err)
	}
	return report(o, results), nil
}
