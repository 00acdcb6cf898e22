package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
)

func loginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login --config FILE",
		Short: "Print a link that opens the pages as an operator",
		Args:  cobra.NoArgs,
		Long: "Print a sign-in link for the pages of this machine's server. It works once, within 5 minutes: open it and press the\n" +
			"button. The browser is then signed in as an operator for 8 hours. The command needs to read the configuration and\n" +
			"write to the database. All other users sign in with GitHub: see github.app.client_id and server.operators.",
	}
	return onDatabase(cmd, store.Writing, func(_ config.Server, db *store.Store, _ []string) error {
		link, err := server.LoginLink(cmd.Context(), db)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), render.Clean(link))
		}
		return err
	})
}
