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
			"the App's private key (app.pem) next to it. A page on this machine sends the App's settings to GitHub; you confirm them\n" +
			"there. With --headless you open a link in a browser on any machine instead. Without --url the server polls GitHub for\n" +
			"events. No file is overwritten. The command ends when the files are written, at Ctrl-C, or after 30 minutes.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := setup.New(f, buildInfo().Version)
			if err != nil {
				return usageError{err}
			}
			return s.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.URL, "url", "", "the URL at which GitHub reaches the server, such as https://pawl.example.com (default: none; the server polls GitHub)")
	cmd.Flags().StringVar(&f.Listen, "listen", "127.0.0.1:8080", "the address of the setup page, and later of the server")
	cmd.Flags().BoolVar(&f.Headless, "headless", false, "print a link for a browser on any machine, then read the address that the browser ends at")
	cmd.Flags().StringVar(&f.Pages, "pages-url", "", "the URL at which users reach the pages, such as https://pawl.example.com (default: only on the server's machine)")
	cmd.Flags().StringVar(&f.GitHub, "github", "https://github.com", "the URL of GitHub or of a GitHub Enterprise Server")
	cmd.Flags().StringVar(&f.Org, "org", "", "the organization that will own the App (default: you)")
	cmd.Flags().StringVar(&f.Name, "name", "pawl", "the App's name, which must be unique on GitHub; you can change it in the browser")
	cmd.Flags().StringVar(&f.Config, "config", configHere, "the configuration file to write")
	cmd.Flags().StringVar(&f.Backend, "backend", "codex", "the first backend's agent: "+strings.Join(config.CLIs(), ", "))
	return cmd
}

func checkCommand() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a repository's " + config.RepoFile,
		Args:  cobra.MaximumNArgs(1),
		Long: "Check " + config.RepoFile + ", or another FILE in its format, before you push it. With --config the check also\n" +
			"reports what that server does not allow. The exit code is 1 if there is an error.",
		Example: "  pawl check\n  pawl check --config pawl.yml widgets/.github/pawl.yml",
		RunE: func(cmd *cobra.Command, args []string) error {
			file := config.RepoFile
			if len(args) > 0 {
				file = args[0]
			}
			data, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("check %s: there is no such file; it is optional, and config/repo-example.yml shows every key", file)
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
	cmd.Flags().StringVar(&server, "config", "", "the configuration file of the repository's server (default: "+configHere+" in the current folder, if any)")
	return cmd
}
