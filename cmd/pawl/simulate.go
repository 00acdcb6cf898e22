package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/internal/simulate"
)

// simulateFlags are the flags of pawl simulate.
type simulateFlags struct {
	attempts, seeds int
	arms, scenario  string
	json            bool
	svg             string
}

func simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use: "simulate", Short: "Show how well the choice of a backend learns, also from corrupted signals",
		Long: `Let the choice of a backend learn from attempts of made-up backends whose quality is known, and
compare it with always taking the best one and with choosing evenly. Scenarios: stationary; drifting,
where backends change; corrupted, where one attempt in five has corrupted signals, with and without
validation; targeted, where the faults hit the best backend only. The same flags give the same
numbers. The defaults take some minutes.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("simulate takes flags only")
			}
			_, err := f.options()
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSimulation(cmd.Context(), f, cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&f.attempts, "attempts", 500, "attempts of one run")
	cmd.Flags().StringVar(&f.arms, "arms", "2..5", "numbers of backends: one, or the first and the last")
	cmd.Flags().IntVar(&f.seeds, "seeds", 200, "runs of each scenario")
	cmd.Flags().StringVar(&f.scenario, "scenario", "all", "stationary, drifting, corrupted, targeted or all")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&f.svg, "svg", "", "write the curves to this file as a picture")
	return cmd
}

// options reads the flags; its errors are those of whoever typed them.
func (f simulateFlags) options() (simulate.Options, error) {
	o := simulate.Options{Attempts: f.attempts, Seeds: f.seeds, Scenarios: simulate.Scenarios()}
	if f.scenario != "all" {
		o.Scenarios = []simulate.Scenario{simulate.Scenario(f.scenario)}
	}
	from, to, isRange := strings.Cut(f.arms, "..")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || last < first || last-first > 20 {
		return o, fmt.Errorf("--arms %s: use a number such as 3, or the first and the last such as 2..5", f.arms)
	}
	for arms := first; arms <= last; arms++ {
		o.Arms = append(o.Arms, arms)
	}
	return o, o.Validate()
}

// runSimulation is pawl simulate.
func runSimulation(ctx context.Context, f simulateFlags, stdout io.Writer) error {
	o, err := f.options()
	if err != nil {
		return usageError{err}
	}
	r, err := simulate.Run(ctx, o)
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, []byte(r.SVG()), 0o644); err != nil {
			return fmt.Errorf("write the picture: %w", err)
		}
	}
	if f.json {
		return json.NewEncoder(stdout).Encode(r)
	}
	return r.Text(stdout)
}
