package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/internal/replay"
)

func replayCommand() *cobra.Command {
	var file, cli string
	cmd := &cobra.Command{
		Use: "replay FILE...", Short: "Show what policy would have decided after each recorded attempt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("replay needs a recording: a thread's log (pawl status --export), a wrapper's log, or transcripts in order; the name - means standard input")
			}
			if cli != "" && !slices.Contains(replay.Streams(), cli) {
				return fmt.Errorf("unknown --cli %q: use one of %s", cli, strings.Join(replay.Streams(), ", "))
			}
			return nil
		},
		Long: "Read a recorded sequence of attempts. Show what policy would have decided after each attempt, where it\n" +
			"would have stopped and why, and the savings. A recording is a thread's log (pawl status --export),\n" +
			"the log of a wrapper that restarts an agent, or several transcripts in order, one attempt each.\n" +
			"Files may be compressed with gzip. The name - means standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadOrDefault(file)
			if err != nil {
				return err
			}
			r, err := replay.Files(cfg, cli, args, opener(cmd))
			if err != nil {
				return err
			}
			return printReport(cmd, r, r.Print)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "a server's configuration file, for its policy (default: "+configHere+" in the current folder, else the default policy)")
	cmd.Flags().StringVar(&cli, "cli", "", "read each file as one transcript of "+strings.Join(replay.Streams(), ", ")+" (default: detected)")
	jsonFlag(cmd)
	return cmd
}
