package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/solver"
)

// replayOptions are the flags of pawl replay.
type replayOptions struct {
	config, cli string
	json        bool
}

func replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use: "replay FILE...", Short: "Show what policy would have decided after each recorded attempt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("replay needs a recording: a trail (pawl status --export), a wrapper's log, or transcripts in order; - reads standard input")
			}
			if o.cli != "" && !slices.Contains(clis(), o.cli) {
				return fmt.Errorf("unknown --cli %q: use one of %s", o.cli, strings.Join(clis(), ", "))
			}
			return nil
		},
		Long: "Read a recorded sequence of attempts and show after each what policy would have decided, where it\n" +
			"would have stopped and why, and what that saves. A recording is a thread's log (pawl status --export),\n" +
			"the log of a wrapper that restarts an agent, or several transcripts in order, one attempt each.\n" +
			"Files may be compressed with gzip; - reads standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return replayFiles(o, args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.config, "config", "", "a server's configuration file, for its policy (default: the published numbers)")
	cmd.Flags().StringVar(&o.cli, "cli", "", "read each file as one transcript of "+strings.Join(clis(), ", ")+" (default: detected)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

// clis are the formats of transcripts.
func clis() []string {
	return []string{agent.StreamCodex, agent.StreamClaude, agent.StreamGemini, agent.StreamOpencode, agent.StreamPlain}
}

// replayFiles is pawl replay.
func replayFiles(o replayOptions, files []string, stdin io.Reader, stdout io.Writer) error {
	cfg := config.Default()
	if o.config != "" {
		var err error
		if cfg, err = config.Load(o.config, os.LookupEnv); err != nil {
			return err
		}
	}
	rec, err := readRecordings(files, o.cli, stdin, solver.Limits(cfg.Policy).Severity)
	if err != nil {
		return err
	}
	out, err := playBack(rec.entries, cfg)
	if err != nil {
		return err
	}
	r := reportReplay(out, rec)
	if o.json {
		return json.NewEncoder(stdout).Encode(r)
	}
	return r.print(stdout)
}
