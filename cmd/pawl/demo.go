package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func demoCommand() *cobra.Command {
	var hold bool
	var agent string
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole main job on loopback: nothing to install, nothing to configure", Args: cobra.NoArgs,
		Long: "Run the App against a GitHub on loopback: a real git repository, signed webhooks, a scripted agent.\n" +
			"First it solves an issue, then it lives through the incident that Pawl exists to prevent.\n" +
			"Exits 0 only if everything held. With --agent a real CLI solves the issue, and the incident is left out.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), agent, hold, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&hold, "hold", false, "keep the pages open until interrupted")
	cmd.Flags().StringVar(&agent, "agent", "", "use a real agent CLI (codex, claude, gemini, opencode) instead of the scripted one; without its key in the environment a provider on loopback plays the model")
	return cmd
}

// Who and what the demo is about.
const (
	demoRepo   = "acme/widgets"
	demoPerson = "ada"
	// demoWait bounds each thing that the demo waits for.
	demoWait = 60 * time.Second
)

// demoFiles is the repository: a greeting that is wrong, and a test that says so.
var demoFiles = map[string]string{
	"README.md":        "# widgets\n\nPrints a greeting.\n",
	"greet.sh":         "#!/bin/sh\necho \"Helo, $1\"\n",
	"test.sh":          "#!/bin/sh\n[ \"$(sh greet.sh world)\" = \"Hello, world\" ] || { echo 'FAIL: greet.sh world does not print Hello, world'; exit 1; }\necho ok\n",
	".github/pawl.yml": "verify:\n  - sh test.sh\nchecks: {severity: always, stagnation: always}\n",
}

// practiceFiles is the repository for a provider on loopback, which knows one
// task: a file is missing.
var practiceFiles = map[string]string{
	"README.md":        "# widgets\n\nGreets.\n",
	"test.sh":          "#!/bin/sh\n[ -s hello.txt ] || { echo 'FAIL: there is no hello.txt'; exit 1; }\necho ok\n",
	".github/pawl.yml": "verify:\n  - sh test.sh\nchecks: {severity: always, stagnation: always}\n",
}

// show is one demo: the world, the server, and what was found.
type show struct {
	world *fakegithub.Server
	node  *node
	scene *scene
	out   io.Writer
	dir   string
	bad   int
	// provider plays the model of a real CLI; nil where it has a real one or none.
	provider *fakeprovider.Server
}

