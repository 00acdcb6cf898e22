package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/local"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

type runOptions struct {
	task, taskFile, repo, backend, model, config, sandbox string
	verify                                                []string
	json, quiet                                           bool
}

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run --task TEXT",
		Short: "Run the solve loop on a local git repository, without GitHub",
		Args:  taskIsAFlag,
		// The current folder is often a repository with other users' files.
		Annotations: map[string]string{foreignFolder: "yes"},
		Long: "Run the solve loop on the last commit of a local git repository. Pawl commits the work to a new branch and leaves\n" +
			"your files and your current branch unchanged. It shows the agent's messages and actions as they happen.\n" +
			"Ctrl-C keeps the work so far on the branch and exits with 130; a second Ctrl-C exits at once.\n" +
			"The exit code is 1 if the task was not done. With --verify it is also 1 if the work is not verified: a command\n" +
			"failed, no test ran, a test failed despite exit code 0, or the work passes only with changed or fewer tests.\n" +
			"Without --config the agent's key comes from its usual variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY)\n" +
			"and stays outside the sandbox.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runLocal(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.task, "task", "", "the agent's task")
	f.StringVar(&o.taskFile, "task-file", "", "a file with the agent's task; - reads standard input")
	f.StringVar(&o.repo, "repo", ".", "the repository, or a folder in it")
	f.StringVar(&o.backend, "backend", "", "a backend of the configuration, or an agent CLI (default: the configuration's only backend, else codex)")
	f.StringVar(&o.model, "model", "", "the model, instead of the backend's own")
	f.StringVar(&o.config, "config", "", "a server's configuration file, for its backends and policy (default: "+configHere+" in the current folder; refused if git tracks it)")
	f.StringVar(&o.sandbox, "sandbox", "", "auto (bubblewrap) or none, instead of the configuration's")
	f.StringArrayVar(&o.verify, "verify", nil, "a command line that must succeed, in addition to the commands of .github/pawl.yml; may be repeated")
	f.BoolVar(&o.json, "json", false, "print one JSON object, and no progress")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not show the agent's messages and actions")
	return cmd
}

// taskIsAFlag refuses arguments. An argument is most likely a task whose --task is missing.
func taskIsAFlag(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	task := config.CommandLine([]string{strings.Join(args, " ")})
	return fmt.Errorf("the task is given with --task: pawl run --task %s", task)
}

// topFolder returns the top folder of the git repository that contains a folder.
func topFolder(in string) (string, error) {
	from, err := filepath.Abs(in)
	if err != nil {
		return "", err
	}
	for dir := from; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, ".git"))
		if err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is in no git repository: give one with --repo", from)
		}
	}
}

func runLocal(cmd *cobra.Command, o runOptions) error {
	ctx := cmd.Context()
	if slices.ContainsFunc(o.verify, blank) {
		return usageError{errors.New("--verify is empty: give it a command line, or leave it out")}
	}
	task, err := readTask(o)
	if err != nil {
		return usageError{err}
	}
	dir, err := topFolder(o.repo)
	if err != nil {
		return usageError{err}
	}
	cfg, err := localConfig(o)
	if err != nil {
		return err
	}
	box, err := server.OpenSandbox(ctx, cfg.Sandbox, "")
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find a folder for the transcripts: %w", err)
	}
	if cfg.DataDir, err = local.NewRun(ctx, filepath.Join(cache, "pawl"), time.Now()); err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(cfg.DataDir, "pawl.log"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	log := logger(logFile).Level(server.Level(cfg.Log.Level))
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(cfg.DataDir, local.Database), store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	work := solver.Folder{Dir: dir, Branch: "pawl/run-" + filepath.Base(cfg.DataDir)}
	s := &solver.Solver{
		Env: attempt.Env{
			Store: db, Config: cfg, Sandbox: box, Node: server.NodeName(), Now: time.Now, Log: log, Lookup: os.LookupEnv,
			Gateway: server.NewGateway(time.Now, log), Program: server.Program("", log),
		},
		Host: work, Verify: o.verify,
	}
	// Runs on the same folder share the setup's result.
	s.Env.UseLayers(filepath.Join(cache, "pawl", "layers", thread.Hash(work.Dir)))
	defer os.RemoveAll(filepath.Join(cfg.DataDir, "verify")) // other runs do not use these test results of the base commit
	return solveLocally(cmd, s, work, task, o)
}

