package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
)

// The standings of a check.
const (
	checkOK   = "ok"
	checkWarn = "warning"
	checkFail = "failed"
)

// doctorTime bounds each check: one that hangs is one that failed.
const doctorTime = 30 * time.Second

// finding is the result of one check.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
	// Hint is what to do; empty where there is nothing to do.
	Hint string `json:"hint,omitempty"`
}

func doctorCommand() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor --config FILE", Short: "Check that a server could work: config, database, GitHub, sandbox, git, agents", Args: cobra.NoArgs,
		Long: "Check everything that a server needs, one line a check, with a hint where something is wrong.\n" +
			"Warnings do not fail the command. Providers are asked for any answer, without a key; agents are started only\n" +
			"to tell their version; nothing is written at GitHub.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := examine(cmd.Context(), file, os.LookupEnv)
			if err := printFindings(cmd.OutOrStdout(), all, asJSON); err != nil {
				return err
			}
			failed := 0
			for _, f := range all {
				if f.State == checkFail {
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d checks failed; their lines say what to do", failed, len(all))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the server's configuration file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag is declared two lines above
	}
	return cmd
}

// examine does all checks. Without a readable configuration there is only one.
func examine(ctx context.Context, file string, lookup func(string) (string, bool)) []finding {
	cfg, err := config.Load(file, lookup)
	if err != nil {
		problems, ok := errors.AsType[config.Problems](err)
		if !ok {
			return []finding{{Check: "configuration", State: checkFail, Text: err.Error(), Hint: "pawl setup writes a new one, config/example.yml shows every key"}}
		}
		var found []finding
		for _, p := range problems {
			found = append(found, finding{Check: "configuration", State: checkFail, Text: p.String(), Hint: "correct it; docs/configuration.md has every key"})
		}
		return found
	}
	d := doctor{cfg: cfg, lookup: lookup, log: zerolog.Nop()}
	d.add("configuration", checkOK, file+" is complete", "")
	for _, check := range []func(context.Context){d.database, d.dataDir, d.git, d.sandbox, d.github, d.providers, d.agents, d.bounds} {
		bounded, cancel := context.WithTimeout(ctx, doctorTime)
		check(bounded)
		cancel()
	}
	return d.found
}

// doctor collects findings on one configuration.
type doctor struct {
	cfg    config.Server
	lookup func(string) (string, bool)
	log    zerolog.Logger
	found  []finding
}

// add keeps a finding, as one line: some errors have several.
func (d *doctor) add(check, state, text, hint string) {
	d.found = append(d.found, finding{Check: check, State: state, Text: strings.Join(strings.Fields(text), " "), Hint: hint})
}

func printFindings(w io.Writer, all []finding, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{"checks": all})
	}
	for _, f := range all {
		if _, err := fmt.Fprintf(w, "%-8s %-14s %s\n", f.State, f.Check, f.Text); err != nil {
			return err
		}
		if f.Hint != "" {
			if _, err := fmt.Fprintf(w, "%-8s %-14s → %s\n", "", "", f.Hint); err != nil {
				return err
			}
		}
	}
	return nil
}
