package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// runOptions are the flags of pawl run.
type runOptions struct {
	task, taskFile, repo, backend, model, config, sandbox string
	verify                                                []string
	json                                                  bool
}

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run --task TEXT", Short: "Run the solve loop on a local git repository, without GitHub", Args: cobra.NoArgs,
		Long: "Run the solve loop on the committed state of a local git repository. The work is committed to a new branch;\n" +
			"the files in the folder and its current branch are left alone. Receipts are printed; it exits 1 when the\n" +
			"task was not done. Without --config the agent's key comes from the variable in which it usually stands\n" +
			"(OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY) and stays outside of the sandbox.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runLocal(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.task, "task", "", "what the agent is to do")
	f.StringVar(&o.taskFile, "task-file", "", "a file that says what the agent is to do; - reads standard input")
	f.StringVar(&o.repo, "repo", ".", "the folder of the repository")
	f.StringVar(&o.backend, "backend", config.Codex, "a backend of the configuration, or the kind of an agent CLI")
	f.StringVar(&o.model, "model", "", "the model, instead of the backend's own")
	f.StringVar(&o.config, "config", "", "a server's configuration file, for its backends and policy")
	f.StringVar(&o.sandbox, "sandbox", "", "auto (bubblewrap) or none, instead of the configuration's")
	f.StringArrayVar(&o.verify, "verify", nil, "a command line that must succeed, beside those of .github/pawl.yml; may be given more than once")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

// runLocal is pawl run.
func runLocal(ctx context.Context, o runOptions, stdout, stderr io.Writer) error {
	task, err := readTask(o)
	if err != nil {
		return usageError{err}
	}
	dir, err := filepath.Abs(o.repo)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		return usageError{fmt.Errorf("%s is not the top folder of a git repository: give it with --repo", dir)}
	}
	cfg, err := localConfig(o)
	if err != nil {
		return err
	}
	log, err := logger(stderr, cfg.Log.Level)
	if err != nil {
		return err
	}
	box, err := sandbox.New(ctx, sandbox.Mode(cfg.Sandbox.Mode))
	if err != nil {
		return err
	}
	now := time.Now()
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("where to keep the transcripts: %w", err)
	}
	stamp := now.UTC().Format("20060102-150405")
	cfg.DataDir = filepath.Join(cache, "pawl", stamp)
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return err
	}
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(cfg.DataDir, "pawl.db"), store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	door, err := startGateway(ctx, time.Now, log)
	if err != nil {
		return err
	}
	defer door.Close()
	s := &solver.Solver{
		Gateway: door, Program: self(log),
		Store: db, Config: cfg, Sandbox: box, Node: nodeName(), Now: time.Now, Log: log, Lookup: os.LookupEnv,
		Local: &solver.Local{Dir: dir, Branch: "pawl/run-" + stamp, Verify: o.verify},
	}
	t := solver.Thread{Owner: "local", Name: filepath.Base(dir), Number: 1}
	f := solver.Feedback{Source: policy.FromComment, By: policy.Actor{Login: "you"}, Reason: "pawl run", Command: "solve", Text: task, MadeAt: now}
	if _, err := db.Append(ctx, t, false, solver.NewEvent{Kind: solver.KindFeedback, At: now, Data: f}); err != nil {
		return err
	}
	if err := untilOver(ctx, s, t, log); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	v, err := s.View(ctx, t)
	if err != nil {
		return err
	}
	events, err := db.Events(ctx, t, 0)
	if err != nil {
		return err
	}
	state, err := solver.Fold(events)
	if err != nil {
		return err
	}
	if err := receipts(v, state, s.Local, cfg.DataDir, o.json, stdout); err != nil {
		return err
	}
	if v.State != checkrun.Done {
		return fmt.Errorf("the task was not done: %s", v.Rule)
	}
	return nil
}

func readTask(o runOptions) (string, error) {
	switch {
	case o.task != "" && o.taskFile != "":
		return "", errors.New("give either --task or --task-file")
	case o.task != "":
		return o.task, nil
	case o.taskFile == "":
		return "", errors.New("say what to do with --task or --task-file")
	case o.taskFile == "-":
		b, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
		return string(b), err
	}
	b, err := os.ReadFile(o.taskFile)
	return string(b), err
}

// localConfig is the configuration of a run without a server: that of a file, or
// the defaults with one backend.
func localConfig(o runOptions) (config.Server, error) {
	cfg := config.Default()
	cfg.Log.Level = "warn"
	if o.config != "" {
		var err error
		if cfg, err = config.Load(o.config, os.LookupEnv); err != nil {
			return cfg, err
		}
	} else {
		if err := runnable(o.backend); err != nil {
			return cfg, usageError{err}
		}
		if err := standalone(&cfg, o.backend, o.model, os.LookupEnv); err != nil {
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
			return cfg, nil
		}
	}
	return cfg, usageError{fmt.Errorf("backend %q is not in %s", o.backend, o.config)}
}

// untilOver takes steps until the run has ended, and waits where it waits.
func untilOver(ctx context.Context, s *solver.Solver, t solver.Thread, log zerolog.Logger) error {
	for {
		if err := s.Step(ctx, t); err != nil {
			return err
		}
		v, err := s.View(ctx, t)
		if err != nil {
			return err
		}
		if v.State != checkrun.Waiting || v.Rule == "cooldown" {
			// A cooldown takes hours, which nobody sits out at a terminal.
			return nil
		}
		log.Warn().Strs("reasons", v.Reasons).Time("until", v.Until).Msg("waiting")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(max(time.Second, time.Until(v.Until))):
		}
	}
}

// runResult is what pawl run --json prints.
type runResult struct {
	State       checkrun.State `json:"state"`
	Rule        string         `json:"rule"`
	Reasons     []string       `json:"reasons"`
	Branch      string         `json:"branch"`
	Transcripts string         `json:"transcripts"`
	Attempts    []runAttempt   `json:"attempts"`
}

// runAttempt is a receipt with whether it continued a session, and why.
type runAttempt struct {
	solver.Ended
	Continues string `json:"continues,omitempty"`
}

// receipts prints what came of the run.
func receipts(v checkrun.Facts, state solver.State, l *solver.Local, data string, asJSON bool, w io.Writer) error {
	if asJSON {
		out := runResult{State: v.State, Rule: v.Rule, Reasons: v.Reasons, Branch: l.Branch, Transcripts: data, Attempts: []runAttempt{}}
		for _, a := range state.Attempts {
			out.Attempts = append(out.Attempts, runAttempt{Ended: a.Receipt, Continues: a.Continues})
		}
		return json.NewEncoder(w).Encode(out)
	}
	fmt.Fprintf(w, "%s\n\nTranscripts: %s\n", checkrun.Status(v), data)
	if pushed(v) {
		fmt.Fprintf(w, "The work is on branch %s: git diff HEAD...%s\n", l.Branch, l.Branch)
	}
	return nil
}

func pushed(v checkrun.Facts) bool {
	for _, a := range v.Attempts {
		if a.Commit != "" {
			return true
		}
	}
	return false
}
