package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

type runOptions struct {
	task, taskFile, repo, backend, model, config, sandbox string
	verify                                                []string
	json                                                  bool
}

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run --task TEXT",
		Short: "Run the solve loop on a local git repository, without GitHub",
		Args:  cobra.NoArgs,
		Long: "Run the solve loop on the committed state of a local git repository. The work is committed to a new branch;\n" +
			"the files in the folder and its current branch are left alone. Receipts are printed; it exits 1 when the\n" +
			"task was not done, or, with --verify, when the work is not verified: a command did not exit 0, no test ran, failures\n" +
			"were reported all the same, or it passes only with changed tests or with fewer than before. Without --config the\n" +
			"agent's key comes from its usual variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY) and stays outside of the sandbox.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runLocal(cmd, o)
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

func runLocal(cmd *cobra.Command, o runOptions) error {
	ctx := cmd.Context()
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
	log := logger(cmd.ErrOrStderr()).Level(server.Level(cfg.Log.Level))
	box, err := server.OpenSandbox(ctx, cfg.Sandbox, "")
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("where to keep the transcripts: %w", err)
	}
	if cfg.DataDir, err = newRun(ctx, filepath.Join(cache, "pawl"), time.Now()); err != nil {
		return err
	}
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(cfg.DataDir, runDatabase), store.Options{})
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
	// Runs on the same folder share what an earlier one set up.
	s.Env.UseLayers(filepath.Join(cache, "pawl", "layers", thread.Hash(work.Dir)))
	defer os.RemoveAll(filepath.Join(cfg.DataDir, "verify")) // what the commands came to on a base, for this run
	return solveLocally(cmd, s, work, task, o.json)
}

