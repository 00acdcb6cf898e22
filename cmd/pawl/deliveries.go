package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
)

func deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "Decide on webhook deliveries that could not be handled",
		Long: "Decide on webhook deliveries that could not be handled. pawl status lists them, with their GUIDs.\n" +
			"What is decided stands in the server's database; a server that runs sees it within a second or two.",
	}
	cmd.AddCommand(
		decideCommand("retry", "Have deliveries tried again now, and as often as new ones", "to be tried again", (*store.Store).RetryDelivery),
		decideCommand("dismiss", "Count deliveries as handled without trying them again", "dismissed", (*store.Store).DismissDelivery),
	)
	return cmd
}

func decideCommand(name, short, done string, decide func(s *store.Store, ctx context.Context, guid string) (int, error)) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: name + " --config FILE GUID...", Short: short, Args: cobra.MinimumNArgs(1),
		Long: short + ".\nThe GUID \"" + store.AllUnhandled + "\" means all that could not be handled.",
		RunE: func(cmd *cobra.Command, guids []string) error {
			cfg, err := config.Load(file, os.LookupEnv)
			if err != nil {
				return err
			}
			db, err := store.OpenBeside(cmd.Context(), dsn(cfg.Database), store.Options{})
			if err != nil {
				return err
			}
			defer db.Close()
			for _, guid := range guids {
				n, err := decide(db, cmd.Context(), guid)
				if err != nil {
					return err
				}
				if n == 0 && guid != store.AllUnhandled {
					return fmt.Errorf("there is no delivery %s that could not be handled; pawl status lists them", guid)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d %s\n", guid, n, done)
			}
			return nil
		},
	}
	requiredFlag(cmd, &file, "config", "the server's configuration file")
	return cmd
}
