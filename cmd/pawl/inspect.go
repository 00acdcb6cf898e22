package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/inspect"
	"github.com/pawlbot/pawl/internal/replay"
)

// inspectFlags holds the flags of pawl inspect. check sets at from now, and location from zone.
type inspectFlags struct {
	cli, now, zone string
	config         string
	exitCode       int

	at       time.Time
	location *time.Location
}

func inspectCommand() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use: "inspect FILE", Short: "Show how a recorded agent run ended, and why",
		Args: func(cmd *cobra.Command, args []string) error {
			return errors.Join(cobra.ExactArgs(1)(cmd, args), f.check())
		},
		Long: `Read the transcript of one agent run (its standard output) and show how it ended, whether a limit
stopped it and until when, what it edited, and the fingerprint of the evidence. FILE may be - for
standard input, or a folder with stdout.jsonl and, optionally, stderr.txt and exit.txt. The exit code is 1
if the transcript does not show how the run ended.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadOrDefault(f.config)
			if err != nil {
				return err
			}
			o := inspect.Options{CLI: f.cli, Now: f.at, Zone: f.location, Severity: cfg.Policy.Severity}
			if cmd.Flags().Changed("exit-code") {
				o.Exit = &agent.Exit{Code: f.exitCode}
			}
			v, err := inspect.Read(args[0], opener(cmd), o)
			if err != nil {
				return err
			}
			if err := printReport(cmd, v, v.Print); err != nil || v.Understood() {
				return err
			}
			return fmt.Errorf("inspect %s: %s", args[0], strings.Join(v.Reasons, "; "))
		},
	}
	cmd.Flags().StringVar(&f.cli, "cli", "", strings.Join(replay.Streams(), ", ")+" (default: detected)")
	cmd.Flags().IntVar(&f.exitCode, "exit-code", 0, "the exit code of the run (default: unknown); 124 means a timeout")
	cmd.Flags().StringVar(&f.now, "now", "", "when the run ended, RFC 3339 (default: now); times like \"in 2 hours\" count from it")
	cmd.Flags().StringVar(&f.zone, "zone", "UTC", "the time zone of times without a zone, such as Europe/Rome")
	cmd.Flags().StringVar(&f.config, "config", "", "a server's configuration file, for its policy.severity (default: "+configHere+" in the current folder, else the default policy)")
	jsonFlag(cmd)
	return cmd
}

func (f *inspectFlags) check() (err error) {
	if f.cli != "" && !slices.Contains(replay.Streams(), f.cli) {
		return fmt.Errorf("--cli %q: use %s", f.cli, strings.Join(replay.Streams(), ", "))
	}
	if f.location, err = time.LoadLocation(f.zone); err != nil || f.zone == "Local" {
		return fmt.Errorf("--zone %q is unknown: use a name like Europe/Rome", f.zone)
	}
	if f.at = time.Now(); f.now != "" {
		if f.at, err = time.Parse(time.RFC3339, f.now); err != nil {
			return fmt.Errorf("--now %q: use RFC 3339, such as 2026-11-21T08:30:00Z", f.now)
		}
	}
	return nil
}
