package main

import (
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
)

func deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "Decide on webhook deliveries that could not be handled",
		Long: "Decide on webhook deliveries that could not be handled. pawl status lists them, with their GUIDs.\n" +
			"A server must run on this machine; it does what is asked.",
	}
	cmd.AddCommand(
		decideCommand("retry", "Have deliveries tried again now, and as often as new ones", "to be tried again"),
		decideCommand("dismiss", "Count deliveries as handled without trying them again", "dismissed"),
	)
	return cmd
}

// decideCommand is a command that the running server carries out on deliveries.
func decideCommand(name, short, done string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: name + " --config FILE GUID...", Short: short, Args: cobra.MinimumNArgs(1),
		Long: short + ".\nThe GUID \"" + store.AllUnhandled + "\" means all that could not be handled.",
		RunE: func(cmd *cobra.Command, guids []string) error {
			cfg, err := config.Load(file, os.LookupEnv)
			if err != nil {
				return err
			}
			for _, guid := range guids {
				answer, err := askServer(cmd.Context(), cfg.DataDir, "/deliveries/"+url.PathEscape(guid)+"/"+name)
				if err != nil {
					return err
				}
				if answer.Deliveries == 0 && guid != store.AllUnhandled {
					return fmt.Errorf("there is no delivery %s that could not be handled; pawl status lists them", guid)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d %s\n", guid, answer.Deliveries, done)
			}
			return nil
		},
	}
	requiredFlag(cmd, &file, "config", "the server's configuration file")
	return cmd
}
