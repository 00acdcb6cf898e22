package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
)

func checkCommand() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use: "check [FILE]", Short: "Check a repository's " + config.RepoFile, Args: cobra.MaximumNArgs(1),
		Long: "Check " + config.RepoFile + ", or another FILE of that form, before it is pushed. With --config also against a\n" +
			"server's configuration: what that server does not allow is an error there. Exits 1 where something is wrong.",
		Example: "  pawl check\n  pawl check --config pawl.yml widgets/.github/pawl.yml",
		RunE: func(cmd *cobra.Command, args []string) error {
			file := config.RepoFile
			if len(args) > 0 {
				file = args[0]
			}
			data, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("check %s: there is no such file; it may be left out, and config/repo-example.yml shows every key", file)
			}
			if err != nil {
				return fmt.Errorf("check: %w", err)
			}
			var on *config.Server
			if server != "" {
				cfg, err := config.Load(server, os.LookupEnv)
				if err != nil {
					return err
				}
				on = &cfg
			}
			if problems := config.CheckRepo(on, file, data); len(problems) > 0 {
				return config.Problems(problems)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: no error\n", file)
			return err
		},
	}
	cmd.Flags().StringVar(&server, "config", "", "the configuration of the server that is to work there")
	return cmd
}
