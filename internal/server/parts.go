package server

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/catchup"
	"github.com/pawlbot/pawl/internal/cluster"
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

// quickSteps is the number of slots for steps other than attempts: deciding, acknowledging, and waiting.
const quickSteps = 32

// open creates the parts without starting them.
func (s *Server) open(ctx context.Context) error {
	box, err := OpenSandbox(ctx, s.cfg.Sandbox, s.deps.Program)
	if err != nil {
		return err
	}
	limited, _ := box.Limited()
	s.log.Info().Msg(limited)
	key, err := s.cfg.GitHub.App.Key()
	if err != nil {
		return err
	}
	if s.data, err = claimData(ctx, s.cfg.DataDir); err != nil {
		return err
	}
	s.cfg.DataDir = s.data.dir
	node := NodeName()
	self := policy.Node{Labels: s.cfg.Node.Labels, Agents: s.cfg.Workers > 0, Folder: s.data.place}
	if s.store, err = openStore(ctx, s.cfg.Database, store.Options{Now: s.deps.Now, Committed: s.deps.Committed, Self: &self, Node: node, Prefer: s.cfg.Node.Prefer}, s.log); err != nil {
		return err
	}
	s.github = &githubHealth{transport: outbound(16), now: s.deps.Now}
	reach := GitHub(s.cfg.GitHub, key, s.deps.Build)
	reach.Transport, reach.Now, reach.Sleep, reach.Log = s.github, s.deps.Now, s.deps.Sleep, s.log
	if s.forge, err = forge.New(reach); err != nil {
		return err
	}
	s.clock = &cluster.Clock{Store: s.store, GitHub: s.forge.Clock.Offset, Node: node, Log: s.log}
	s.solver = &solver.Solver{
		Env: attempt.Env{
			Store:    s.store,
			Config:   s.cfg,
			Sandbox:  box,
			Node:     node,
			Place:    s.data.place,
			Now:      s.store.Now,
			Log:      s.log,
			Lookup:   os.LookupEnv,
			Gateway:  NewGateway(s.store.Now, s.log),
			Program:  Program(s.deps.Program, s.log),
			Stopping: make(chan struct{}),
		},
		Host:  solver.GitHub{Forge: s.forge},
		Slots: make(chan struct{}, s.cfg.Workers),
	}
	places := cluster.Places{Name: node, Self: self}
	if others := s.store.Nodes(); others != nil {
		places.Others = others
	}
	s.solver.Nodes = places
	s.solver.Env.UseLayers(attempt.LayersIn(s.cfg.DataDir))
	return nil
}

// begin starts the parts after a cleanup. Background tasks end when the context background ends.
func (s *Server) begin(ctx, background context.Context) error {
	if err := s.tidy(ctx); err != nil {
		return err
	}
	h := &handlers.Handlers{
		Store:   s.store,
		Forge:   s.forge,
		Solver:  s.solver,
		StandIn: s.cfg.GitHub.App.User,
		Now:     s.store.Now,
		Log:     s.log,
		SignOut: func(ctx context.Context, person int64) error { return web.SignOut(ctx, s.store, person) },
	}
	s.queue = queue.New(queue.Options{
		Store:          s.store,
		Node:           s.solver.Env.Node,
		Workers:        s.cfg.Workers + quickSteps,
		HandleDelivery: h.Deliver,
		Step:           s.solver.Work,
		Sweep:          s.sweep(),
		Halted:         s.clock.Trouble,
		Logger:         slog.New(zerolog.NewSlogHandler(s.log.Level(max(s.log.GetLevel(), zerolog.WarnLevel)))),
	})
	s.store.UseQueue(s.queue)
	hook, err := s.ingress(h)
	if err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	catchUp := catchup.New(h, s.store, cluster.NewDuty(s.store, "catch-up", s.solver.Env.Node, catchUpInterval))
	if err := catchUp.Begin(ctx); err != nil {
		return err
	}
	counters := web.NewCounters()
	if err := s.handle(ctx, hook, counters); err != nil {
		return err
	}
	catchUp.Listed = counters.Listed("catch-up", s.store.Now)
	notifier := s.notifier() // set up before an attempt can end
	s.queue.Start(ctx)
	s.task(background, "catch-up", func() { catchUp.Watch(background, s.deps.Started) })
	if s.cfg.GitHub.Receive == config.ReceivePoll {
		poll := catchup.New(h, s.store, cluster.NewDuty(s.store, "poll", s.solver.Env.Node, catchup.PollEvery))
		poll.Listed = counters.Listed("poll", s.store.Now)
		s.task(background, "poll", func() { poll.Poll(background) })
	}
	s.task(background, "notify", func() { notifier.Run(background) })
	if s.cfg.HTTP.HooksFrom == config.HooksFromGitHub {
		s.task(background, "webhook addresses", func() { s.watchHookRanges(background) })
	}
	s.task(background, "clean", func() { s.clean(background) })
	if nodes := s.store.Nodes(); nodes != nil {
		s.task(background, "cluster", func() { cluster.Watch(background, nodes, s.solver.Env.Node, s.log) })
	}
	crash.Point("serving")
	s.log.Info().
		Str("address", s.Address()).
		Str("pages", s.PagesAddress()).
		Str("version", s.deps.Build.Version).
		Str("node", s.solver.Env.Node).
		Msg("pawl serves")
	return nil
}

