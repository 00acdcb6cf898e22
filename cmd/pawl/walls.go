package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/sandbox"
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
