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
		Long: "Print a link to the pages of the server on this machine. The first browser in which its button is pressed, within\n" +
			"5 minutes, is signed in as an operator for 8 hours. Who may read the configuration and write to the database may do so anyway.\n" +
			"Everybody else signs in with GitHub: see github.app.client_id and server.operators.",
	}
	return onDatabase(cmd, store.Writing, func(_ config.Server, db *store.Store, _ []string) error {
		link, err := server.LoginLink(cmd.Context(), db)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), render.Clean(link))
		}
		return err
	})
}
