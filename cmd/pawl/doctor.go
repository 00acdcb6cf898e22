package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/internal/doctor"
)

func doctorCommand() *cobra.Command {
	var file, repo string
	cmd := &cobra.Command{
		Use:   "doctor --config FILE [--repo OWNER/NAME]",
		Short: "Check what a server needs: config, database, GitHub, sandbox, git, agents",
		Args:  cobra.NoArgs,
		Long: "Check everything that a server needs. Each check prints one line, with a hint if it fails. Warnings do not fail the\n" +
			"command. The checks list the providers' models, which is free, and run each agent in the sandbox to print its version.\n" +
			"They write nothing to GitHub. --repo also checks a repository: it reads .github/pawl.yml from the default branch and\n" +
			"runs the setup and verify commands in a temporary folder, as before a first attempt.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("repo") {
				if _, _, err := repository(repo); err != nil {
					return usageError{errors.New("--repo takes OWNER/NAME, such as --repo octo-org/widgets")}
				}
			}
			all := doctor.Examine(cmd.Context(), file, repo, buildInfo())
			report := map[string]any{"checks": all}
			if err := printReport(cmd, report, func(w io.Writer) { doctor.Print(w, all) }); err != nil {
				return err
			}
			if failed := len(doctor.Failures(all)); failed > 0 {
				return fmt.Errorf("%d of %d checks failed; see the hints above", failed, len(all))
			}
			return nil
		},
	}
	requiredFlag(cmd, &file, "config", serverConfig)
	cmd.Flags().StringVar(&repo, "repo", "", "also check this repository")
	jsonFlag(cmd)
	return cmd
}
