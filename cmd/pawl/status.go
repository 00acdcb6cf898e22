package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func statusCommand() *cobra.Command {
	var (
		thread   string
		learning bool
	)
	cmd := &cobra.Command{
		Use:   "status --config FILE [OWNER/REPO#NUMBER]",
		Short: "Show threads, waits, cooldowns, breakers and backends",
		Args: func(cmd *cobra.Command, args []string) error {
			if learning && len(args) > 0 {
				return errors.New("--learning is about all threads; leave out " + args[0])
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		Long: "Show the state in the server's database: threads, waits, cooldowns, breakers, backends, and webhook deliveries that\n" +
			"could not be handled. The list has the 100 threads that changed last; --json prints all threads. Give a thread to show\n" +
			"only that thread, or --learning to show only what Pawl learned about the backends. The server need not be running.",
	}
	jsonFlag(cmd)
	cmd.Flags().StringVar(&thread, "export", "", "print the log of a thread (owner/repo#number), one event a line; pawl replay reads it")
	cmd.Flags().BoolVar(&learning, "learning", false, "print only what Pawl learned about the backends: rewards, first tries, results of each recovery")
	cmd.MarkFlagsMutuallyExclusive("learning", "export")
	return onDatabase(cmd, store.Reading, func(cfg config.Server, db *store.Store, args []string) error {
		if thread != "" {
			return exportThread(cmd.Context(), db, thread, cmd.OutOrStdout())
		}
		if learning {
			l, err := status.Learning(cmd.Context(), cfg, db, db.Now())
			if err != nil {
				return err
			}
			return printReport(cmd, l, func(w io.Writer) { status.PrintLearning(w, l) })
		}
		if len(args) > 0 {
			return threadReport(cmd, cfg, db, args[0])
		}
		threads := status.SomeThreads
		if asJSON, _ := cmd.Flags().GetBool("json"); asJSON { // jsonFlag declares it
			threads = status.AllThreads
		}
		r, err := status.Read(cmd.Context(), cfg, db, db.Now(), threads)
		if err != nil {
			return err
		}
		return printReport(cmd, r, r.Print)
	})
}

// named returns the thread with this name. For a pull request that Pawl opened, it returns the thread.
func named(ctx context.Context, db *store.Store, name string) (thread.ID, error) {
	t, err := thread.Parse(name)
	if err != nil {
		return t, usageError{err}
	}
	return db.Resolve(ctx, t)
}

// exportThread writes a thread's log as JSON, one event per line, oldest first.
func exportThread(ctx context.Context, db *store.Store, name string, w io.Writer) error {
	t, err := named(ctx, db, name)
	if err != nil {
		return err
	}
	events, err := db.Events(ctx, t, 0)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return fmt.Errorf("export %s: its log is empty; pawl status lists the threads", t)
	}
	b := bufio.NewWriter(w)
	for _, e := range events {
		if err := json.NewEncoder(b).Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}
