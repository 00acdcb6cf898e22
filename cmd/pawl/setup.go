package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/setup"
)

func setupCommand() *cobra.Command {
	var f setup.Flags
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the GitHub App in the browser and write the configuration",
		Args:  cobra.NoArgs,
		Long: "Create the GitHub App that Pawl runs as, with the permissions and events of app.yml, and write pawl.yml and\n" +
			"the App's private key (app.pem) next to it. A page on this machine sends the wish to GitHub; you press the button there.\n" +
			"With --headless a link does, which any browser opens. Without --url the server asks GitHub for its events.\n" +
			"Nothing is overwritten. It ends when the files are written, when it is interrupted, or after 30 minutes.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := setup.New(f, buildInfo().Version)
			if err != nil {
				return usageError{err}
			}
			return s.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.URL, "url", "", "where GitHub will reach the server, such as https://pawl.example.com (default: nowhere, the server asks GitHub)")
	cmd.Flags().StringVar(&f.Listen, "listen", "127.0.0.1:8080", "where the page is; the server will be there, too")
	cmd.Flags().BoolVar(&f.Headless, "headless", false, "show no page: print a link for a browser elsewhere, and read the address that GitHub then shows")
	cmd.Flags().StringVar(&f.Pages, "pages-url", "", "where people will reach the pages, such as https://pawl.example.com (default: the server's machine only)")
	cmd.Flags().StringVar(&f.GitHub, "github", "https://github.com", "the GitHub, also an Enterprise Server")
	cmd.Flags().StringVar(&f.Org, "org", "", "the organization that will own the App (default: you)")
	cmd.Flags().StringVar(&f.Name, "name", "pawl", "the App's name, which nobody else at this GitHub may have; it can be changed in the browser")
	cmd.Flags().StringVar(&f.Config, "config", configHere, "the configuration file to write")
	cmd.Flags().StringVar(&f.Backend, "backend", "codex", "the agent to begin with: "+strings.Join(config.CLIs(), ", "))
	return cmd
}

func checkCommand() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a repository's " + config.RepoFile,
		Args:  cobra.MaximumNArgs(1),
		Long: "Check " + config.RepoFile + ", or another FILE of that form, before it is pushed. With a server's configuration also against\n" +
			"that: what the server does not allow is an error there. Exits 1 where something is wrong.",
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
	cmd.Flags().StringVar(&server, "config", "", "the configuration of the server that is to work there (default: "+configHere+", where the current folder has it)")
	return cmd
}
