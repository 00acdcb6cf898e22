package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/local"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func demoCommand() *cobra.Command {
	var hold bool
	var agent string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Solve an issue on a simulated GitHub, without configuration",
		Args:  cobra.NoArgs,
		Long: "Run the App on loopback against a simulated GitHub, with a real git repository, signed webhooks and a scripted\n" +
			"agent. The App first solves an issue. Then the demo replays the incident that Pawl exists to prevent.\n" +
			"The exit code is 0 only if every check passed. With --agent, a real CLI solves the issue and the\n" +
			"incident is left out.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), agent, hold, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&hold, "hold", false, "keep the pages open until interrupted")
	cmd.Flags().StringVar(&agent, "agent", "", "use a real agent CLI ("+strings.Join(config.CLIs(), ", ")+") instead of the scripted one; without its key in the environment, a simulated provider on loopback answers")
	return cmd
}

const (
	demoRepo = "acme/widgets"
	demoUser = "ada"
	// demoRemark is the comment that the incident's agent posts with a user's token.
	demoRemark = "Status update: I am still looking at the greeting, and I will continue as soon as I can."
	demoRounds = 12 // rounds of the incident; the real incident had 1,249
	demoWait   = 60 * time.Second
)

var demoThread = thread.ID{Owner: "acme", Name: "widgets", Number: 1}

// demoFiles holds the repository's files. Its test fails because hello.txt is missing. The simulated provider solves
// only this task.
var demoFiles = map[string]string{
	"README.md":        "# widgets\n\nGreets.\n",
	"test.sh":          "#!/bin/sh\necho 1..1\n[ -s hello.txt ] || { echo 'not ok 1 - hello.txt greets'; exit 1; }\necho 'ok 1 - hello.txt greets'\n",
	".github/pawl.yml": "verify:\n  - sh test.sh\nchecks: {severity: always, stagnation: always}\n",
}

// demoAgent is the scripted agent, a shell script.
//
//go:embed demo_agent.sh
var demoAgent string

type show struct {
	world *fakegithub.Server
	node  *server.Server
	out   io.Writer
	bad   int
}

func demo(ctx context.Context, agent string, hold bool, out io.Writer) (err error) {
	d := &show{out: out}
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const secret = "demo-secret-0123456789abcdef"
	if d.world, err = fakegithub.New(fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: secret}); err != nil {
		return err
	}
	defer d.world.Close()
	const key = "practice-key-0123456789"
	model, err := fakeprovider.Start(fakeprovider.Options{Key: key})
	if err != nil {
		return err
	}
	defer model.Close()

	cfg := config.Default()
	cfg.HTTP.Address = "127.0.0.1:0"
	cfg.GitHub.WebURL, cfg.GitHub.V3APIURL = d.world.WebURL(), strings.TrimSuffix(d.world.APIURL(), "/")
	cfg.GitHub.App = config.App{
		IntegrationID: 1,
		WebhookSecret: config.NewSecret(secret),
		PrivateKey:    config.NewSecret(string(d.world.PrivateKeyPEM())),
	}
	cfg.Database.Path, cfg.DataDir = filepath.Join(dir, "pawl.db"), dir
	if _, err := sandbox.New(ctx, sandbox.Auto); err != nil {
		d.say("Note: no sandbox here; the agent runs as you (%v).\n", err)
		cfg.Sandbox.Mode = config.SandboxNone
	} else if _, err := server.OpenSandbox(ctx, cfg.Sandbox, ""); err != nil {
		d.say("Note: the agent has this machine's network access (%v).\n", err)
		cfg.Sandbox.Network = config.NetworkOpen
	}
	if err := d.addBackend(&cfg, agent, model, key); err != nil {
		return err
	}
	server.ShowInstalled(&cfg)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served, err := d.begin(serving, cfg)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	return d.play(ctx, agent == "", hold)
}

