package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/testtool"
)

// openSandbox is the sandbox that the configuration asks for, which is tried with all that programs will get.
func openSandbox(ctx context.Context, c config.Sandbox) (*sandbox.Sandbox, error) {
	box, err := sandbox.New(ctx, sandbox.Mode(c.Mode))
	if err != nil {
		return nil, err
	}
	box.Limit(sandbox.Limits{Memory: int64(c.Memory), CPUs: c.CPUs, PIDs: c.PIDs, Disk: int64(c.Disk)})
	if c.Mode == config.SandboxNone {
		return box, nil
	}
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find Pawl's own program, which builds the walls inside of a sandbox: %w", err)
	}
	if err := misplaced(own); err != nil {
		return nil, err
	}
	return box, box.UseProgram(ctx, own, c.Walled())
}

// misplaced refuses a program that lies where a sandbox has the folders of an attempt: nothing could be started there.
func misplaced(own string) error {
	if own != "/pawl" && !strings.HasPrefix(own, "/pawl/work/") && !strings.HasPrefix(own, "/pawl/home/") {
		return nil
	}
	return fmt.Errorf("this program is %s, and in every sandbox /pawl/work and /pawl/home are the folders of an attempt; move it, such as to /usr/local/bin/pawl", own)
}

// insideCommand is what the sandbox starts before a program.
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
the repository's verify commands. Pawl has the agent start this inside the sandbox; nobody else needs it.
With --once it runs them for an agent without the protocol, prints the answer, and exits with 0 only if they pass.`,
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
	requiredFlag(cmd, &file, "spec", "the JSON file that says what run_tests does")
	cmd.Flags().BoolVar(&once, "once", false, "run the tests once and print what came of it")
	return cmd
}