func demo(ctx context.Context, agent string, hold bool, out io.Writer) (err error) {
	d := &show{out: out, scene: &scene{}}
	if d.dir, err = os.MkdirTemp("", "pawl-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	if err := d.setUp(serving, agent); err != nil {
		return err
	}
	defer d.world.Close()
	if d.provider != nil {
		defer d.provider.Close()
	}
	served := make(chan error, 1)
	go func() { served <- d.node.serve(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	if err := d.solve(ctx); err != nil {
		return err
	}
	if agent == "" {
		if err := d.incident(ctx); err != nil {
			return err
		}
	}
	d.summaries()
	if hold {
		d.say("\nThe pages stay open: http://%s/ (Pawl); interrupt to end.", d.node.listener.Addr())
		<-ctx.Done()
	}
	if d.bad > 0 {
		return fmt.Errorf("%d things did not hold", d.bad)
	}
	d.say("\nEverything held.")
	return nil
}

// setUp makes the world and a server in it.
func (d *show) setUp(ctx context.Context, agent string) error {
	const secret = "demo-secret-0123456789abcdef"
	var err error
	if d.world, err = fakegithub.New(fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: secret}); err != nil {
		return err
	}
	cfg := config.Default()
	cfg.HTTP.Address = "127.0.0.1:0"
	cfg.GitHub.WebURL, cfg.GitHub.V3APIURL = d.world.WebURL(), strings.TrimSuffix(d.world.APIURL(), "/")
	cfg.GitHub.App = config.App{IntegrationID: 1, WebhookSecret: config.NewSecret(secret), PrivateKey: config.NewSecret(string(d.world.PrivateKeyPEM()))}
	cfg.Database.Path = filepath.Join(d.dir, "pawl.db")
	cfg.DataDir = d.dir
	if _, err := sandbox.New(ctx, sandbox.Auto); err != nil {
		d.say("Note: no sandbox here, the agent runs as you (%v).\n", err)
		cfg.Sandbox.Mode = config.SandboxNone
	}
	if err := d.addBackend(&cfg, agent); err != nil {
		return err
	}
	files := demoFiles
	if d.provider != nil {
		files = practiceFiles
	}
	if err := errors.Join(
		d.world.AddRepo(ctx, demoRepo, files),
		d.world.AddUser(demoPerson, 1001, map[string]string{demoRepo: "write"}),
		d.world.AddUser("mallory", 1002, map[string]string{demoRepo: "read"}),
		d.world.Install(demoRepo),
	); err != nil {
		return err
	}
	if d.node, err = startNode(ctx, cfg, time.Now, zerolog.Nop()); err != nil {
		return err
	}
	d.node.solver.Lookup = d.scene.lookup
	d.world.SetWebhookURL("http://" + d.node.listener.Addr().String() + "/api/github/hook")
	return nil
}

// addBackend configures the scripted agent or a real CLI. Without a key in the environment the CLI talks to a provider on loopback,
// whose answers do what the task asks for.
func (d *show) addBackend(cfg *config.Server, kind string) error {
	if kind == "" {
		b := config.NewBackend("codex", config.Codex)
		b.Argv = []string{"/bin/sh", "-c", demoAgent}
		b.Env = []string{sceneVariable}
		cfg.Backends = []config.Backend{b}
		return nil
	}
	if err := runnable(kind); err != nil {
		return usageError{err}
	}
	if err := standalone(cfg, kind, "", os.LookupEnv); err == nil {
		d.say("%s talks to %s with the key from the environment, which stays outside of the sandbox.\n", kind, cfg.Providers[0].BaseURL)
		return nil
	}
	const key = "practice-key-0123456789"
	var err error
	if d.provider, err = fakeprovider.Start(fakeprovider.Options{Key: key}); err != nil {
		return err
	}
	d.say("No key in the environment: %s talks to a provider on loopback that plays the model.\n", kind)
	useLoopbackProvider(cfg, kind, d.provider, key)
	return nil
}

func (d *show) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// hold checks one thing and says whether it is so.
func (d *show) holds(ok bool, format string, args ...any) {
	mark := "✓"
	if !ok {
		mark = "✗"
		d.bad++
	}
	d.say("  %s %s", mark, fmt.Sprintf(format, args...))
}

// until waits for a thread to satisfy a condition.
func (d *show) until(ctx context.Context, t thread.ID, what string, cond func(checkrun.Facts) bool) (v checkrun.Facts, err error) {
	if !waited(ctx, func() bool {
		v, err = d.node.solver.View(ctx, t)
		return err == nil && cond(v)
	}) {
		return v, fmt.Errorf("%s did not happen within %s; the thread is %s (%s: %s)", what, demoWait, v.State, v.Rule, v.Reasons)
	}
	return v, nil
}

// settled waits until GitHub's deliveries are answered and handled.
func (d *show) settled(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, demoWait)
	defer cancel()
	err := d.world.WaitDelivered(bounded)
	if err != nil {
		return err
	}
	if !waited(ctx, func() bool {
		var s store.Stats
		s, err = d.node.store.Stats(ctx)
		return err == nil && s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0
	}) {
		return fmt.Errorf("deliveries were not handled within %s: %v", demoWait, err)
	}
	return nil
}

// waited looks again and again until cond holds; false says that it did not within
// demoWait.
func waited(ctx context.Context, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, demoWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
