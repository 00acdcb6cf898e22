package main

import (
	"errors"
	"fmt"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/testtool"
)

// insideCommand is the first process inside a sandbox.
func insideCommand() *cobra.Command {
	return &cobra.Command{
		Use: sandbox.InsideCommand, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return sandbox.Inside(args) },
	}
}

func mcpCommand() *cobra.Command {
	var file string
	var once bool
	cmd := &cobra.Command{
		Use: "mcp --spec FILE", Hidden: true, Args: cobra.NoArgs,
		Short: "Serve the tool run_tests to a coding agent over standard input and output",
		Long: `Serve the Model Context Protocol over standard input and output with one tool, run_tests, which runs
the repository's verify commands. The agent starts this command inside the sandbox; users do not need it.
With --once it runs the tests for an agent without the protocol, prints the result, and exits with 0 only if they pass.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := testtool.ReadSpec(file)
			if err != nil {
				return usageError{err}
			}
			log := logger(cmd.ErrOrStderr()).Level(zerolog.InfoLevel)
			if once {
				answer, passed := testtool.Once(cmd.Context(), spec, log.Level(zerolog.ErrorLevel))
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), answer); err != nil || passed {
					return err
				}
				return errors.New("the tests did not pass")
			}
			return testtool.Serve(cmd.Context(), spec, buildInfo().Version, cmd.InOrStdin(), cmd.OutOrStdout(), log)
		},
	}
	requiredFlag(cmd, &file, "spec", "the JSON file that configures run_tests")
	cmd.Flags().BoolVar(&once, "once", false, "run the tests once and print the result")
	return cmd
}
