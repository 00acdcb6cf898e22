package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/catchup"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
)

// quickSteps is how many steps may be at work beside the attempts: deciding, acknowledging, and waiting for
// one of the places of attempts or, without one, for GitHub.
const quickSteps = 32

// stopTime is how long a stopping server waits for its steps: a supervisor usually kills after 30 s.
const stopTime = 25 * time.Second

func serveCommand() *cobra.Command {
	var file, listen string
	cmd := &cobra.Command{
		Use: "serve --config FILE", Short: "Run the GitHub App: webhooks, queue, solver and pages", Args: cobra.NoArgs,
		Long: "Run the GitHub App until it gets SIGTERM or is interrupted: then it begins no more work, lets attempts go on for\n" +
			"server.drain (a second SIGTERM ends that), hands over what is left of them and exits within 30 s. It waits for a\n" +
			"PostgreSQL that does not answer yet, and refuses to start where anything else that it needs does not work; pawl doctor\n" +
			"says what. When its file changes, or at SIGHUP, it goes on with the new one; docs/configuration.md says what only a\n" +
			"start reads.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			hup := make(chan os.Signal, 1)
			signal.Notify(hup, syscall.SIGHUP)
			followed := &configFile{name: file, listen: listen}
			cfg, err := followed.read()
			if err != nil {
				return err
			}
			log := logger(cmd.ErrOrStderr())
			zerolog.SetGlobalLevel(levelOf(cfg.Log.Level))
			later, err := startChecks(cmd.Context(), &cfg, log)
			var n *node
			if err == nil {
				n, err = startNode(cmd.Context(), cfg, crash.Clock(time.Now), log)
			}
			if err != nil && cmd.Context().Err() != nil {
				log.Info().Err(err).Msg("stopped before it served")
				return nil
			}
			if err != nil {
				return err
			}
			debug.FreeOSMemory() // what only the start needed; again after the first look at GitHub
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			working, stop := context.WithCancel(cmd.Context())
			defer stop()
			go later(working)
			go n.follow(working, followed, cfg, hup)
			return n.serve(cmd.Context())
		},
	}
	requiredFlag(cmd, &file, "config", "the server's configuration file")
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen on, instead of the configuration's")
	return cmd
}

// gcPercent lets a server's memory grow a little more than Go's 100 before garbage is collected: the live
// memory is a few megabytes, and collecting takes a twelfth of the processor time of answering webhooks
// (internal/bench ratios, memory). The environment's GOGC goes before it.
const gcPercent = 150

// node is one running server. This file is the one place where the real parts are put together.
type node struct {
	cfg           config.Server
	log           zerolog.Logger
	store         *store.Store
	queue         *queue.Queue
	solver        *solver.Solver
	forge         *forge.Client
	listener      net.Listener
	http          *http.Server
	pagesListener net.Listener
	pagesHTTP     *http.Server
	data          *dataFolder
	github        *githubHealth
	hookRanges    atomic.Pointer[[]netip.Prefix] // nil while they are not known
	trusts        func(netip.Addr) bool          // whether signed webhooks came from an address; nil for never
	background    sync.WaitGroup                 // what works beside the queue, until stop
	stop          context.CancelFunc
}

// startNode puts a server together and lets it work: when it returns, webhooks
// are answered. The clock is given so that a test can move it.
func startNode(ctx context.Context, cfg config.Server, now func() time.Time, log zerolog.Logger) (*node, error) {
	n := &node{cfg: cfg, log: log}
	err := n.open(ctx, now)
	if err == nil {
		err = n.begin(ctx)
	}
	if err != nil {
		n.close()
	}
	return n, err
}

// open makes the parts that do nothing by themselves yet.
func (n *node) open(ctx context.Context, now func() time.Time) error {
	box, err := openSandbox(ctx, n.cfg.Sandbox)
	if err != nil {
		return err
	}
	limited, _ := box.Limited()
	n.log.Info().Msg(limited)
	key, err := n.cfg.GitHub.App.Key()
	if err != nil {
		return err
	}
	if n.data, err = claimData(ctx, n.cfg.DataDir); err != nil {
		return err
	}
	n.cfg.DataDir = n.data.dir
	cfg, log := n.cfg, n.log
	if n.store, err = openStore(ctx, cfg.Database, now, log); err != nil {
		return err
	}
	n.github = &githubHealth{transport: outbound(16), now: now}
	reach := forgeConfig(cfg.GitHub, key, n.github, now, log)
	if cfg.Database.Driver == config.Postgres { // else this process is alone
		reach.Shared = n.store
	}
	if n.forge, err = forge.New(reach); err != nil {
		return err
	}
	n.solver = &solver.Solver{
		Env: attempt.Env{
			Store: n.store, Config: cfg, Sandbox: box, Node: nodeName(), Place: n.data.place, Now: now, Log: log, Lookup: os.LookupEnv,
			Gateway: newGateway(now, log), Program: self(log), Stopping: make(chan struct{}),
		},
		Host: solver.GitHub{Forge: n.forge}, Slots: make(chan struct{}, cfg.Workers),
	}
	n.solver.UseLayers(attempt.LayersIn(cfg.DataDir))
	return nil
}