// solveLocally requests the work, waits for its end and prints the result.
func solveLocally(cmd *cobra.Command, s *solver.Solver, work solver.Folder, task string, o runOptions) error {
	t := local.Thread(work.Dir)
	if err := local.Ask(cmd.Context(), s, t, task); err != nil {
		return err
	}
	err := workLocally(cmd, s, work, o)
	interrupted := err != nil && cmd.Context().Err() != nil
	if err != nil && !interrupted {
		return fmt.Errorf("%w; see the transcripts and the log in %s", err, s.Env.Config.DataDir)
	}
	ctx := context.WithoutCancel(cmd.Context())
	kept, err := local.Keep(ctx, s, t, work)
	if err != nil {
		return err
	}
	v, err := s.View(ctx, t)
	if err != nil {
		return err
	}
	v.Branch, v.Base = work.Branch, currentBranch(ctx, work.Dir)
	pushed := kept || slices.ContainsFunc(v.Attempts, func(a checkrun.Attempt) bool { return a.Pushed })
	if interrupted {
		return showInterrupted(cmd, s, v, pushed)
	}
	err = printReport(cmd, local.ResultOf(v, s.Env.Config.DataDir), func(w io.Writer) {
		showThread(w, v)
		showPaths(w, s, v, pushed)
	})
	if err != nil {
		return err
	}
	if !o.json && pushed {
		if err := showWork(ctx, work, cmd.OutOrStdout()); err != nil {
			return fmt.Errorf("show the work: %w; git diff HEAD...%s shows it", err, work.Branch)
		}
	}
	return notDone(v, len(s.Verify) > 0)
}

// workLocally runs the task to its end and prints the progress. It returns an error if the command is interrupted.
func workLocally(cmd *cobra.Command, s *solver.Solver, work solver.Folder, o runOptions) error {
	w := cmd.ErrOrStderr()
	if o.json {
		w = io.Discard
	}
	p := &progress{w: w, status: terminal(w)}
	feed := &local.Feed{Print: p.print, Quiet: o.quiet || o.json}
	warnDirty(cmd.Context(), p, work.Dir)
	s.Env.OnBegin, s.Env.OnEvent = feed.Begin, feed.Event
	s.Env.OnReceipt = func(_ string, r policy.Receipt) { feed.End(r) }
	s.Env.OnPrepare = func(what string) {
		p.prepares(what)
		feed.Prepare(what)
	}
	ctx, end := local.Interruptible(cmd.Context(), s)
	defer end()
	defer endAtOnce(s.Env.ProcessPrefix())()
	defer context.AfterFunc(cmd.Context(), func() {
		p.print("Interrupted: stopping the agent and keeping its work so far. Press Ctrl-C again to exit at once.")
	})()
	t := local.Thread(work.Dir)
	showing, stop := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() { p.show(showing, s, t) })
	err := local.Work(ctx, s, t, feed.Wait)
	stop()
	shown.Wait()
	return err
}

// endAtOnce waits for a second signal, then kills all started processes and exits. The caller must call stop.
func endAtOnce(processes string) (stop func()) {
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
		}
		if err := sandbox.EndAll(processes); err != nil {
			fmt.Fprintln(os.Stderr, "pawl:", err)
		}
		os.Exit(exitInterrupted)
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// warnDirty warns of uncommitted changes, which the agent does not see.
func warnDirty(ctx context.Context, p *progress, dir string) {
	n, err := local.Dirty(ctx, dir)
	switch {
	case err != nil:
		p.print(err.Error())
	case n == 1:
		p.print("1 file has uncommitted changes; the agent does not see them")
	case n > 1:
		p.print(policy.Plural(n, "file") + " have uncommitted changes; the agent does not see them")
	}
}

