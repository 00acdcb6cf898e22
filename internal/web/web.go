package web

import (
	"context"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// Store is what the pages and the metrics read.
type Store interface {
	// Ping reports whether the database can be written to.
	Ping(ctx context.Context) error
	// Threads lists threads that had at least one attempt or wait, newest first.
	Threads(ctx context.Context, limit int) ([]solver.ThreadRow, error)
	// Thread returns one thread's row or solver.ErrNotFound.
	Thread(ctx context.Context, t solver.Thread) (solver.ThreadRow, error)
	// Resolve returns the thread that a number belongs to.
	Resolve(ctx context.Context, t solver.Thread) (solver.Thread, error)
	// Events returns a thread's log after a sequence number, oldest first.
	Events(ctx context.Context, t solver.Thread, after int64) ([]solver.Event, error)
	// Breakers returns the breakers that are not zero, by account.
	Breakers(ctx context.Context) (map[string]policy.Breaker, error)
	// Cooldowns returns the cooldowns that end after now, by repository; all of
	// them for the repository "".
	Cooldowns(ctx context.Context, repo string, now time.Time) (map[string][]solver.Cooldown, error)
}

// Stats are the store's counts.
type Stats struct {
	Waiting    int           // threads with a wake-up time
	Running    int           // threads whose lease somebody holds
	Queued     int           // threads that need a step
	QueueAge   time.Duration // of the oldest of those; zero when there are none
	Deliveries map[solver.DeliveryState]int
	// DeliveryAge is how long the oldest delivery that nobody has handled has
	// waited; zero when there is none.
	DeliveryAge time.Duration
}

// Requests says how often one kind of request was sent to GitHub.
type Requests struct {
	Method string
	// Route is the path with its variable parts in braces.
	Route string
	Sent  int64
}

// Points says what the requests of one installation have cost of GitHub's points.
type Points struct {
	Installation int64
	Used         int64
}

// Build names the program that serves.
type Build struct{ Version, Commit, Go string }

// Options are the parts that the pages show. All are required, except that
// Details may be empty, and Learning, Points and Skew nil.
type Options struct {
	// Hook takes every request to the webhook address, whatever its method.
	Hook  http.Handler
	Store Store
	// View is the fold of one thread in the words of the check runs.
	View     func(ctx context.Context, t solver.Thread) (checkrun.Facts, error)
	Stats    func(ctx context.Context) (Stats, error)
	Requests func() []Requests
	Details  []Detail
	Counters *Counters
	// Learning is what was learned of the backends.
	Learning func(ctx context.Context) (solver.Standing, error)
	Points   func() []Points
	// Skew is how far the clock of the database is ahead of this machine's; see
	// store.Skew for SQLite.
	Skew  func() time.Duration
	Build Build
	// WebURL is where GitHub shows repositories, without a slash at its end.
	WebURL string
	// MaxLimits is how many failures in a row open an account's breaker.
	MaxLimits int
	Now       func() time.Time
	Log       zerolog.Logger
}

// HookPath is where webhooks arrive.
const HookPath = "/api/github/hook"

// How many requests of a kind are worked on at a time; others wait in line. A
// status page folds up to 50 logs, and a readiness check takes the write lock
// that webhooks need, so strangers must not have many of them at once.
const (
	pagesAtOnce   = 2
	checksAtOnce  = 1
	scrapesAtOnce = 2
)

// New returns the handler of the whole server. What is not listed in the
// contract is a plain 404.
func New(o Options) http.Handler {
	learned := &standing{ask: o.Learning, now: o.Now}
	p, parts := newPages(o, learned), newParts(o)
	mux := http.NewServeMux()
	mux.Handle(HookPath, counting(o.Counters, o.Hook))
	pages := make(chan struct{}, pagesAtOnce)
	mux.Handle("GET /{$}", inLine(pages, http.HandlerFunc(p.status)))
	mux.Handle("GET /threads/{owner}/{repo}/{n}", inLine(pages, http.HandlerFunc(p.thread)))
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /readyz", inLine(make(chan struct{}, checksAtOnce), readiness(parts, learned)))
	mux.Handle("GET /metrics", metrics(o, learned, parts))
	return mux
}

// inLine lets as many requests through at a time as the line has room for.
func inLine(line chan struct{}, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case line <- struct{}{}:
			defer func() { <-line }()
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// The times of a connection. GitHub's largest webhook, 25 MiB, needs 60 s on a
// line of 3.5 Mbit/s; GitHub itself gives up after 10 s, Enterprise Server
// after 30 s. GitHub's own headers are about 1 KiB.
const (
	headerTime = 10 * time.Second
	readTime   = 60 * time.Second
	writeTime  = 90 * time.Second // counts from the header on, so it covers reading
	idleTime   = 120 * time.Second
	maxHeader  = 64 << 10
)

// Server is an HTTP server for the handler that slow or silent clients cannot
// tie up.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
	}
}
