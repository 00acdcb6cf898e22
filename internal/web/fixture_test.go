package web_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

var now = time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)

type site struct {
	t        *testing.T
	url      string
	public   string       // the webhook listener
	cookie   *http.Cookie // the signed-in user; nil for none
	store    *store.Store
	counters *web.Counters
	log      *bytes.Buffer
	data     string       // the data directory
	running  thread.Lease // the lease that busy holds

	mu    sync.Mutex
	clock time.Time // the store's time when it appends events
}

// open serves the pages of an empty database. change may replace options.
func open(t *testing.T, change func(*web.Options)) *site {
	t.Helper()
	s := &site{t: t, clock: now, counters: web.NewCounters(), log: &bytes.Buffer{}}
	var err error
	s.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Backends = []config.Backend{{Name: "codex", Kind: "codex", Account: "main"}, {Name: "claude", Kind: "command", Account: "second"}}
	s.data = cfg.DataDir
	fold := &solver.Solver{Env: attempt.Env{Store: s.store, Config: cfg, Now: func() time.Time { return now }}}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pawl_github_requests_total", Help: "Requests."}, []string{"method", "route"})
	requests.WithLabelValues("GET", "/repos/{owner}/{repo}").Add(3)
	o := web.Options{
		Hook:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hook "+r.Method) }),
		Store: s.store, View: fold.View, Transcript: fold.Env.OpenTranscript,
		GitHub:   []prometheus.Collector{requests},
		Learning: func(context.Context) (solver.LearningReport, error) { return solver.LearningReport{}, nil },
		Skew:     func() time.Duration { return 0 },
		Layers:   func() (int, int64) { return 2, 3 << 20 },
		Images:   func() (int, int64) { return 1, 5 << 20 },
		Counters: s.counters, Build: web.Build{Version: "v1.2.3", Commit: "0f3c9a1", Go: "go1.26"},
		WebURL: "https://github.com", Limits: policy.Defaults, Now: func() time.Time { return now }, Log: zerolog.New(s.log),
	}
	if change != nil {
		change(&o)
	}
	server := httptest.NewUnstartedServer(nil)
	s.url = "http://" + server.Listener.Addr().String()
	o.Access.Key = make([]byte, 64)
	o.Access.URL = cmp.Or(o.Access.URL, s.url)
	pages, err := web.Pages(o)
	if err != nil {
		t.Fatal(err)
	}
	server.Config = web.Server(pages)
	server.Start()
	t.Cleanup(server.Close)
	public := httptest.NewServer(web.Public(o))
	t.Cleanup(public.Close)
	s.public = public.URL
	s.cookie = s.asOperator()
	return s
}

// asOperator signs in with a link and returns the cookie.
func (s *site) asOperator() *http.Cookie {
	s.t.Helper()
	secret, err := web.NewLink(s.t.Context(), s.store)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, body := s.do(s.request(http.MethodPost, s.url+web.LinkPath+secret))
	if answer.StatusCode != http.StatusOK || len(answer.Cookies()) != 1 {
		s.t.Fatalf("the link: %s, %d cookies\n%s", answer.Status, len(answer.Cookies()), body)
	}
	return answer.Cookies()[0]
}

func (s *site) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// happened appends an event at a time.
func (s *site) happened(issue string, at time.Time, kind thread.Kind, data any) {
	s.t.Helper()
	s.mu.Lock()
	s.clock = at
	s.mu.Unlock()
	if _, err := s.store.Append(s.t.Context(), s.thread(issue), false, thread.NewEvent{Kind: kind, At: at, Data: data}); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.clock = now
	s.mu.Unlock()
}

// reading stores an account's usage window.
func (s *site) reading(account string, w policy.Window) {
	s.t.Helper()
	if err := s.store.PutReading(s.t.Context(), thread.Reading{Account: account, Windows: []policy.Window{w}}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) leased(issue string, b thread.Batch) {
	s.t.Helper()
	lease, err := s.store.Acquire(s.t.Context(), s.thread(issue), "node")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.store.AppendLeased(s.t.Context(), lease, b); err != nil {
		s.t.Fatal(err)
	}
	if err := s.store.Release(s.t.Context(), lease, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) thread(name string) thread.ID {
	s.t.Helper()
	t, err := thread.Parse(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

// get does not follow redirects.
func (s *site) get(path string) (*http.Response, string) { return s.send(http.MethodGet, path) }

func (s *site) sendPublic(method, path string) (*http.Response, string) {
	s.t.Helper()
	return s.do(s.request(method, s.public+path))
}

func (s *site) request(method, address string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) send(method, path string) (*http.Response, string) {
	s.t.Helper()
	r := s.request(method, s.url+path)
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	return s.do(r)
}

func (s *site) do(r *http.Request) (*http.Response, string) {
	s.t.Helper()
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(body)
}

// page gets a page that must exist.
func (s *site) page(path string) string {
	s.t.Helper()
	answer, body := s.get(path)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s\n%s", path, answer.Status, body)
	}
	return body
}