func (s *Server) tidy(ctx context.Context) error {
	left, err := sandbox.Sweep(s.solver.Env.ProcessPrefix())
	if err != nil {
		return err
	}
	if left > 0 {
		s.log.Warn().Int("processes", left).Msg("ended agents that an earlier server left behind")
	}
	if s.leftWork, err = s.solver.Env.CleanWork(ctx); err != nil {
		s.log.Error().Err(err).Msg("remove files of killed attempts")
	}
	return nil
}

// ingress returns the webhook handler. Without a secret, it accepts none; config requires a secret to receive webhooks.
func (s *Server) ingress(h *handlers.Handlers) (http.Handler, error) {
	app := s.cfg.GitHub.App
	if app.WebhookSecret.Empty() {
		return http.NotFoundHandler(), nil
	}
	secrets := []string{app.WebhookSecret.Reveal()}
	if before := app.PreviousWebhookSecret; !before.Empty() {
		secrets = append(secrets, before.Reveal())
	}
	return handlers.NewIngress(secrets, h.EventHandlers(), s.store, s.store.Now, s.log)
}

// longestDatabaseWait limits the wait between tries to reach the database.
const longestDatabaseWait = 10 * time.Second

// openStore opens the database. It retries an unreachable database until ctx ends. Other errors are permanent.
func openStore(ctx context.Context, d config.Database, o store.Options, log zerolog.Logger) (*store.Store, error) {
	for try := 1; ; try++ {
		s, err := store.Open(ctx, d.DSN(), o)
		if err == nil || !store.Unreachable(err) {
			return s, err
		}
		pause := policy.Retry(try, time.Second, longestDatabaseWait, 1)
		log.Warn().Err(err).Dur("wait_ms", pause).Msg("the database does not answer yet; retrying")
		if wait.For(ctx, pause) != nil {
			return nil, err
		}
	}
}

// NodeName names this process in leases. Containers may share a host name and process id, or keep them after a restart.
// So each call returns another name.
func NodeName() string { return fmt.Sprintf("%s-%d-%04x", hostName(), os.Getpid(), rand.N(1<<16)) }

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// outbound returns a transport with the process's proxy settings (HTTPS_PROXY and others) that keeps up to atOnce idle
// connections per host.
func outbound(atOnce int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() // nothing replaces the default transport
	t.MaxIdleConnsPerHost = atOnce
	return t
}

// NewGateway creates the gateway to the providers.
func NewGateway(now func() time.Time, log zerolog.Logger) *gateway.Gateway {
	transport := outbound(32)
	transport.DisableCompression = true // the gateway counts tokens in responses as they pass
	return gateway.New(gateway.Options{Now: now, Log: log, Transport: transport})
}

// Program returns the path of pawl for the agents' test tool: the given path or the running program's. It is empty if
// unknown.
func Program(given string, log zerolog.Logger) string {
	path, err := ownProgram(given)
	if err != nil {
		log.Warn().Err(err).Msg("this program's own path is not known; agents get no test tool")
	}
	return path
}
