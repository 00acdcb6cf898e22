package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/setup"
)

func setupCommand() *cobra.Command {
	var f setup.Flags
	cmd := &cobra.Command{
		Use: "setup", Short: "Create the GitHub App in the browser and write the configuration", Args: cobra.NoArgs,
		Long: "Create the GitHub App that Pawl runs as, with the permissions and events of app.yml, and write pawl.yml and\n" +
			"the App's private key (app.pem) beside it. A page on this machine sends the wish to GitHub; you press the button there.\n" +
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
	cmd.Flags().StringVar(&f.Org, "org", "", "the organization that shall own the App (default: you)")
	cmd.Flags().StringVar(&f.Name, "name", "pawl", "the App's name, which nobody else at this GitHub may have; it can be changed in the browser")
	cmd.Flags().StringVar(&f.Config, "config", "pawl.yml", "the configuration file to write")
	cmd.Flags().StringVar(&f.Backend, "backend", "codex", "the agent to begin with: "+strings.Join(config.CLIs(), ", "))
	return cmd
}
