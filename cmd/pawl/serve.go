package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/solver"
)

// quickSteps is how many steps may be at work beside the attempts: deciding,
// acknowledging, and waiting for one of the places of attempts or, without one, for
// GitHub.
const quickSteps = 32

// stopTime is how long a stopping server waits for its steps: a supervisor
// usually kills after 30 s.
const stopTime = 25 * time.Second

func serveCommand() *cobra.Command {
	var file, listen string
	cmd := &cobra.Command{
		Use: "serve --config FILE", Short: "Run the GitHub App: webhooks, queue, solver and pages", Args: cobra.NoArgs,
		Long: "Run the GitHub App until it gets SIGTERM or is interrupted: then it takes no more work, lets running steps\n" +
			"write down where they are, and exits within 30 s. It refuses to start where something that it needs does not\n" +
			"work; pawl doctor says what.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(file, os.LookupEnv)
			if err != nil {
				return err
			}
			if listen != "" {
				cfg.HTTP.Address = listen
			}
			log, err := logger(cmd.ErrOrStderr(), cfg.Log.Level)
			if err != nil {
				return err
			}
			n, err := startNode(cmd.Context(), cfg, crash.Clock(time.Now), log)
			if err != nil {
				return err
			}
			debug.FreeOSMemory() // what only the start needed; again after the first look at GitHub
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			return n.serve(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the server's configuration file")
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen on, instead of the configuration's")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag is declared two lines above
	}
	return cmd
}

// gcPercent lets a server's memory grow a little more than Go's 100 before garbage
// is collected: the live memory is a few megabytes, and collecting takes a twelfth of
// the processor time of answering webhooks (internal/bench ratios, memory). The
// environment's GOGC goes before it.
const gcPercent = 150

// node is one running server. This file is the one place where the real parts
// are put together.
type node struct {
	cfg      config.Server
	log      zerolog.Logger
	store    *store.Store
	queue    *queue.Queue
	solver   *solver.Solver
	forge    *forge.Client
	listener net.Listener
	http     *http.Server
	data     *dataFolder
	gateway  *gateway.Gateway
	github   *reach
	tracing  *tracing
	beside   sync.WaitGroup // what works beside the queue, until stop
	stop     context.CancelFunc
}

// startNode puts a server together and lets it work: when it returns, webhooks
// are answered. The clock is given so that a test can move it.
func startNode(ctx context.Context, cfg config.Server, now func() time.Time, log zerolog.Logger) (n *node, err error) {
	n = &node{cfg: cfg, log: log}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	box, err := newSandbox(ctx, cfg, log)
	if err != nil {
		return n, err
	}
	key, err := cfg.GitHub.App.Key()
	if err != nil {
		return n, err
	}
	if n.data, err = claimData(cfg.DataDir); err != nil {
		return n, err
	}
	cfg.DataDir = n.data.dir
	n.cfg = cfg
	slogger := slog.New(zerolog.NewSlogHandler(log.Level(max(log.GetLevel(), zerolog.WarnLevel))))
	if n.store, err = store.Open(ctx, dsn(cfg.Database), store.Options{Now: now, Wall: now, Logger: slogger}); err != nil {
		return n, err
	}
	if n.tracing, err = startTracing(ctx, cfg.Tracing, nodeName(), log); err != nil {
		return n, err
	}
	n.github = newReach(now)
	n.forge, err = forge.New(forge.Config{
		WebURL: cfg.GitHub.WebURL, APIURL: cfg.GitHub.V3APIURL, AppID: cfg.GitHub.App.IntegrationID, PrivateKey: []byte(key.Reveal()),
		UserAgent: "pawl/" + buildInfo().Version, Now: now, Log: log, Limits: forge.Limits{Spacing: spacing(cfg)}, Shared: sharedQuota{n.store}, Transport: n.github,
	})
	if err != nil {
		return n, err
	}
	if n.gateway, err = startGateway(ctx, now, log); err != nil {
		return n, err
	}
	n.solver = &solver.Solver{
		Store: n.store, Config: cfg, Sandbox: box, Forge: n.forge, Node: nodeName(), Now: now, Log: log, Lookup: os.LookupEnv,
		Slots: make(chan struct{}, cfg.Workers), Gateway: n.gateway, Program: self(log), Trace: n.tracing.trace(),
	}
	if left, err := sandbox.Sweep(ctx, n.solver.ProcessPrefix()); err != nil {
		return n, err
	} else if left > 0 {
		log.Warn().Int("processes", left).Msg("ended agents that an earlier server left behind")
	}
	h := &handlers.Handlers{Store: n.store, Forge: n.forge, Solver: n.solver, AllowedBots: cfg.Policy.AllowedBots, Now: now, Log: log, Trace: n.tracing.trace()}
	n.queue, err = queue.New(queue.Options{
		DB: n.store.DB(), Postgres: n.store.Postgres(), Workers: cfg.Workers + quickSteps,
		HandleDelivery: h.Deliver, Due: n.store.Due, Step: n.solver.Step, Sweep: n.sweep(now),
		Logger: slogger,
	})
	if err != nil {
		return n, err
	}
	n.store.UseQueue(n.queue)
	secrets := []string{cfg.GitHub.App.WebhookSecret.Reveal()}
	if before := cfg.GitHub.App.PreviousWebhookSecret; !before.Empty() {
		secrets = append(secrets, before.Reveal())
	}
	hook, err := handlers.NewIngress(secrets, n.store, now, log)
	if err != nil {
		return n, err
	}
	if n.listener, err = net.Listen("tcp", cfg.HTTP.Address); err != nil {
		return n, fmt.Errorf("server.address: %w", err)
	}
	catchUp := handlers.NewCatchUp(h, n.store)
	if err := catchUp.Begin(ctx); err != nil {
		return n, err
	}
	n.http = web.Server(n.pages(n.tracing.hook(hook), now))
	n.http.ConnState = answerLeft
	if err := n.queue.Start(ctx); err != nil {
		return n, err
	}
	beside, stop := context.WithCancel(ctx)
	n.stop = stop
	n.beside.Go(func() { catchUp.Watch(beside, catchUpInterval, debug.FreeOSMemory) })
	n.beside.Go(func() { n.checkAgents(beside) })
	n.beside.Go(func() { n.clean(beside, now) })
	crash.Point("serving")
	log.Info().Str("address", n.listener.Addr().String()).Str("version", buildInfo().Version).Str("node", n.solver.Node).Msg("pawl serves")
	return n, nil
}

// answerLeft passes a crash point when an answer has left.
func answerLeft(_ net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		crash.Point("answered")
	}
}

