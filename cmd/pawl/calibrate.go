package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/calibrate"
	"github.com/pawlbot/pawl/internal/replay"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// resamples of a bootstrap: the ends of a 95 % interval then rest on 50 of them each.
const resamples = 2000

type calibrateOptions struct {
	config    string
	threshold float64
	seed      uint64
	svg       string
	export    bool
}

func calibrateCommand() *cobra.Command {
	var o calibrateOptions
	cmd := &cobra.Command{
		Use: "calibrate FILE", Short: "Show on labelled pairs of attempts what each similarity threshold does",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.export && len(args) == 0 && o.config != "" {
				return nil
			}
			if o.export {
				return errors.New("calibrate --export needs --config and no file; it prints the pairs")
			}
			if len(args) != 1 {
				return errors.New("calibrate needs one file of labelled pairs; - reads standard input")
			}
			if !(o.threshold > 0 && o.threshold <= 1) {
				return fmt.Errorf("--threshold %v: use a number above 0 and up to 1, such as 0.85", o.threshold)
			}
			return nil
		},
		Long: `Read labelled pairs of attempts at the same task and show how well similarity tells a repetition from
a different attempt: for each view the true and false positive rate of the current threshold and of
the recommended one, the area under the ROC curve, and the curve. Intervals come from drawing other
tasks, not other pairs. FILE is JSONL, may be compressed with gzip, and - reads standard input:

  {"view": "failure", "label": "same", "group": "task-1", "a": "…", "b": "…"}

view is failure (error text), revision (the agent's prose) or diff; label is same or different; group
names the task. --export --config FILE prints such pairs of a server's own retries, labelled by which
tests failed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.export {
				return withDatabase(cmd.Context(), o.config, store.Reading, func(_ config.Server, db *store.Store) error {
					return exportRetries(cmd.Context(), db, cmd.OutOrStdout())
				})
			}
			if !cmd.Flags().Changed("threshold") {
				cfg, err := loadOrDefault(o.config)
				if err != nil {
					return err
				}
				o.threshold = cfg.Policy.Stagnation.Similarity
			}
			r, err := calibratePairs(o, args[0], opener(cmd))
			if err != nil {
				return err
			}
			return printReport(cmd, r, r.Text)
		},
	}
	cmd.Flags().StringVar(&o.config, "config", "", "a server's configuration file, for its threshold (default: the published one)")
	cmd.Flags().Float64Var(&o.threshold, "threshold", policy.Defaults().Stagnation.Similarity, "the threshold in use (policy.stagnation.similarity), instead of the configuration's")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "the seed of the resampling")
	cmd.Flags().BoolVar(&o.export, "export", false, "print the retries of the server of --config as labelled pairs, instead of measuring")
	jsonFlag(cmd)
	cmd.Flags().StringVar(&o.svg, "svg", "", "write the ROC curves to this file as a picture")
	return cmd
}

func calibratePairs(o calibrateOptions, name string, open replay.Opener) (calibrate.Report, error) {
	in, err := open(name)
	if err != nil {
		return calibrate.Report{}, fmt.Errorf("open the pairs: %w", err)
	}
	defer in.Close()
	r, err := calibrate.Measure(calibrate.Read(in), calibrate.Options{Threshold: o.threshold, Seed: o.seed, Resamples: resamples})
	if err != nil {
		return r, fmt.Errorf("calibrate %s: %w", name, err)
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, []byte(r.SVG()), 0o644); err != nil {
			return r, fmt.Errorf("write the picture: %w", err)
		}
	}
	return r, nil
}

// exportedThreads is how many threads are looked at, those touched last first.
const exportedThreads = 10_000

// exportRetries writes the retries of a server's threads as labelled pairs, one a line. What failed labels them, never their
// texts, so that the texts can be tried against it.
func exportRetries(ctx context.Context, db *store.Store, w io.Writer) error {
	rows, err := db.Threads(ctx, exportedThreads)
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	for _, row := range rows {
		_, state, err := thread.Load(ctx, db, row.Thread)
		if err != nil {
			return err
		}
		for _, pair := range retries(row.Thread.String(), state) {
			if err := out.Encode(map[string]string{"view": pair.View, "label": pair.Label, "group": pair.Group, "a": pair.A, "b": pair.B}); err != nil {
				return err
			}
		}
	}
	return nil
}

// retries are the pairs of consecutive attempts of a run whose label is known: the same where the same named tests failed or the
// tree is the same, different where other tests failed or the later one passed.
func retries(group string, s thread.State) (pairs []calibrate.Pair) {
	for i := 1; i < len(s.Attempts); i++ {
		a, b := s.Attempts[i-1], s.Attempts[i]
		if a.Run != b.Run || a.EndedAt.IsZero() || b.EndedAt.IsZero() || !a.Receipt.Failing() {
			continue
		}
		_, passed := b.Receipt.Verified()
		same := a.Receipt.EndTree != "" && a.Receipt.EndTree == b.Receipt.EndTree
		label := ""
		switch failed := len(a.Receipt.Tests) > 0 && len(b.Receipt.Tests) > 0 && b.Receipt.Failing(); {
		case same, failed && slices.Equal(a.Receipt.Tests, b.Receipt.Tests):
			label = "same"
		case failed, passed:
			label = "different"
		default:
			continue
		}
		add := func(view, x, y string) {
			if strings.TrimSpace(x) != "" && strings.TrimSpace(y) != "" {
				pairs = append(pairs, calibrate.Pair{View: view, Label: label, Group: group, A: x, B: y})
			}
		}
		add("revision", a.Receipt.Final, b.Receipt.Final)
		add("failure", printed(a.Receipt), printed(b.Receipt))
	}
	return pairs
}

// printed is what the verify commands printed that failed.
func printed(r policy.Receipt) string {
	var all []string
	for _, v := range r.Verify {
		if !v.Passed {
			all = append(all, v.Output)
		}
	}
	return strings.Join(all, "\n")
}
