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
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/server"
)

// gcPercent replaces Go's default of 100, unless GOGC is set. The live heap is only a few megabytes. With Go's default,
// garbage collection takes a twelfth of the CPU time spent on webhooks (lab/bench ratios, memory).
const gcPercent = 150

func serveCommand() *cobra.Command {
	var file server.File
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Run the GitHub App: webhooks, queue, solver and pages",
		Args:  cobra.NoArgs,
		Long: "Run the GitHub App until SIGTERM or Ctrl-C. The server then starts no new work. Attempts may continue for\n" +
			"server.drain; a second SIGTERM skips that time. The server hands over unfinished attempts and exits within 30 s.\n" +
			"At startup it waits for PostgreSQL. It exits if git, the sandbox, data_dir or every backend fails; pawl doctor\n" +
			"names the cause.\n" +
			"The server reloads its file when the file changes and at SIGHUP; docs/configuration.md lists the keys that need\n" +
			"a restart.",
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
	if cfg.Sandbox.Bare() {
		if err := sandbox.HideProcess(); err != nil {
			return err
		}
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
