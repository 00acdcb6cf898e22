package main

import (
	"context"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// databaseCommand returns a command that writes to the server's database. give handles one argument and returns the
// message to print.
func databaseCommand(use, short, long string, give func(ctx context.Context, db *store.Store, what string, by commands.Actor) (message string, err error)) *cobra.Command {
	name, what, _ := strings.Cut(use, " ")
	count := cobra.ExactArgs(1)
	if strings.HasSuffix(what, "...") {
		count = cobra.MinimumNArgs(1)
	}
	cmd := &cobra.Command{
		Use:   name + " --config FILE " + what,
		Short: short,
		Args:  count,
		Long:  short + ".\n" + long + "\nPawl logs the command with your name. A running server acts on it within two seconds.",
	}
	return onDatabase(cmd, store.Writing, func(_ config.Server, db *store.Store, args []string) error {
		by := operator(db.Now())
		for _, arg := range args {
			message, err := give(cmd.Context(), db, arg, by)
			if err != nil {
				return fmt.Errorf("%s %s: %w", name, arg, err)
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), message); err != nil {
				return err
			}
		}
		return nil
	})
}

// operator returns this shell's user. now is the database's time, which dates all stored events.
func operator(now time.Time) commands.Actor {
	p := commands.Actor{Login: "unknown", Where: "in the shell", At: now}
	if u, err := user.Current(); err == nil && u.Username != "" {
		p.Login = u.Username
	}
	return p
}

// databaseCommands returns close-breaker, deliveries, and the policy.Commands that have a shell form.
func databaseCommands() []*cobra.Command {
	var all []*cobra.Command
	for _, c := range policy.Commands {
		switch {
		case c.Shell == "":
		case c.Effect == policy.Pauses:
			all = append(all, pauseCommand(c))
		default:
			all = append(all, threadCommand(c))
		}
	}
	closeBreaker := databaseCommand("close-breaker ACCOUNT", "Close an account's breaker before its limit resets", "pawl status lists the accounts.",
		func(ctx context.Context, db *store.Store, what string, by commands.Actor) (string, error) {
			return "the breaker of account " + what + " is closed", commands.CloseBreaker(ctx, db, what, by)
		})
	return append(all, closeBreaker, deliveriesCommand())
}

func threadCommand(c policy.CommandRow) *cobra.Command {
	return databaseCommand(c.Name+" OWNER/REPO#NUMBER", c.Shell, c.ShellLong, func(ctx context.Context, db *store.Store, what string, by commands.Actor) (string, error) {
		t, err := thread.Parse(what)
		if err != nil {
			return "", usageError{err}
		}
		message := fmt.Sprintf("%s: %s is requested; pawl status --config FILE %s shows the result", t, c.Name, t)
		return message, commands.OnThread(ctx, db, c.Name, t, by)
	})
}

func pauseCommand(c policy.CommandRow) *cobra.Command {
	return databaseCommand(c.Name+" OWNER/REPO", c.Shell, c.ShellLong, func(ctx context.Context, db *store.Store, what string, by commands.Actor) (string, error) {
		owner, name, err := repository(what)
		if err != nil {
			return "", err
		}
		if c.Name == "unpause" {
			n, err := commands.Unpause(ctx, db, owner, name, by)
			return fmt.Sprintf("%s is no longer paused; threads that continue: %d", what, n), err
		}
		return what + " is paused", commands.OnRepository(ctx, db, c.Name, owner, name, by)
	})
}

func deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "Retry or dismiss webhook deliveries that could not be handled",
		Long: "Retry or dismiss webhook deliveries that could not be handled. pawl status lists their GUIDs.",
	}
	for _, o := range []struct {
		name, short, done string
		decide            func(ctx context.Context, db *store.Store, guid string, by commands.Actor) (int, error)
	}{
		{"retry", "Retry deliveries now, with as many tries as a new delivery", "will be retried", commands.RetryDelivery},
		{"dismiss", "Treat deliveries as handled without retrying them", "dismissed", commands.DismissDelivery},
	} {
		cmd.AddCommand(databaseCommand(o.name+" GUID...", o.short, "The GUID \""+store.AllUnhandled+"\" means all deliveries that could not be handled.",
			func(ctx context.Context, db *store.Store, guid string, by commands.Actor) (string, error) {
				n, err := o.decide(ctx, db, guid, by)
				return fmt.Sprintf("%s: %d %s", guid, n, o.done), err
			}))
	}
	return cmd
}

func repository(name string) (owner, repo string, err error) {
	owner, repo, ok := strings.Cut(name, "/")
	if !ok || owner == "" || repo == "" || strings.ContainsAny(repo, "/#") {
		return "", "", usageError{fmt.Errorf("%q is not OWNER/REPO", name)}
	}
	return owner, repo, nil
}
