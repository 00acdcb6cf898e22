package fakegithub

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options say what the fake GitHub knows of the App under test. The zero value
// is usable: an App with id 1 and slug "pawl", a generated key, no webhooks.
type Options struct {
	// Address is where to listen; empty means a free port on 127.0.0.1.
	Address string
	// DataDir holds the bare repositories. When it is empty a temporary
	// directory is made and Close removes it.
	DataDir string
	// AppID is the id of the App; zero means 1.
	AppID int64
	// Slug is the App's short name, its bot is "<slug>[bot]"; empty means "pawl".
	Slug string
	// WebhookSecret signs deliveries. When it is empty they are unsigned, as
	// GitHub does for an App without a secret.
	WebhookSecret string
	// WebhookURL receives deliveries; see also SetWebhookURL.
	WebhookURL string
	// PublicKey verifies the App's JWTs; when nil a key pair is generated and
	// PrivateKeyPEM returns its private half.
	PublicKey *rsa.PublicKey
	// Permissions are what installations grant; nil means what Pawl asks for.
	Permissions map[string]string
	// Events are those that the App says it subscribes to; nil means what Pawl
	// asks for and create. Deliveries are sent all the same.
	Events []string
	// RateLimit is the number of requests an hour per installation or user;
	// zero means 5000, GitHub's smallest limit.
	RateLimit int
	// Now is the clock of tokens, limits and time stamps, not of JWTs; nil means
	// time.Now.
	Now func() time.Time
}

// Server is a running fake GitHub. All methods may be called from several
// goroutines.
type Server struct {
	base       string
	secret     string
	publicKey  *rsa.PublicKey
	privatePEM []byte
	now        func() time.Time
	rateLimit  int
	routes     []route

	dir      string
	ownDir   bool
	backend  string // path of git-http-backend
	http     *http.Server
	served   chan struct{}
	courier  *courier
	faults   faultList
	strict   strictness
	requests requestLog
	changed  bell
	inFlight sync.WaitGroup

	mu     sync.Mutex // guards everything below
	world  world
	quotas quotas
	closed bool
}

// New starts a fake GitHub. It needs git with git-http-backend. The caller must
// Close it.
func New(opts Options) (*Server, error) {
	opts = withDefaults(opts)
	s := &Server{secret: opts.WebhookSecret, publicKey: opts.PublicKey, now: opts.Now,
		rateLimit: opts.RateLimit, routes: routeTable(), dir: opts.DataDir, served: make(chan struct{})}
	if err := s.prepareKey(); err != nil {
		return nil, err
	}
	if err := s.prepareDirs(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", opts.Address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the fake GitHub on %s: %w", opts.Address, err), s.removeDir())
	}
	s.base = "http://" + listener.Addr().String()
	s.world = newWorld(opts, s.now())
	s.quotas.windows = map[string]*window{}
	s.courier = newCourier(opts, s.now, &s.changed)
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		defer close(s.served)
		s.http.Serve(listener) // ends with ErrServerClosed when Close is called
	}()
	return s, nil
}

func withDefaults(o Options) Options {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.AppID == 0 {
		o.AppID = 1
	}
	if o.Slug == "" {
		o.Slug = "pawl"
	}
	if o.Permissions == nil {
		o.Permissions = map[string]string{"checks": "write", "contents": "write", "issues": "write",
			"pull_requests": "write", "metadata": "read"}
	}
	if o.RateLimit == 0 {
		o.RateLimit = 5000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (s *Server) prepareKey() error {
	if s.publicKey != nil {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("generate the App's key: %w", err)
	}
	s.publicKey = &key.PublicKey
	s.privatePEM = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return nil
}

func (s *Server) prepareDirs() error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "fakegithub-")
		if err != nil {
			return fmt.Errorf("make a directory for the repositories: %w", err)
		}
		s.dir, s.ownDir = dir, true
	}
	abs, err := filepath.Abs(s.dir)
	if err != nil {
		return fmt.Errorf("resolve the data directory: %w", err)
	}
	s.dir = abs
	if s.backend, err = findBackend(context.Background()); err != nil {
		return errors.Join(err, s.removeDir())
	}
	return os.MkdirAll(s.dir, 0o755)
}

func (s *Server) removeDir() error {
	if !s.ownDir {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// Close stops the server and the delivery of webhooks, cuts open connections
// and removes the repositories if New made their directory. Requests that are
// being processed are waited for, so no git is left running.
func (s *Server) Close() error {
	s.courier.close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.http.Close()
	<-s.served
	s.inFlight.Wait()
	return errors.Join(err, s.removeDir())
}

// begin counts a request in, unless the server is closing.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.inFlight.Add(1)
	}
	return !s.closed
}

// WebURL is the base for people and git: clones come from
// <WebURL>/<owner>/<repo>.git. It has no trailing slash.
func (s *Server) WebURL() string { return s.base }

// APIURL is the base of the REST API, with a trailing slash.
func (s *Server) APIURL() string { return s.base + "/api/v3/" }

// GraphQLURL is where the GraphQL API would be. Every query there is answered
// with an error that says that it is not offered.
func (s *Server) GraphQLURL() string { return s.base + "/api/graphql" }

// PrivateKeyPEM is the App's private key, nil when Options.PublicKey was given.
func (s *Server) PrivateKeyPEM() []byte { return s.privatePEM }

// SetWebhookURL says where deliveries go from now on; an empty URL means that
// they are recorded as failed.
func (s *Server) SetWebhookURL(url string) { s.courier.setURL(url) }

// Await returns when cond holds. It is asked again after every request, push,
// delivery and act of a person, so no test has to sleep.
func (s *Server) Await(ctx context.Context, cond func() bool) error {
	for {
		rung := s.changed.next()
		if cond() {
			return nil
		}
		select {
		case <-rung:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// bell tells any number of waiters that something happened.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
