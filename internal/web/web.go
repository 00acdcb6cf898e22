package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/securecookie"
	lru "github.com/hashicorp/golang-lru"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

func (b Build) String() string {
	return fmt.Sprintf("pawl %s (commit %s, %s)", b.Version, b.Commit, b.Go)
}

// Options configures the pages. Only Details, GitHub, Stopping, HookRanges and Proxies may be empty.
type Options struct {
	// Hook handles every request to the webhook address.
	Hook  http.Handler
	Store *store.Store
	// View returns a thread's data as shown in the check runs.
	View     func(ctx context.Context, t thread.ID) (checkrun.View, error)
	GitHub   []prometheus.Collector // metrics of GitHub requests
	Details  []Detail
	Counters *Counters
	Learning func(ctx context.Context) (solver.LearningReport, error) // learning report of the backends
	Skew     func() time.Duration                                     // how far the database's clock is ahead; see store.Skew
	Layers   func() (layers int, bytes int64)                         // setup layers
	Images   func() (images int, bytes int64)                         // unpacked images
	Build    Build
	WebURL   string               // GitHub's address without a trailing slash
	Limits   func() policy.Limits // current limits
	Access   Access
	// Transcript returns an attempt's output; see attempt.ErrNoTranscript.
	Transcript func(t thread.ID, a thread.Started) (*attempt.Transcript, error)
	Stopping   <-chan struct{} // closes when pages must stop following attempts; nil for never
	// HookRanges returns GitHub's webhook addresses, or none if unknown; nil admits all senders.
	HookRanges func() []netip.Prefix
	Proxies    []netip.Prefix // proxies whose X-Forwarded-For is trusted
	Now        func() time.Time
	Log        zerolog.Logger
}

const HookPath = "/api/github/hook"

// Limits of concurrent requests by kind. A page folds up to 25 logs; a search may fold all. Anyone may request a
// readiness check, and it takes the write lock that webhooks need.
const (
	pagesAtOnce   = 2
	checksAtOnce  = 1
	scrapesAtOnce = 2
)

// Public serves the webhook and the liveness check.
func Public(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(
		HookPath,
		promhttp.InstrumentHandlerCounter(o.Counters.webhooks, behind(o.Proxies, fromGitHub(o.HookRanges, o.Hook))),
	)
	mux.HandleFunc("GET /healthz", alive)
	return mux
}

func alive(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") }

// Pages serves the pages for signed-in users and the operator's endpoints. Unknown paths get a plain 404.
func Pages(o Options) (http.Handler, error) {
	p, err := newPages(o)
	if err != nil {
		return nil, err
	}
	parts := newParts(o)
	site, machines := http.NewServeMux(), http.NewServeMux()
	for pattern, h := range p.site() {
		site.Handle(pattern, h)
	}
	machines.HandleFunc("GET /healthz", alive)
	machines.Handle("GET /readyz", inLine(make(chan struct{}, checksAtOnce), readiness(parts, o.Learning, p.knows)))
	machines.Handle("GET /metrics", p.operatorOnly(metrics(o, parts)))
	people := p.ownSite(site)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics": // probes may use any host name
			machines.ServeHTTP(w, r)
		default:
			people.ServeHTTP(w, r)
		}
	}), nil
}

// handlers maps http.ServeMux patterns.
type handlers map[string]http.Handler

// site returns the addresses for users. lab/pages opens each page in a browser.
func (p *pages) site() handlers {
	all := handlers{}
	p.addPages(all)
	p.addButtons(all)
	p.addLogin(all)
	return all
}

func (p *pages) addPages(to handlers) {
	line := make(chan struct{}, pagesAtOnce)
	page := func(path string, show http.HandlerFunc) { to["GET "+path] = p.signedIn(inLine(line, show)) }
	shows := func(path, template string, operators bool, read func(ctx context.Context, r *http.Request) (any, error)) {
		page(path, func(w http.ResponseWriter, r *http.Request) {
			if operators && !who(r).Operator {
				p.message(w, r, http.StatusNotFound, nothingHere, "This page is for the operators of this server.")
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), pageTime)
			defer cancel()
			if data, err := read(ctx, r); err != nil {
				p.unavailable(w, r, err)
			} else {
				p.render(w, http.StatusOK, template, data)
			}
		})
	}
	const one = "/threads/{owner}/{repo}/{n}"
	shows("/{$}", "threads.html", false, p.findThreads)
	shows("/costs", "costs.html", false, p.readCosts)
	shows("/accounts", "accounts.html", true, p.readAccounts)
	shows("/backends", "arms.html", true, p.readArms)
	page(one, p.thread)
	page(one+"/attempts/{attempt}/log", p.log)
	// These requests last as long as the client reads, so they do not count against pagesAtOnce.
	to["GET "+one+"/live"] = p.signedIn(http.HandlerFunc(p.live))
	to["GET "+one+"/attempts/{attempt}/raw"] = p.signedIn(http.HandlerFunc(p.rawLog))
}

// inLine limits concurrent requests to line's capacity.
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

// Connection limits. GitHub abandons a webhook after 10 s (docs.github.com, "Best practices for using webhooks"); its
// headers take about 1 KiB. readTime also limits memory, since a signature covers the whole body.
const (
	headerTime = 5 * time.Second
	readTime   = 15 * time.Second
	writeTime  = 90 * time.Second // from the headers on, for reading the body and rendering
	idleTime   = 120 * time.Second
	maxHeader  = 64 << 10
)

// maxConnections limits a listener's open connections, about 12 KiB each.
const maxConnections = 2048

