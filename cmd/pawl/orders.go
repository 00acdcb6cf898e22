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

// orderCommand writes a command into the server's database, which a running server sees within a second or two.
func orderCommand(use, short, long string, give func(ctx context.Context, db *store.Store, what string, by commands.Actor) (said string, err error)) *cobra.Command {
	name, what, _ := strings.Cut(use, " ")
	count := cobra.ExactArgs(1)
	if strings.HasSuffix(what, "...") {
		count = cobra.MinimumNArgs(1)
	}
	cmd := &cobra.Command{
		Use:   name + " --config FILE " + what,
		Short: short,
		Args:  count,
		Long:  short + ".\n" + long + "\nThe order stands in the log with your name; a server that runs sees it within a second or two.",
	}
	return onDatabase(cmd, store.Writing, func(_ config.Server, db *store.Store, args []string) error {
		by := operator(db.Now())
		for _, arg := range args {
			said, err := give(cmd.Context(), db, arg, by)
			if err != nil {
				return fmt.Errorf("%s %s: %w", name, arg, err)
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), said); err != nil {
				return err
			}
		}
		return nil
	})
}

// operator is the user of this shell at a time of the database, whose clock dates what is stored.
func operator(now time.Time) commands.Actor {
	p := commands.Actor{Login: "somebody", Where: "in the shell", At: now}
	if u, err := user.Current(); err == nil && u.Username != "" {
		p.Login = u.Username
	}
	return p
}

// orderCommands are the shell's commands from the table, and close-breaker and deliveries.
func orderCommands() []*cobra.Command {
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
	closeBreaker := orderCommand("close-breaker ACCOUNT", "Have an account tried again for which a provider told a limit", "pawl status lists the accounts.",
		func(ctx context.Context, db *store.Store, what string, by commands.Actor) (string, error) {
			return "the breaker of account " + what + " is closed", commands.CloseBreaker(ctx, db, what, by)
		})
	return append(all, closeBreaker, deliveriesCommand())
}

func threadCommand(c policy.CommandRow) *cobra.Command {
	return orderCommand(c.Name+" OWNER/REPO#NUMBER", c.Shell, c.ShellLong, func(ctx context.Context, db *store.Store, what string, by commands.Actor) (string, error) {
		t, err := thread.Parse(what)
		if err != nil {
			return "", usageError{err}
		}
		said := fmt.Sprintf("%s: %s is ordered; pawl status --config FILE %s says what came of it", t, c.Name, t)
		return said, commands.OnThread(ctx, db, c.Name, t, by)
	})
}

func pauseCommand(c policy.CommandRow) *cobra.Command {
	return orderCommand(c.Name+" OWNER/REPO", c.Shell, c.ShellLong, func(ctx context.Context, db *store.Store, what string, by commands.Actor) (string, error) {
		owner, name, err := repository(what)
		if err != nil {
			return "", err
		}
		if c.Name == "unpause" {
			n, err := commands.Unpause(ctx, db, owner, name, by)
			return fmt.Sprintf("%s is not paused any more; threads that go on: %d", what, n), err
		}
		return what + " is paused", commands.OnRepository(ctx, db, c.Name, owner, name, by)
	})
}

func deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "Decide on webhook deliveries that could not be handled",
		Long: "Decide on webhook deliveries that could not be handled. pawl status lists them, with their GUIDs.",
	}
	for _, o := range []struct {
		name, short, done string
		decide            func(ctx context.Context, db *store.Store, guid string, by commands.Actor) (int, error)
	}{
		{"retry", "Have deliveries tried again now, and as often as new ones", "to be tried again", commands.RetryDelivery},
		{"dismiss", "Count deliveries as handled without trying them again", "dismissed", commands.DismissDelivery},
	} {
		cmd.AddCommand(orderCommand(o.name+" GUID...", o.short, "The GUID \""+store.AllUnhandled+"\" means all that could not be handled.",
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