// begin lets the parts work, from a clean machine on.
func (n *node) begin(ctx context.Context) error {
	if left, err := sandbox.Sweep(n.solver.ProcessPrefix()); err != nil {
		return err
	} else if left > 0 {
		n.log.Warn().Int("processes", left).Msg("ended agents that an earlier server left behind")
	}
	if err := n.solver.CleanWork(ctx); err != nil {
		n.log.Error().Err(err).Msg("what killed attempts left in their folders was not removed")
	}
	h := &handlers.Handlers{Store: n.store, Forge: n.forge, Solver: n.solver, StandIn: n.cfg.GitHub.App.User, Now: n.solver.Now, Log: n.log,
		SignOut: func(ctx context.Context, person int64) error { return web.SignOut(ctx, n.store, person) }}
	n.queue = queue.New(queue.Options{
		Store: n.store, Node: n.solver.Node, Workers: n.cfg.Workers + quickSteps,
		HandleDelivery: h.Deliver, Step: n.solver.Work, Sweep: n.sweep(),
		Logger: slog.New(zerolog.NewSlogHandler(n.log.Level(max(n.log.GetLevel(), zerolog.WarnLevel)))),
	})
	n.store.UseQueue(n.queue)
	hook, err := n.ingress(h)
	if err != nil {
		return err
	}
	if err := n.listen(); err != nil {
		return err
	}
	catchUp := catchup.New(h, n.store, n.store.Duty("catch-up", n.solver.Node, catchUpInterval))
	if err := catchUp.Begin(ctx); err != nil {
		return err
	}
	if err := n.handle(ctx, hook); err != nil {
		return err
	}
	notifier := n.notifier() // before an attempt may end
	n.queue.Start(ctx)
	background, stop := context.WithCancel(ctx)
	n.stop = stop
	n.background.Go(func() { catchUp.Watch(background, debug.FreeOSMemory) })
	if n.cfg.GitHub.Receive == config.ReceivePoll {
		n.background.Go(func() {
			catchup.New(h, n.store, n.store.Duty("poll", n.solver.Node, catchup.PollEvery)).Poll(background)
		})
	}
	if c := n.cfg.Backlog; c.Label != "" {
		b := &catchup.Backlog{Handlers: h, Shared: n.store, Label: c.Label, Repositories: c.Repositories, Every: c.Every, PerDay: c.PerDay}
		n.background.Go(func() { b.Watch(background) })
	}
	n.background.Go(func() { notifier.Run(background) })
	if n.cfg.HTTP.HooksFrom == config.HooksFromGitHub {
		n.background.Go(func() { n.watchHookRanges(background) })
	}
	n.background.Go(func() { n.clean(background) })
	crash.Point("serving")
	n.log.Info().Str("address", n.listener.Addr().String()).Str("pages", n.pagesListener.Addr().String()).Str("version", buildInfo().Version).Str("node", n.solver.Node).Msg("pawl serves")
	return nil
}

// ingress is what answers webhooks. A server that asks GitHub itself and has no secret takes none.
func (n *node) ingress(h *handlers.Handlers) (http.Handler, error) {
	app := n.cfg.GitHub.App
	if n.cfg.GitHub.Receive == config.ReceivePoll && app.WebhookSecret.Empty() {
		return http.NotFoundHandler(), nil
	}
	secrets := []string{app.WebhookSecret.Reveal()}
	if before := app.PreviousWebhookSecret; !before.Empty() {
		secrets = append(secrets, before.Reveal())
	}
	in, err := handlers.NewIngress(secrets, h.EventHandlers(), n.store, n.solver.Now, n.log)
	if err != nil {
		return nil, err
	}
	n.trusts = in.Trusts
	return in, nil
}

