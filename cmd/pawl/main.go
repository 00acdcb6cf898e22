// Command pawl is the whole of Pawl: the GitHub App, and the tools that go with
// it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of every subcommand.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// usageError is an error of whoever typed the command.
type usageError struct{ error }

// run is main with its arguments and streams given.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	started := false
	root := &cobra.Command{
		Use:           "pawl",
		Short:         "Runs coding agents on issues and pull requests, and stops them when they run away.",
		SilenceErrors: true,
		SilenceUsage:  true,
		// Whatever fails before a command runs is wrong usage.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateRequiredFlags(); err != nil {
				return err
			}
			started = true
			return nil
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(serveCommand(), demoCommand(), demoAgentCommand(), runCommand(), inspectCommand(), replayCommand(), calibrateCommand(), simulateCommand(), statusCommand(), doctorCommand(), setupCommand(), mcpCommand(), versionCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(stderr, "pawl:", err)
	if _, misused := errors.AsType[usageError](err); misused || !started {
		fmt.Fprintln(stderr, "pawl: see pawl --help")
		return exitUsage
	}
	return exitFailed
}