// spacing is the time between writes as the forge wants it: negative for none.
func spacing(cfg config.Server) time.Duration {
	if cfg.GitHub.WriteSpacing == 0 {
		return -1
	}
	return cfg.GitHub.WriteSpacing
}

// sharedQuota keeps what was used of GitHub's limits where every node sees it.
type sharedQuota struct{ store *store.Store }

// Update changes the record of one installation.
func (q sharedQuota) Update(ctx context.Context, key string, f func(old []byte) []byte) error {
	return q.store.UpdateShared(ctx, key, f)
}

// newSandbox probes the sandbox. Without one the server refuses to start unless
// the configuration says so.
func newSandbox(ctx context.Context, cfg config.Server, log zerolog.Logger) (*sandbox.Sandbox, error) {
	if cfg.Sandbox.Mode == config.SandboxNone {
		log.Warn().Msg("sandbox.mode is none: agents run as this user and can read and write whatever it can")
		return sandbox.New(ctx, sandbox.None)
	}
	return sandbox.New(ctx, sandbox.Auto)
}

func dsn(d config.Database) string {
	if d.Driver == config.Postgres {
		return d.URL.Reveal()
	}
	return "sqlite:" + d.Path
}

// nodeName names this process in leases. The process id keeps two servers on one
// machine apart.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// serve answers until ctx ends, then stops taking work, lets running steps write
// down where they are, and closes.
func (n *node) serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- n.http.Serve(n.listener) }()
	var err error
	select {
	case err = <-served:
	case err = <-n.store.Fatal():
		// Nothing that is written now can be relied on.
		n.log.Error().Err(err).Msg("the database is broken; stopping")
	case <-ctx.Done():
		n.log.Info().Msg("stopping")
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

// end stops HTTP and the queue side by side, so that a slow request keeps no agent
// at work. A webhook that is still on its way in is stored, as always before it is
// answered, and handled by whoever finds it next.
func (n *node) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		err := n.http.Shutdown(ctx)
		if err != nil {
			err = errors.Join(fmt.Errorf("answer the last requests: %w", err), n.http.Close())
		}
		answered <- err
	}()
	return errors.Join(n.queue.Stop(ctx), <-answered)
}

// close frees what startNode took, as far as it came.
func (n *node) close() {
	if n.stop != nil {
		n.stop()
		n.beside.Wait()
	}
	n.tracing.close()
	if n.gateway != nil {
		if err := n.gateway.Close(); err != nil {
			n.log.Error().Err(err).Msg("close the gateway")
		}
	}
	if n.listener != nil {
		// Serve closes it, too; a second close is harmless.
		_ = n.listener.Close()
	}
	if n.store != nil {
		if err := n.store.Close(); err != nil {
			n.log.Error().Err(err).Msg("close the database")
		}
	}
	n.data.release()
}