func dsn(d config.Database) string {
	if d.Driver == config.Postgres {
		return d.URL.Reveal()
	}
	return "sqlite:" + d.Path
}

// longestDatabaseWait bounds the wait between two tries to reach the database.
const longestDatabaseWait = 10 * time.Second

// openStore opens the database. One that does not answer yet, as after a restart of the whole machine, is
// waited for until ctx ends; what waiting cannot mend is an error.
func openStore(ctx context.Context, d config.Database, now func() time.Time, log zerolog.Logger) (*store.Store, error) {
	for try := 1; ; try++ {
		s, err := store.Open(ctx, dsn(d), store.Options{Now: now, Wall: now})
		if err == nil || !store.Unreachable(err) {
			return s, err
		}
		pause := policy.Retry(try, time.Second, longestDatabaseWait, 1)
		log.Warn().Err(err).Dur("wait_ms", pause).Msg("the database does not answer yet; it is tried again")
		if wait.For(ctx, pause) != nil {
			return nil, err
		}
	}
}

// nodeName names this process in leases. The process id keeps two servers on one machine apart.
func nodeName() string { return fmt.Sprintf("%s-%d", hostName(), os.Getpid()) }

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// serve answers until ctx ends, then stops taking work, lets running steps write
// down where they are, and closes.
func (n *node) serve(ctx context.Context) error {
	served := make(chan error, 2)
	go func() { served <- n.http.Serve(n.listener) }()
	go func() { served <- n.pagesHTTP.Serve(n.pagesListener) }()
	var err error
	select {
	case err = <-served:
	case err = <-n.store.Fatal():
		// Nothing that is written now can be relied on.
		n.log.Error().Err(err).Msg("the database is broken; stopping")
	case <-ctx.Done():
		n.log.Info().Dur("drain_ms", n.cfg.HTTP.Drain).Msg("stopping")
		close(n.solver.Stopping)
		drain, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
		drain, end := context.WithTimeout(drain, n.cfg.HTTP.Drain)
		_ = n.queue.Drain(drain) // what is at work then is handed over
		end()
		stop()
	}
	crash.Point("stopping")
	err = errors.Join(err, n.end(context.WithoutCancel(ctx)))
	crash.Point("queue_stopped")
	n.close()
	crash.Point("shutdown")
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	n.log.Info().Msg("stopped")
	return nil
}

// end stops HTTP and the queue side by side, so that a slow request keeps no agent at work. A webhook that is
// still on its way in is stored, as always before it is answered, and handled by whoever finds it next.
func (n *node) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	answered := make(chan error, 2)
	for _, s := range []*http.Server{n.http, n.pagesHTTP} {
		go func() {
			err := s.Shutdown(ctx)
			if err != nil {
				err = errors.Join(fmt.Errorf("answer the last requests: %w", err), s.Close())
			}
			answered <- err
		}()
	}
	return errors.Join(n.queue.Stop(ctx), <-answered, <-answered)
}

// close frees what startNode took, as far as it came.
func (n *node) close() {
	if n.stop != nil {
		n.stop()
	}
	n.background.Wait()
	for _, l := range []net.Listener{n.listener, n.pagesListener} {
		if l != nil {
			// Serve closes it, too; a second close is harmless.
			_ = l.Close()
		}
	}
	if n.store != nil {
		n.logged(n.store.Close(), "close the database")
	}
	if n.data != nil {
		n.data.lock.Close() // closing unlocks; there is nothing to do about an error
	}
}

// logged writes an error down that nothing can be done about.
func (n *node) logged(err error, what string) {
	if err != nil {
		n.log.Error().Err(err).Msg(what)
	}
}

// outbound goes as this process's environment says (HTTPS_PROXY and the like), and
// keeps connections to each host for as many requests at a time.
func outbound(atOnce int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() // nothing here replaces the default
	t.MaxIdleConnsPerHost = atOnce
	return t
}

// newGateway is the way to the providers. No agent can change the environment by which it reaches them.
func newGateway(now func() time.Time, log zerolog.Logger) *gateway.Gateway {
	transport := outbound(32)
	transport.DisableCompression = true // tokens are read from what passes
	return gateway.New(gateway.Options{Now: now, Log: log, Transport: transport})
}

// self is the path of this program, which agents run as their test tool; without it they go without.
func self(log zerolog.Logger) string {
	path, err := os.Executable()
	if err != nil {
		log.Warn().Err(err).Msg("this program's own path is not known; agents get no test tool")
		return ""
	}
	return path
}
