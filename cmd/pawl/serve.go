package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/server"
)

// gcPercent lets a server's memory grow more than Go's 100 before garbage collection: the live memory is a few
// megabytes, and collecting takes a twelfth of the processor time of answering webhooks (lab/bench ratios, memory).
// The environment's GOGC has priority.
const gcPercent = 150

func serveCommand() *cobra.Command {
	var file server.File
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Run the GitHub App: webhooks, queue, solver and pages",
		Args:  cobra.NoArgs,
		Long: "Run the GitHub App until it gets SIGTERM or is interrupted: then it begins no more work, lets attempts go on for\n" +
			"server.drain (a second SIGTERM ends that), hands over what is left of them and exits within 30 s. It waits for a\n" +
			"PostgreSQL that does not answer yet, and refuses to start where anything else that it needs does not work; pawl doctor\n" +
			"says what. When its file changes, or at SIGHUP, it goes on with the new one; docs/configuration.md says what only a\n" +
			"start reads.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			file.Hangup = hangup
			return serve(cmd.Context(), &file, logger(cmd.ErrOrStderr()))
		},
	}
	requiredFlag(cmd, &file.Name, "config", serverConfig)
	cmd.Flags().StringVar(&file.Listen, "listen", "", "address to listen on, instead of the configuration's")
	return cmd
}

func serve(ctx context.Context, file *server.File, log zerolog.Logger) error {
	cfg, err := file.Read()
	if err != nil {
		return err
	}
	zerolog.SetGlobalLevel(server.Level(cfg.Log.Level))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	s := server.New(cfg, server.Deps{
		Now:     crash.Clock(time.Now),
		Log:     log,
		Build:   buildInfo(),
		Check:   doctor.AtStart(buildInfo()),
		File:    file,
		Started: debug.FreeOSMemory,
	})
	return s.Run(ctx)
}