// Listen limits a listener's open connections to maxConnections, or to a quarter of the files that the process may
// open. Further connections wait in the kernel's queue.
func Listen(l net.Listener) net.Listener {
	most := uint64(maxConnections)
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		most = min(most, max(files.Cur/4, 16))
	}
	return netutil.LimitListener(l, int(most))
}

// Server returns an HTTP server that cuts off slow and silent clients.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
	}
}

//go:embed *.html
var templates embed.FS

//go:embed style.css
var style string

// script is optional on every page: it follows an attempt and loads earlier lines of a log.
//
//go:embed page.js
var script string

const pageTime = 10 * time.Second

type pages struct {
	Options
	templates   map[string]*template.Template // by file name
	policy      string                        // Content-Security-Policy
	lives       chan struct{}                 // pages that follow an attempt
	seal        *securecookie.SecureCookie
	permissions *lru.Cache // permissionOf → permission
	index       *lru.Cache // thread.ID → indexed
}

func newPages(o Options) (p *pages, err error) {
	if o.Access.base, err = url.Parse(o.Access.URL); err != nil || o.Access.base.Host == "" {
		return nil, fmt.Errorf("server.public_url: %q is not a valid address for the pages", o.Access.URL)
	}
	p = &pages{
		Options:   o,
		seal:      newSeal(o.Access.Key),
		templates: map[string]*template.Template{},
		lives:     make(chan struct{}, livesAtOnce),
		policy: "default-src 'none'; style-src " + source(style) + "; script-src " + source(script) +
			"; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
	}
	for _, name := range []string{"threads.html", "thread.html", "log.html", "costs.html", "accounts.html", "arms.html", "message.html"} {
		p.templates[name] = template.Must(template.New("page.html").Funcs(words()).ParseFS(templates, "page.html", name))
	}
	p.permissions, _ = lru.New(maxPermissions) // fails only for a size below 1
	p.index, _ = lru.New(maxListed)
	return p, nil
}

// source names inline content for a Content-Security-Policy.
func source(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// frame is the data around every page. Home is a relative address of the first page, so that a proxy may add a path.
type frame struct {
	Title    string
	Home     string
	Style    template.CSS
	Script   template.JS
	Build    Build
	Now      time.Time
	By       string // signed-in user, or empty
	Operator bool
	Go       string // where the browser is redirected, or empty
}

func (p *pages) frame(r *http.Request, title, home string) frame {
	f := frame{
		Title:  title,
		Home:   home,
		Style:  template.CSS(style),
		Script: template.JS(script),
		Build:  p.Build,
		Now:    p.Now().UTC(),
	}
	if by := who(r); by != (User{}) {
		f.By, f.Operator = by.Name(), by.Operator
	}
	return f
}

// render answers with a whole page, or with 500.
func (p *pages) render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := p.templates[name].Execute(&b, data); err != nil {
		p.Log.Error().Err(err).Msg("render a page")
		plain(w, http.StatusInternalServerError, "The page could not be rendered; the server's log says why.")
		return
	}
	referrer := w.Header().Get("Referrer-Policy")
	guard(w.Header())
	if referrer != "" {
		w.Header().Set("Referrer-Policy", referrer)
	}
	w.Header().Set("Content-Security-Policy", p.policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}

const nothingHere = "Nothing here"

func (p *pages) message(w http.ResponseWriter, r *http.Request, status int, title, what string) {
	p.lead(w, r, status, way{Title: title, Text: what})
}

// way is a message with a next step: at most one of Go, SignIn and Button is set.
type way struct {
	Title, Text string
	Go          string // where the browser is redirected
	SignIn      string // sign-in address
	Button      string // label of a button that posts to the page
}

func (p *pages) lead(w http.ResponseWriter, r *http.Request, status int, to way) {
	home := "./" + strings.Repeat("../", max(0, strings.Count(r.URL.EscapedPath(), "/")-1))
	f := p.frame(r, to.Title, home)
	f.Now, f.Go = time.Time{}, to.Go // no time, so that equal messages give identical pages
	p.render(w, status, "message.html", struct {
		frame
		Text, SignIn, Button string
	}{f, to.Text, to.SignIn, to.Button})
}

// unavailable answers if the database or GitHub failed. Only the server's log names the cause.
func (p *pages) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has left
	}
	path := render.Line(r.URL.Path, 200)
	if strings.HasPrefix(path, LinkPath) {
		path = LinkPath // the rest of the path signs a user in
	}
	p.Log.Error().Err(err).Str("path", path).Msg("show a page")
	p.message(
		w,
		r,
		http.StatusServiceUnavailable,
		"Temporarily unavailable",
		"The database or GitHub did not answer; see /readyz and the server's log. Try again in a minute.",
	)
}

func plain(w http.ResponseWriter, status int, s string) {
	guard(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s+"\n") // errors mean that the client has left
}

func redirect(w http.ResponseWriter, status int, to string) {
	guard(w.Header())
	w.Header().Set("Location", to)
	w.WriteHeader(status)
}

// guard sets headers that prevent MIME sniffing, framing, caching and referrers.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// classes maps states to styles; others get "other".
var classes = map[checkrun.State]string{
	checkrun.Running:     "running",
	checkrun.Waiting:     "waiting",
	checkrun.Stopped:     "stopped",
	checkrun.Done:        "done",
	checkrun.Failed:      "failed",
	checkrun.Answered:    "done",
	checkrun.Planned:     "waiting",
	checkrun.ConfigError: "failed",
}
