package fakegithub

import (
	"cmp"
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
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Options describe the App under test. The zero value is an App with id 1, slug "pawl", a generated key, and no
// webhooks.
type Options struct {
	// AppID defaults to 1.
	AppID int64
	// Slug is the App's short name, default "pawl"; its bot is "<slug>[bot]".
	Slug string
	// WebhookSecret signs deliveries. If empty, they are unsigned, as at GitHub.
	WebhookSecret string
	// WebhookURL receives deliveries; see also SetWebhookURL.
	WebhookURL string
	// Permissions are the installations' permissions; nil means Pawl's.
	Permissions map[string]string
	// Events are the App's declared subscriptions; nil means Pawl's and create. All events are delivered anyway.
	Events []string
	// RateLimit is in requests per hour, for each installation or user; zero means 5000, GitHub's smallest limit.
	RateLimit int
	// Now is the clock of tokens, limits and time stamps, not of JWTs; nil means time.Now.
	Now func() time.Time
}

// Server is a running fake GitHub, safe for concurrent use. Its methods are on the embedded parts, which share the
// world.
type Server struct {
	*world
	people
	credentials
	apps
	repositories
	pushes
	issues
	comments
	pulls
	checks
	readers
	*webhooks
	faultList
	limitChecks
	requestLog

	restAPI  http.Handler
	http     *http.Server
	served   chan struct{}
	inFlight sync.WaitGroup
	quotas   quotas // guarded by world.mu
	closed   bool   // guarded by world.mu
}

// New starts a fake GitHub, which needs git. The caller must Close it.
func New(opts Options) (*Server, error) {
	opts = withDefaults(opts)
	key, err := appKey()
	if err != nil {
		return nil, fmt.Errorf("generate the App's key: %w", err)
	}
	w := newWorld(opts, key)
	s := &Server{world: w, people: people{w}, credentials: credentials{w}, apps: apps{w}, repositories: repositories{w}, pushes: pushes{w},
		issues: issues{w}, comments: comments{w}, pulls: pulls{w}, checks: checks{w}, readers: readers{w},
		quotas: quotas{windows: map[string]*window{}, limit: opts.RateLimit}, served: make(chan struct{})}
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("find git (install git): %w", err)
	}
	if s.dir, err = os.MkdirTemp("", "fakegithub-"); err != nil {
		return nil, fmt.Errorf("make a directory for the repositories: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the fake GitHub: %w", err), os.RemoveAll(s.dir))
	}
	s.base = "http://" + listener.Addr().String()
	s.webhooks = newWebhooks(opts, &s.world.changed)
	w.webhooks, s.restAPI = s.webhooks, s.rest()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		defer close(s.served)
		s.http.Serve(listener) // ends with ErrServerClosed on Close
	}()
	return s, nil
}

func withDefaults(o Options) Options {
	o.AppID, o.Slug, o.RateLimit = cmp.Or(o.AppID, 1), cmp.Or(o.Slug, "pawl"), cmp.Or(o.RateLimit, 5000)
	if o.Permissions == nil {
		o.Permissions = map[string]string{"actions": "read", "checks": "write", "contents": "write", "issues": "write",
			"pull_requests": "write", "metadata": "read"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Close stops the server and webhooks, cuts connections, waits for running requests, and removes the repositories.
func (s *Server) Close() error {
	s.webhooks.close()
	s.world.mu.Lock()
	s.closed = true
	s.world.mu.Unlock()
	err := s.http.Close()
	<-s.served
	s.inFlight.Wait()
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for _, r := range s.repos {
		err = errors.Join(err, r.git.close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// begin counts a request, unless the server is closing.
func (s *Server) begin() bool {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if !s.closed {
		s.inFlight.Add(1)
	}
	return !s.closed
}

// WebURL is the base for users and git (<WebURL>/<owner>/<repo>.git), without a final slash.
func (s *Server) WebURL() string { return s.base }

// APIURL is the base of the REST API, with a final slash.
func (s *Server) APIURL() string { return s.api() }

func (w *world) PrivateKeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(w.key)})
}

// appKey is shared by all servers of a process: generating a key is slow.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// Changed returns a channel that is closed after the next request, push, delivery or act of a user.
func (s *Server) Changed() <-chan struct{} { return s.world.changed.next() }

// Await returns when cond holds. It checks after every request, push, delivery and act of a user.
func (s *Server) Await(ctx context.Context, cond func() bool) error {
	for {
		rung := s.Changed()
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

// notifier notifies any number of waiters.
type notifier struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *notifier) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *notifier) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// ServeHTTP serves REST below /api/v3, job logs, attachments, the manifest form, logins and git.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.inFlight.Done()
	defer s.world.changed.ring()
	switch {
	case r.URL.Path == "/api/graphql":
		r.URL.Path = "/api/v3/graphql"
		s.restAPI.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/v3/"):
		s.restAPI.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, jobLogs):
		s.serveJobLog(w, r)
	case strings.HasPrefix(r.URL.Path, attachments):
		s.serveAttachment(w, r)
	case s.servesManifest(w, r), s.servesOAuth(w, r):
	default:
		s.serveGit(w, r)
	}
}

// WaitDelivered returns when no delivery is queued or being sent. Held deliveries do not count.
func (s *Server) WaitDelivered(ctx context.Context) error {
	return s.Await(ctx, func() bool {
		s.webhooks.mu.Lock()
		defer s.webhooks.mu.Unlock()
		return len(s.webhooks.queue) == 0 && !s.webhooks.sending
	})
}