// addBackend configures the scripted agent or a real CLI. Without a key in the environment the CLI uses a simulated
// provider on loopback.
func (d *show) addBackend(cfg *config.Server, kind string, model *fakeprovider.Server, key string) error {
	if kind == "" {
		b := config.NewBackend("codex", config.Codex)
		b.Argv = []string{"/bin/sh", "-c", demoAgent, "agent", demoRemark}
		cfg.Backends = []config.Backend{b}
		return nil
	}
	if err := local.Standalone(cfg, kind, "", os.LookupEnv); err == nil {
		d.say("%s uses %s with the key from the environment. The key stays outside the sandbox.\n", kind, cfg.Providers[0].BaseURL)
		return nil
	}
	practice := map[string]string{}
	for _, v := range config.Vendors() {
		practice[v.KeyVariable], practice[v.URLVariable] = key, model.URL("edit-success")
		if v.Protocol == config.OpenAI {
			practice[v.URLVariable] += "/v1"
		}
	}
	if err := local.Standalone(cfg, kind, "gpt-5", func(name string) (string, bool) { return practice[name], true }); err != nil {
		return usageError{err}
	}
	d.say("No key in the environment: %s uses a simulated provider on loopback.\n", kind)
	return nil
}

// begin creates the repository and its users, and starts the server.
func (d *show) begin(ctx context.Context, cfg config.Server) (served <-chan error, err error) {
	err = errors.Join(
		d.world.AddRepo(ctx, demoRepo, demoFiles),
		d.world.AddUser(demoUser, 1001, map[string]string{demoRepo: "write"}),
		d.world.AddUser("mallory", 1002, map[string]string{demoRepo: "read"}),
		d.world.Install(demoRepo),
	)
	if err != nil {
		return nil, err
	}
	d.node = server.New(cfg, server.Deps{Now: time.Now, Log: zerolog.Nop(), Build: buildInfo()})
	if served, err = d.node.Start(ctx); err != nil {
		return nil, err
	}
	d.world.SetWebhookURL("http://" + d.node.Address() + "/api/github/hook")
	return served, nil
}

func (d *show) play(ctx context.Context, incident, hold bool) error {
	pull, err := d.solve(ctx)
	if err != nil {
		return err
	}
	if incident {
		if err := d.incident(ctx, pull); err != nil {
			return err
		}
	}
	d.say("\nWhat the maintainer sees on the pull request:")
	for _, c := range d.checks() {
		d.say("\n── %s · %s %s ── %s", c.Name, c.Status, c.Conclusion, c.Title)
		body, _, _ := strings.Cut(c.Summary, "<details>")
		d.say("%s", strings.TrimSpace(body))
	}
	if hold {
		link, err := server.LoginLink(ctx, d.node.Store())
		if err != nil {
			return err
		}
		d.say("\nThe pages stay open. This link signs one browser in and expires in 5 minutes: %s\nPress Ctrl-C to end.", link)
		<-ctx.Done()
	}
	if d.bad > 0 {
		return fmt.Errorf("%d checks failed", d.bad)
	}
	d.say("\nAll checks passed.")
	return nil
}

// solve is the first act: an issue becomes a verified pull request.
func (d *show) solve(ctx context.Context) (pull int, err error) {
	d.say("Act 1: %s asks for a fix", demoUser)
	n, err := d.world.OpenIssue(demoRepo, demoUser, "The greeting is missing", "Create hello.txt with a short greeting.")
	if err != nil {
		return 0, err
	}
	v, err := d.comment(ctx, n, "mallory", "/pawl solve")
	if err != nil {
		return 0, err
	}
	why := "the comment was not handled"
	if len(v.Feedback) > 0 {
		why = v.Feedback[len(v.Feedback)-1].Reason
	}
	d.expect(len(v.Attempts) == 0, "mallory (read access) comments /pawl solve: ignored (%s)", why)
	if v, err = d.comment(ctx, n, demoUser, "/pawl solve"); err != nil {
		return 0, err
	}
	d.expect(v.State == checkrun.Done, "%s (write access) comments /pawl solve: %s after %s", demoUser, v.State, policy.Plural(len(v.Attempts), "attempt"))
	pulls := d.world.Pulls(demoRepo)
	if len(pulls) == 0 {
		return 0, fmt.Errorf("there is no pull request; the thread is %s (%s: %s)", v.State, v.Rule, v.Reasons)
	}
	d.expect(len(pulls) == 1 && !pulls[0].Pull.Draft && pulls[0].Pull.Head == "pawl/issue-1", "one pull request from pawl/issue-1, verified and no longer a draft")
	d.expect(d.statusComments() == 1, "one status comment on the issue")
	acknowledged := func(c fakegithub.Comment) bool { return c.Author == demoUser && len(c.Reactions) > 0 }
	d.expect(slices.ContainsFunc(d.world.Comments(demoRepo, n), acknowledged), "the command was acknowledged with a 👀 reaction")
	text, err := d.world.File(ctx, demoRepo, "pawl/issue-1", "hello.txt")
	d.expect(err == nil && text != "", "the branch has the fix")
	for _, c := range d.checks() {
		d.expect(c.Status == "completed" && c.Conclusion == "success", "check run %-16s %s: %s", c.Name, c.Conclusion, c.Title)
	}
	d.expect(len(d.checks()) == 3, "three check runs on the head commit")
	return pulls[0].Number, nil
}

