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
		Short: "Check that a server could work: config, database, GitHub, sandbox, git, agents",
		Args:  cobra.NoArgs,
		Long: "Check everything that a server needs, one line a check, with a hint where something is wrong.\n" +
			"Warnings do not fail the command. Providers are asked for their models, which costs nothing; agents are started in\n" +
			"the sandbox, to tell their version; nothing is written at GitHub. With --repo that repository is tried, too: its\n" +
			".github/pawl.yml is read from the default branch, its setup and its verify commands run there as before a first\n" +
			"attempt, in a folder of their own that is removed afterwards.",
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
				return fmt.Errorf("%d of %d checks failed; their lines say what to do", failed, len(all))
			}
			return nil
		},
	}
	requiredFlag(cmd, &file, "config", serverConfig)
	cmd.Flags().StringVar(&repo, "repo", "", "try this repository, too")
	jsonFlag(cmd)
	return cmd
}
