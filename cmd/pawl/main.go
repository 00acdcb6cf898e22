package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
)

// Exit codes of every subcommand.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitInterrupted is 128 plus the number of SIGINT, as in shells.
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// usageError is the user's mistake on the command line.
type usageError struct{ error }

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	started := false
	root := &cobra.Command{
		Use:           "pawl",
		Short:         "Runs coding agents on issues and pull requests, and stops them when they run away.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       buildInfo().String(),
		// Every error before started is set is a usage error.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := useConfigHere(cmd); err != nil {
				return err
			}
			if err := cmd.ValidateRequiredFlags(); err != nil {
				if missesConfig(cmd) {
					return fmt.Errorf("%w, and this folder has no %s", err, configHere)
				}
				return err
			}
			started = true
			return nil
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(
		serveCommand(),
		demoCommand(),
		runCommand(),
		inspectCommand(),
		checkCommand(),
		replayCommand(),
		statusCommand(),
		logsCommand(),
		loginCommand(),
		doctorCommand(),
		setupCommand(),
		mcpCommand(),
		versionCommand(),
		insideCommand(),
	)
	root.AddCommand(databaseCommands()...)
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(stderr, "pawl:", render.Clean(err.Error()))
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if _, misused := errors.AsType[usageError](err); misused || !started {
		fmt.Fprintf(stderr, "pawl: see %s --help\n", called.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// configHere is the default of --config, if the current folder has this file.
const configHere = "pawl.yml"

// foreignFolder annotates a command whose current folder may be another user's repository. Without --config, such a
// command refuses a configuration file that git tracks.
const foreignFolder = "foreign folder"

// useConfigHere sets --config to the current folder's file, if there is one. A configuration names programs that run
// outside the sandbox, and the addresses that get the keys. Commands with the annotation foreignFolder therefore refuse
// a file that came with the repository: the user must pass it with --config.
func useConfigHere(cmd *cobra.Command) error {
	if !missesConfig(cmd) {
		return nil
	}
	info, err := os.Stat(configHere)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if cmd.Annotations[foreignFolder] != "" && tracked(cmd.Context(), configHere) {
		return fmt.Errorf("%s came with this repository, and could run programs of its author with your keys; "+
			"read it, then pass --config %[1]s to use it or --config \"\" to ignore it", configHere)
	}
	return cmd.Flags().Set("config", configHere)
}

// missesConfig reports whether a command has the flag --config and the user did not set it.
func missesConfig(cmd *cobra.Command) bool {
	flag := cmd.Flags().Lookup("config")
	return flag != nil && !flag.Changed
}

// tracked reports whether a file of the current folder is in a git repository's index.
func tracked(ctx context.Context, file string) bool {
	return exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "ls-files", "--error-unmatch", "--", file).Run() == nil
}

func requiredFlag(cmd *cobra.Command, value *string, name, usage string) {
	cmd.Flags().StringVar(value, name, "", usage)
	_ = cmd.MarkFlagRequired(name) // the flag is declared one line above
}

// serverConfig is the usage text of --config for commands that need a server's configuration.
const serverConfig = "the server's configuration file (default: " + configHere + " in the current folder)"

func jsonFlag(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print one JSON object") }

// printReport prints a command's result: one JSON object, or print's text without control characters. print writes
// to memory, so it cannot fail.
func printReport(cmd *cobra.Command, report any, print func(io.Writer)) error {
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON { // jsonFlag declares it
		return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	}
	var out strings.Builder
	print(&out)
	_, err := io.WriteString(cmd.OutOrStdout(), render.Clean(out.String()))
	return err
}

// loadOrDefault reads a configuration for work without GitHub, or returns the defaults if file is empty.
func loadOrDefault(file string) (config.Server, error) {
	if file == "" {
		return config.Default(), nil
	}
	return config.LoadWithoutApp(file, os.LookupEnv)
}

// withDatabase calls do with a server's configuration and its open database. The server may be running.
func withDatabase(ctx context.Context, file string, access store.Access, do func(cfg config.Server, db *store.Store) error) error {
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, cfg.Database.DSN(), store.Options{Access: access})
	if err != nil {
		return err
	}
	defer db.Close()
	return do(cfg, db)
}

// onDatabase adds --config to cmd and makes do its action, with that server's database open.
func onDatabase(cmd *cobra.Command, access store.Access, do func(cfg config.Server, db *store.Store, args []string) error) *cobra.Command {
	var file string
	requiredFlag(cmd, &file, "config", serverConfig)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withDatabase(cmd.Context(), file, access, func(cfg config.Server, db *store.Store) error { return do(cfg, db, args) })
	}
	return cmd
}

// logger writes JSON lines, or readable lines on a terminal.
func logger(w io.Writer) zerolog.Logger {
	if terminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Set by the linker (see the Makefile). If they are empty, buildInfo uses the values that go build records.
var (
	version string
	commit  string
)

func buildInfo() web.Build {
	var module, revision string
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return web.Build{
		Version: cmp.Or(version, module, "(devel)"),
		Commit:  cmp.Or(commit, revision, "unknown"),
		Go:      runtime.Version(),
	}
}

func versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := buildInfo()
			return printReport(cmd, b, func(w io.Writer) { fmt.Fprintln(w, b) })
		},
	}
	jsonFlag(cmd)
	return cmd
}