// incident is the second act. The agent hits its usage limit repeatedly. Each round touches the pull request without
// changing its description. The agent then comments under the user's login. Every third round also adds a comment that
// the user wrote.
func (d *show) incident(ctx context.Context, pull int) error {
	d.say("\nAct 2: the incident, %d rounds", demoRounds)
	for round := range demoRounds {
		if round%3 == 0 {
			if _, err := d.comment(ctx, pull, demoUser, fmt.Sprintf("Please also greet in capital letters (round %d).", round+1)); err != nil {
				return err
			}
		}
		if err := errors.Join(d.world.TouchIssue(demoRepo, pull, demoUser), d.world.EditBody(demoRepo, pull, demoUser, d.world.Pulls(demoRepo)[0].Body)); err != nil {
			return err
		}
		if _, err := d.comment(ctx, pull, demoUser, demoRemark); err != nil {
			return err
		}
	}
	v, err := d.comment(ctx, pull, demoUser, "/pawl why")
	if err != nil {
		return err
	}
	calls := len(v.Attempts) - 1
	d.expect(calls == 3, "%d rounds of events led to %d agent calls, then the breaker opened", demoRounds, calls)
	d.expect(v.State == checkrun.Stopped && v.Rule == policy.RuleLimitBreaker, "the run is %s (%s): %s", v.State, v.Rule, v.Reasons)
	d.expect(len(d.world.Pulls(demoRepo)) == 1 && d.statusComments() == 1, "still one pull request and one status comment")
	comments := d.world.Comments(demoRepo, pull)
	d.expect(strings.Contains(comments[len(comments)-1].Body, "the agent wrote it itself"),
		"/pawl why reports that the agent itself wrote the comments under %s's login", demoUser)
	return nil
}

// comment writes a comment, waits until all its effects are done, and returns the thread's state.
func (d *show) comment(ctx context.Context, number int, by, body string) (v checkrun.View, err error) {
	if _, err := d.world.Comment(demoRepo, number, by, body); err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, demoWait, fmt.Errorf("the comment of %s (%q) was not handled within %s", by, body, demoWait))
	defer cancel()
	if err := d.world.WaitDelivered(ctx); err != nil {
		return v, errors.Join(context.Cause(ctx), err)
	}
	for {
		s, err := d.node.Store().Stats(ctx)
		if err == nil && s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0 {
			return d.node.View(ctx, demoThread)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return v, errors.Join(context.Cause(ctx), err)
		}
	}
}

func (d *show) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *show) expect(ok bool, format string, args ...any) {
	mark := "✓"
	if !ok {
		mark = "✗"
		d.bad++
	}
	d.say("  %s %s", mark, fmt.Sprintf(format, args...))
}

// checks returns the check runs on the pull request's head commit.
func (d *show) checks() []fakegithub.CheckRun {
	head := d.world.Pulls(demoRepo)[0].Pull.HeadSHA
	return slices.DeleteFunc(d.world.CheckRuns(demoRepo), func(c fakegithub.CheckRun) bool { return c.SHA != head })
}

func (d *show) statusComments() int {
	return len(slices.DeleteFunc(d.world.Comments(demoRepo, demoThread.Number), func(c fakegithub.Comment) bool {
		return !strings.Contains(c.Body, checkrun.StatusMarker(demoThread.String()))
	}))
}
