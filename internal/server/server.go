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
	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// stopTime limits the wait for running steps. By default, Kubernetes kills a pod after 30 s.
const stopTime = 25 * time.Second

// Deps holds a server's inputs.
type Deps struct {
	Now   func() time.Time
	Log   zerolog.Logger
	Build web.Build // for the pages and GitHub
	// Program is the path of pawl for sandboxes and agents; empty means the running program.
	Program string
	// Check refuses a configuration that allows no attempt. It may complete cfg, and returns checks to run later. Nil
	// checks nothing.
	Check func(ctx context.Context, cfg *config.Server, log zerolog.Logger) (later func(context.Context), err error)
	// Committed, unless nil, is called after each writing transaction.
	Committed func()
	// Sleep waits for a duration or returns the context's error; nil means a timer.
	Sleep func(context.Context, time.Duration) error
	// Started, unless nil, is called once the server is ready, and again after its first search for missed deliveries.
	Started func()
	// File is the configuration file to follow; nil follows nothing.
	File *File
}

// Server is a running server from database to pages.
type Server struct {
	deps          Deps
	cfg           config.Server
	log           zerolog.Logger
	ready         chan struct{} // closed when the server serves
	store         *store.Store
	queue         *queue.Queue
	solver        *solver.Solver
	forge         *forge.Client
	listener      net.Listener
	http          *http.Server
	pagesListener net.Listener
	pagesHTTP     *http.Server
	relayListener net.Listener // nil unless this server relays other nodes' model calls
	relayHTTP     *http.Server
	data          *dataFolder
	github        *githubHealth
	clock         *cluster.Clock
	hookRanges    atomic.Pointer[[]netip.Prefix] // nil if unknown
	leftWork      []thread.ID                    // killed servers' unfinished threads
	panicked      panicked
	background    sync.WaitGroup // tasks that stop ends
	stop          context.CancelFunc
}

func New(cfg config.Server, deps Deps) *Server {
	if deps.Started == nil {
		deps.Started = func() {}
	}
	return &Server{cfg: cfg, deps: deps, log: deps.Log, ready: make(chan struct{})}
}

// Start runs the server in the background and returns once it serves. served receives Run's result.
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

// Address returns the webhooks' HOST:PORT; empty if the server receives no webhooks.
func (s *Server) Address() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// PagesAddress returns the pages' HOST:PORT.
func (s *Server) PagesAddress() string { return s.pagesListener.Addr().String() }

func (s *Server) Store() *store.Store { return s.store }

func (s *Server) Config() config.Server { return s.cfg }

// View returns a thread's data for its comment and page.
func (s *Server) View(ctx context.Context, t thread.ID) (checkrun.View, error) {
	return s.solver.View(ctx, t)
}

// Sweep looks for due work now.
func (s *Server) Sweep(ctx context.Context) error {
	_, err := s.store.Sweep(ctx)
	s.queue.Committed(true, nil)
	return err
}

// Run serves until ctx ends, then stops taking work, lets running steps store their state, and closes.
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

func (s *Server) start(ctx context.Context) error {
	later := func(context.Context) {}
	if s.deps.Check != nil {
		var err error
		if later, err = s.deps.Check(ctx, &s.cfg, s.log); err != nil {
			return err
		}
	}
	started := s.cfg // before open sets data_dir
	if err := s.open(ctx); err != nil {
		return err
	}
	background, stop := context.WithCancel(ctx)
	s.stop = stop
	if err := s.begin(ctx, background); err != nil {
		return err
	}
	s.deps.Started()
	s.task(background, "check", func() { later(background) })
	if s.deps.File != nil {
		s.task(background, "configuration", func() { s.follow(background, s.deps.File, started) })
	}
	close(s.ready)
	return nil
}

func (s *Server) serve(ctx context.Context) error {
	served := make(chan error, 3)
	if s.listener != nil {
		go func() { served <- s.http.Serve(web.Listen(s.listener)) }()
	}
	go func() { served <- s.pagesHTTP.Serve(web.Listen(s.pagesListener)) }()
	if s.relayListener != nil {
		go func() { served <- s.relayHTTP.Serve(s.relayListener) }()
	}
	var err error
	select {
	case err = <-served:
	case err = <-s.store.Fatal():
		s.log.Error().Err(err).Msg("the database is broken; stopping")
	case <-ctx.Done():
		s.log.Info().Dur("drain_ms", s.cfg.HTTP.Drain).Msg("stopping")
		close(s.solver.Env.Stopping)
		drain, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
		drain, end := context.WithTimeout(drain, s.cfg.HTTP.Drain)
		relayed := make(chan struct{})
		go func() {
			_ = s.relayHTTP.Shutdown(drain) // other servers' calls end with their attempts
			close(relayed)
		}()
		_ = s.queue.Drain(drain) // the remaining steps are handed over
		<-relayed
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

// end stops HTTP and the queue concurrently, so that slow requests do not keep agents running. The next server
// handles stored webhooks.
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
	err := errors.Join(s.queue.Stop(ctx), <-answered, <-answered)
	if s.relayHTTP.Shutdown(ctx) != nil { // a call may take minutes
		err = errors.Join(err, s.relayHTTP.Close())
	}
	s.leave(ctx)
	return err
}

// leave tells the other nodes, if any, that this one has stopped.
func (s *Server) leave(ctx context.Context) {
	nodes := s.store.Nodes()
	if nodes == nil {
		return
	}
	if _, err := nodes.Leave(ctx, s.solver.Env.Node); err != nil {
		s.log.Warn().Err(err).Msg("other nodes find out by themselves that this one has stopped")
	}
}

func (s *Server) close() {
	if s.stop != nil {
		s.stop()
	}
	s.background.Wait()
	for _, l := range []net.Listener{s.listener, s.pagesListener, s.relayListener} {
		if l != nil {
			// Serve closes it, too; closing twice is harmless.
			_ = l.Close()
		}
	}
	if s.store != nil {
		s.logged(s.store.Close(), "close the database")
	}
	if s.data != nil {
		s.data.lock.Close() // closing unlocks
	}
}

func (s *Server) logged(err error, what string) {
	if err != nil {
		s.log.Error().Err(err).Msg(what)
	}
}