// showPaths prints the folder of a run's transcripts and, if work was pushed, its branch.
func showPaths(w io.Writer, s *solver.Solver, v checkrun.View, pushed bool) {
	fmt.Fprintf(w, "\nTranscripts: %s\n", s.Env.Config.DataDir)
	if pushed {
		fmt.Fprintf(w, "The work is on branch %s: git diff HEAD...%[1]s\n", v.Branch)
	}
}

// showInterrupted prints an interrupted run's result, and returns an error that states the interruption.
func showInterrupted(cmd *cobra.Command, s *solver.Solver, v checkrun.View, pushed bool) error {
	result := local.ResultOf(v, s.Env.Config.DataDir)
	result.Interrupted = true
	err := printReport(cmd, result, func(w io.Writer) { showPaths(w, s, v, pushed) })
	if err != nil {
		return err
	}
	if pushed {
		return errors.New("interrupted")
	}
	return errors.New("interrupted before any file was changed")
}

// notDone returns an error if the task was not done. With --verify it also does so if the work is not verified.
func notDone(v checkrun.View, verifies bool) error {
	if v.State == checkrun.Waiting {
		return fmt.Errorf("the task was not done: %s; run it again after the wait", checkrun.Headline(v))
	}
	if v.State != checkrun.Done {
		return fmt.Errorf("the task was not done: %s", v.Rule)
	}
	last := v.Attempts[len(v.Attempts)-1]
	if verifies && !last.CommandsPassed() {
		return fmt.Errorf("the work is not verified: %s", last.VerifiedWords(v.Base))
	}
	return nil
}

// blank reports whether a command line is empty. An empty command line would verify nothing.
func blank(command string) bool { return strings.TrimSpace(command) == "" }

// currentBranch returns a folder's branch, or empty on a detached HEAD.
func currentBranch(ctx context.Context, dir string) string {
	// On an error there is no branch, and git prints nothing to standard output.
	name, _ := exec.CommandContext(ctx, "git", "-C", dir, "symbolic-ref", "--quiet", "--short", "HEAD").Output()
	return strings.TrimSpace(string(name))
}

func readTask(o runOptions) (string, error) {
	switch {
	case o.task != "" && o.taskFile != "":
		return "", errors.New("give either --task or --task-file")
	case o.task != "":
		return o.task, nil
	case o.taskFile == "":
		return "", errors.New("give the task with --task or --task-file")
	case o.taskFile == "-":
		b, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
		return string(b), err
	}
	b, err := os.ReadFile(o.taskFile)
	return string(b), err
}

// localConfig returns the configuration in --config's file, or the defaults. It keeps only the chosen backend.
func localConfig(o runOptions) (config.Server, error) {
	cfg, err := loadOrDefault(o.config)
	if err != nil {
		return cfg, err
	}
	if o.backend == "" {
		o.backend = usualBackend(cfg.Backends)
	}
	if o.config == "" {
		cfg.Log.Level = "warn"
		if err := local.Standalone(&cfg, o.backend, o.model, os.LookupEnv); err != nil {
			return cfg, usageError{err}
		}
	}
	switch o.sandbox {
	case "":
	case config.SandboxAuto, config.SandboxNone:
		cfg.Sandbox.Mode = o.sandbox
	default:
		return cfg, usageError{fmt.Errorf("--sandbox %s: use %s or %s", o.sandbox, config.SandboxAuto, config.SandboxNone)}
	}
	cfg.HTTP.PublicURL = ""
	for _, b := range cfg.Backends {
		if b.Name == o.backend {
			b.Model = cmp.Or(o.model, b.Model)
			cfg.Backends = []config.Backend{b}
			server.ShowInstalled(&cfg)
			return cfg, nil
		}
	}
	return cfg, usageError{fmt.Errorf("backend %q is not in %s, which has %s: give one with --backend", o.backend, o.config, names(cfg.Backends))}
}

func usualBackend(all []config.Backend) string {
	if len(all) == 1 {
		return all[0].Name
	}
	return config.Codex
}

func names(all []config.Backend) string {
	var list []string
	for _, b := range all {
		list = append(list, b.Name)
	}
	return strings.Join(list, ", ")
}
