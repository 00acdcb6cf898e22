package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// stopTime is how long a stopping server waits for its steps: supervisors usually kill after 30 s.
const stopTime = 25 * time.Second

// Deps are a server's inputs from its process.
type Deps struct {
	Now   func() time.Time // the clock
	Log   zerolog.Logger
	Build web.Build // for the pages and GitHub
	// Program is the path of pawl, for sandboxes and agents. Empty means the running program.
	Program string
	// Check refuses a configuration with which no attempt could start. It may complete the configuration, and
	// returns the checks that can wait until the server works. Nil checks nothing.
	Check func(ctx context.Context, cfg *config.Server, log zerolog.Logger) (later func(context.Context), err error)
	// Committed is called after each writing transaction. Nil calls nothing.
	Committed func()
	// Sleep is a request's wait for GitHub's limits: for a duration, or until the context ends, which is an error.
	// Nil means a timer.
	Sleep func(context.Context, time.Duration) error
	// Started is called once the server works, and again after its first look at GitHub, when the start's data is
	// garbage. Nil calls nothing.
	Started func()
	// File is the configuration's file; the server follows its changes. Nil follows nothing.
	File *File
}

// Server is one running server, from its database to its pages.
type Server struct {
	deps          Deps
	cfg           config.Server
	log           zerolog.Logger
	ready         chan struct{} // closed when it serves
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
	githubClock   func() (ahead time.Duration, known bool) // this machine's clock minus GitHub's
	hookRanges    atomic.Pointer[[]netip.Prefix]           // nil while unknown
	leftWork      []thread.ID                              // killed servers' files, which may be continued here
	background    sync.WaitGroup                           // the work in the background, until stop
	stop          context.CancelFunc
}

func New(cfg config.Server, deps Deps) *Server {
	if deps.Started == nil {
		deps.Started = func() {}
	}
	return &Server{cfg: cfg, deps: deps, log: deps.Log, ready: make(chan struct{})}
}

// Start runs the server in the background and returns once it serves; served then receives Run's result. The
// methods below may be called from then on.
func (s *Server) Start(ctx context.Context) (served <-chan error, err error) {
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.ready:
		return ended, nil
	case err := <-ended:
		return nil, cmp.Or(err, context.Cause(ctx))
	}
}

// Address is the webhooks' address, as HOST:PORT.
func (s *Server) Address() string { return s.listener.Addr().String() }

// PagesAddress is the pages' address, as HOST:PORT.
func (s *Server) PagesAddress() string { return s.pagesListener.Addr().String() }

func (s *Server) Store() *store.Store { return s.store }

// Config is the server's configuration.
func (s *Server) Config() config.Server { return s.cfg }

// View is a thread's data for its comment and its page.
func (s *Server) View(ctx context.Context, t thread.ID) (checkrun.View, error) {
	return s.solver.View(ctx, t)
}

// Sweep looks for due work now, as the server does every few seconds.
func (s *Server) Sweep(ctx context.Context) error {
	_, err := s.store.Sweep(ctx)
	s.queue.Committed(true, nil)
	return err
}

// Run serves until ctx ends, then stops taking work, lets running steps write their state, and closes. It is no
// error if ctx ends before it serves.
func (s *Server) Run(ctx context.Context) error {
	err := s.start(ctx)
	if err == nil {
		return s.serve(ctx)
	}
	s.close()
	if ctx.Err() == nil {
		return err
	}
	s.log.Info().Err(err).Msg("stopped before it served")
	return nil
}

// start checks the configuration, assembles the parts and starts them.
func (s *Server) start(ctx context.Context) error {
	later := func(context.Context) {}
	if s.deps.Check != nil {
		var err error
		if later, err = s.deps.Check(ctx, &s.cfg, s.log); err != nil {
			return err
		}
	}
	started := s.cfg // before open makes data_dir this server's folder
	if err := s.open(ctx); err != nil {
		return err
	}
	background, stop := context.WithCancel(ctx)
	s.stop = stop
	if err := s.begin(ctx, background); err != nil {
		return err
	}
	s.deps.Started()
	s.background.Go(func() { later(background) })
	if s.deps.File != nil {
		s.background.Go(func() { s.follow(background, s.deps.File, started) })
	}
	close(s.ready)
	return nil
}

// serve answers until ctx ends, then closes.
func (s *Server) serve(ctx context.Context) error {
	served := make(chan error, 2)
	go func() { served <- s.http.Serve(web.Listen(s.listener)) }()
	go func() { served <- s.pagesHTTP.Serve(web.Listen(s.pagesListener)) }()
	var err error
	select {
	case err = <-served:
	case err = <-s.store.Fatal():
		// Nothing written now can be relied on.
		s.log.Error().Err(err).Msg("the database is broken; stopping")
	case <-ctx.Done():
		s.log.Info().Dur("drain_ms", s.cfg.HTTP.Drain).Msg("stopping")
		close(s.solver.Env.Stopping)
		drain, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
		drain, end := context.WithTimeout(drain, s.cfg.HTTP.Drain)
		_ = s.queue.Drain(drain) // running steps are handed over
		end()
		stop()
	}
	crash.Point("stopping")
	err = errors.Join(err, s.end(context.WithoutCancel(ctx)))
	crash.Point("queue_stopped")
	s.close()
	crash.Point("shutdown")
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	s.log.Info().Msg("stopped")
	return nil
}

// end stops HTTP and the queue concurrently, so that a slow request keeps no agent running. An incoming webhook is
// stored, as always before it is answered, and handled by the next server.
func (s *Server) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	answered := make(chan error, 2)
	for _, s := range []*http.Server{s.http, s.pagesHTTP} {
		go func() {
			err := s.Shutdown(ctx)
			if err != nil {
				err = errors.Join(fmt.Errorf("answer the last requests: %w", err), s.Close())
			}
			answered <- err
		}()
	}
	return errors.Join(s.queue.Stop(ctx), <-answered, <-answered)
}

// close frees what start took.
func (s *Server) close() {
	if s.stop != nil {
		s.stop()
	}
	s.background.Wait()
	for _, l := range []net.Listener{s.listener, s.pagesListener} {
		if l != nil {
			// Serve closes it, too; a second close is harmless.
			_ = l.Close()
		}
	}
	if s.store != nil {
		s.logged(s.store.Close(), "close the database")
	}
	if s.data != nil {
		s.data.lock.Close() // closing unlocks; an error changes nothing
	}
}

// logged logs an error without a remedy.
func (s *Server) logged(err error, what string) {
	if err != nil {
		s.log.Error().Err(err).Msg(what)
	}
}
