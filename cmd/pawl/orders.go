package main

import (
	"context"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/orders"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// orderCommand is one that writes an order into the server's database, which a server that runs sees within a
// second or two.
func orderCommand(use, short, long string, give func(ctx context.Context, db *store.Store, what string, by orders.Person) (said string, err error)) *cobra.Command {
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
	return onDatabase(cmd, store.Beside, func(_ config.Server, db *store.Store, args []string) error {
		by := operator()
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

// operator is the user of this shell.
func operator() orders.Person {
	p := orders.Person{Login: "somebody", Where: "in the shell", At: time.Now()}
	if u, err := user.Current(); err == nil && u.Username != "" {
		p.Login = u.Username
	}
	return p
}

// orderCommands are retry, stop and resume, which do what they do in comments, and the orders on what is no thread.
func orderCommands() []*cobra.Command {
	all := []*cobra.Command{
		orderCommand("pause OWNER/REPO", "Let nothing begin in a repository", "Attempts that run go on to their end. policy.paused is the same for a whole server.",
			func(ctx context.Context, db *store.Store, what string, by orders.Person) (string, error) {
				owner, name, err := repository(what)
				if err != nil {
					return "", err
				}
				return what + " is paused", orders.Pause(ctx, db, owner, name, by)
			}),
		orderCommand("unpause OWNER/REPO", "Let a paused repository go on", "Threads that stopped because of the pause go on by themselves.",
			func(ctx context.Context, db *store.Store, what string, by orders.Person) (string, error) {
				owner, name, err := repository(what)
				if err != nil {
					return "", err
				}
				n, err := orders.Unpause(ctx, db, owner, name, by)
				return fmt.Sprintf("%s is not paused any more; threads that go on: %d", what, n), err
			}),
		orderCommand("close-breaker ACCOUNT", "Have an account tried again for which a provider told a limit", "pawl status lists the accounts.",
			func(ctx context.Context, db *store.Store, what string, by orders.Person) (string, error) {
				return "the breaker of account " + what + " is closed", orders.CloseBreaker(ctx, db, what, by)
			}),
	}
	for _, o := range []struct{ name, short, long string }{
		{orders.Retry, "Make one more attempt on a thread", "As the comment /pawl retry does."},
		{orders.Stop, "End the work on a thread, also an attempt that runs", "As the comment /pawl stop does."},
		{orders.Resume, "Go on with a thread that waits or stopped", "As the comment /pawl resume does. What a bound of the day holds back still waits."},
	} {
		all = append(all, orderCommand(o.name+" OWNER/REPO#NUMBER", o.short, o.long, func(ctx context.Context, db *store.Store, what string, by orders.Person) (string, error) {
			t, err := thread.Parse(what)
			if err != nil {
				return "", usageError{err}
			}
			return fmt.Sprintf("%s: %s is ordered; pawl status --config FILE %s says what came of it", t, o.name, t), orders.OnThread(ctx, db, o.name, t, by)
		}))
	}
	return append(all, deliveriesCommand())
}

func deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "Decide on webhook deliveries that could not be handled",
		Long: "Decide on webhook deliveries that could not be handled. pawl status lists them, with their GUIDs.",
	}
	for _, o := range []struct {
		name, short, done string
		decide            func(ctx context.Context, db *store.Store, guid string, by orders.Person) (int, error)
	}{
		{"retry", "Have deliveries tried again now, and as often as new ones", "to be tried again", orders.RetryDelivery},
		{"dismiss", "Count deliveries as handled without trying them again", "dismissed", orders.DismissDelivery},
	} {
		cmd.AddCommand(orderCommand(o.name+" GUID...", o.short, "The GUID \""+store.AllUnhandled+"\" means all that could not be handled.",
			func(ctx context.Context, db *store.Store, guid string, by orders.Person) (string, error) {
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