// solveLocally asks for the work, waits until it is over and prints what came of it.
func solveLocally(cmd *cobra.Command, s *solver.Solver, work solver.Folder, task string, asJSON bool) error {
	ctx, now := cmd.Context(), time.Now()
	t := thread.ID{Owner: "local", Name: filepath.Base(work.Dir), Number: 1}
	f := thread.Feedback{
		Source:  policy.FromComment,
		By:      feedback.Actor{Login: "you"},
		Reason:  "pawl run",
		Command: "solve",
		Text:    task,
		MadeAt:  now,
	}
	if _, err := s.Env.Store.Append(ctx, t, false, thread.NewEvent{
		Kind: thread.KindFeedback,
		At:   now,
		Data: f,
	}); err != nil {
		return err
	}
	telling, over := context.WithCancel(ctx)
	var told sync.WaitGroup
	if !asJSON {
		p := &progress{w: cmd.ErrOrStderr(), over: terminal(cmd.ErrOrStderr())}
		s.Env.OnPrepare = p.prepares
		told.Go(func() { p.tell(telling, s, t) })
	}
	err := untilOver(ctx, s, t)
	over()
	told.Wait()
	if err != nil {
		return fmt.Errorf("%w; the transcripts until then are in %s", err, s.Env.Config.DataDir)
	}
	ctx = context.WithoutCancel(ctx)
	v, err := s.View(ctx, t)
	if err != nil {
		return err
	}
	v.Branch = work.Branch
	pushed := slices.ContainsFunc(v.Attempts, func(a checkrun.Attempt) bool { return a.Pushed })
	err = printReport(cmd, resultOf(v, s.Env.Config.DataDir), func(w io.Writer) {
		showThread(w, v)
		fmt.Fprintf(w, "\nTranscripts: %s\n", s.Env.Config.DataDir)
		if pushed {
			fmt.Fprintf(w, "The work is on branch %s: git diff HEAD...%s\n", work.Branch, work.Branch)
		}
	})
	if err != nil {
		return err
	}
	if !asJSON && pushed {
		if err := showWork(ctx, work, cmd.OutOrStdout()); err != nil {
			return fmt.Errorf("show the work: %w; git diff HEAD...%s shows it", err, work.Branch)
		}
	}
	if v.State != checkrun.Done {
		return fmt.Errorf("the task was not done: %s", v.Rule)
	}
	if what, ok := v.Attempts[len(v.Attempts)-1].Verified(); !ok && len(s.Verify) > 0 {
		return fmt.Errorf("the task was done, but the work is not verified: %s", what)
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

// localConfig is the configuration without a server: a file's, or the defaults with one backend.
func localConfig(o runOptions) (config.Server, error) {
	cfg, err := loadOrDefault(o.config)
	if err != nil {
		return cfg, err
	}
	if o.config == "" {
		cfg.Log.Level = "warn"
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
			server.ShowInstalled(&cfg)
			return cfg, nil
		}
	}
	return cfg, usageError{fmt.Errorf("backend %q is not in %s", o.backend, o.config)}
}

// untilOver takes steps until the run has ended, and waits where it waits.
func untilOver(ctx context.Context, s *solver.Solver, t thread.ID) error {
	for {
		if err := s.Step(ctx, t); err != nil {
			return err
		}
		v, err := s.View(ctx, t)
		if err != nil {
			return err
		}
		if v.State != checkrun.Waiting || v.Rule == policy.RuleCooldown {
			// A cooldown takes hours, which nobody sits out at a terminal.
			return nil
		}
		s.Env.Log.Warn().Strs("reasons", v.Reasons.Texts()).Time("until", v.Until).Msg("waiting")
		if err := wait.For(ctx, max(time.Second, time.Until(v.Until))); err != nil {
			return err
		}
	}
}

// runResult is what pawl run --json prints.
type runResult struct {
	State       checkrun.State `json:"state"`
	Rule        policy.Rule    `json:"rule"`
	Reasons     []string       `json:"reasons"`
	Branch      string         `json:"branch"`
	Transcripts string         `json:"transcripts"`
	Attempts    []runAttempt   `json:"attempts"`
}

// runAttempt is a receipt with whether it continued a session, and why, and with what became of the tests beside
// those of the base.
type runAttempt struct {
	policy.Receipt
	Continues string   `json:"continues,omitempty"`
	Tests     runTests `json:"tests,omitzero"`
}

type runTests struct {
	Removed  []string `json:"removed,omitempty"`
	Changed  []string `json:"changed,omitempty"` // files on the tests' side
	Fixed    []string `json:"fixed,omitempty"`
	Broken   []string `json:"broken,omitempty"`
	Flaky    []string `json:"flaky,omitempty"`
	AsBefore []string `json:"as_before,omitempty"`
}

func resultOf(v checkrun.View, transcripts string) runResult {
	out := runResult{
		State:       v.State,
		Rule:        v.Rule,
		Reasons:     v.Reasons.Texts(),
		Branch:      v.Branch,
		Transcripts: transcripts,
		Attempts:    []runAttempt{},
	}
	for _, a := range v.Attempts {
		tests := runTests{Fixed: a.Fixed(), Broken: a.Receipt.Tests, Flaky: a.Flaky(), AsBefore: a.Known()}
		if e := a.TestEvidence; e != nil {
			tests.Removed, tests.Changed = e.Removed, e.Changed
		}
		out.Attempts = append(out.Attempts, runAttempt{a.Receipt, a.Continues, tests})
	}
	return out
}

const (
	runDatabase = "pawl.db" // of a run, in its folder; it is locked while the run works
	runsKept    = 20        // how many runs' transcripts stay, beside that of this one
)

// newRun makes the folder of a run, named by its time: 20260304-140300, or 20260304-140300-2 for another of that second.
func newRun(ctx context.Context, cache string, now time.Time) (dir string, err error) {
	dir = filepath.Join(cache, now.UTC().Format("20060102-150405"))
	err = errors.Join(os.MkdirAll(cache, 0o700), clearRuns(ctx, cache))
	for n, first := 2, dir; err == nil; n++ {
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
		dir, err = fmt.Sprintf("%s-%d", first, n), nil
	}
	return dir, err
}

// clearRuns removes what older runs left in the cache, but for the newest and those at work.
func clearRuns(ctx context.Context, cache string) error {
	runs, err := filepath.Glob(filepath.Join(cache, "[0-9]*-[0-9]*")) // in the order of their times
	if err != nil {
		return err
	}
	for _, dir := range runs[:max(0, len(runs)-runsKept)] {
		lock, err := wait.Lock(ctx, filepath.Join(dir, runDatabase), 0)
		if errors.Is(err, wait.ErrLocked) {
			continue
		}
		if err == nil {
			err = git.Remove(dir)
			lock.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another run removes it, too
			return fmt.Errorf("remove an older run: %w", err)
		}
	}
	return nil
}

// standalone makes an agent CLI the only backend without a file. Its key, from the usual variable, stays with
// the gateway.
func standalone(cfg *config.Server, kind, model string, lookup func(string) (string, bool)) error {
	adapter, err := clis.For(kind, "")
	if err != nil || kind == config.Command {
		return fmt.Errorf("backend %q needs a configuration file that describes it: give it with --config", kind)
	}
	if _, err := exec.LookPath(kind); err != nil {
		return fmt.Errorf("%w: %s", err, adapter.Version.Hint())
	}
	b := config.NewBackend(kind, kind)
	b.Model = model
	var names []string
	for _, v := range config.Vendors() {
		if v.Protocol != cmp.Or(config.ProtocolOf(kind), v.Protocol) {
			continue
		}
		names = append(names, v.KeyVariable)
		key, _ := lookup(v.KeyVariable)
		if key == "" || b.Provider != "" {
			continue
		}
		base, _ := lookup(v.URLVariable)
		p := config.NewProvider(v.Protocol, v.Protocol)
		p.BaseURL, p.Key = cmp.Or(strings.TrimRight(base, "/"), p.BaseURL), config.NewSecret(key)
		cfg.Providers, b.Provider = []config.Provider{p}, p.Name
	}
	if b.Provider == "" {
		return fmt.Errorf("backend %s needs a key: set %s, or describe it in a configuration file (--config)", kind, strings.Join(names, " or "))
	}
	b.Model = cmp.Or(b.Model, config.DefaultModel(kind, cfg.Providers[0].Protocol))
	cfg.Backends = []config.Backend{b}
	return nil
}
