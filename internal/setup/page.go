package setup

import (
	"cmp"
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	text "text/template"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
)

// setupPage sends the manifest to GitHub and receives GitHub's redirect. Other machines may reach the page through a
// tunnel or a proxy. So the form's URL is unguessable, and a redirect counts only with the state, and only once.
type setupPage struct {
	Setup
	listener net.Listener
	secret   string // part of the form's URL
	state    string
	codes    chan string   // receives one code
	finished chan struct{} // closed when next and err are set
	next     []step
	err      error
	used     atomic.Bool // whether a redirect with the state arrived
}

// form writes a page that sends the manifest to GitHub. GitHub then redirects the browser to redirect.
func (s Setup) form(w io.Writer, state, redirect string) error {
	manifest, err := json.Marshal(s.manifest(redirect))
	if err != nil {
		return err
	}
	return setupForm.Execute(w, map[string]string{
		"Action":   s.action(state),
		"Manifest": string(manifest),
	})
}

func (s Setup) action(state string) string { return s.appsPage() + "/new?state=" + state }

// manifest returns app.yml with this server's URLs (docs.github.com, "Registering a GitHub App from a manifest").
func (s Setup) manifest(redirect string) map[string]any {
	return map[string]any{
		"name":        s.Name,
		"url":         "https://github.com/pawlbot/pawl",
		"public":      false,
		"description": "Runs coding agents on issues and pull requests, and cannot run away.",
		"hook_attributes": map[string]any{
			"url":    s.hook() + "/api/github/hook",
			"active": true,
		},
		"redirect_url":        redirect,
		"callback_urls":       []string{s.pages() + "/login/callback"},
		"default_events":      AppEvents(),
		"default_permissions": AppPermissions(),
	}
}

func (s Setup) pages() string { return cmp.Or(s.Pages, "http://"+config.DefaultPages) }

func (p *setupPage) base() string { return "http://" + p.listener.Addr().String() }

// serve answers until finish has handled GitHub's code or the context ends.
func (p *setupPage) serve(ctx context.Context) ([]step, error) {
	srv := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(p.listener) }()
	select {
	case code := <-p.codes:
		p.next, p.err = p.finish(ctx, code)
	case err := <-ended:
		return nil, fmt.Errorf("the page on this machine: %w", err)
	case <-ctx.Done():
		p.err = stopped(ctx)
	}
	close(p.finished)
	// Let the browser get its answer.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		srv.Close()
	}
	<-ended
	return p.next, p.err
}

// ServeHTTP answers requests for the form and GitHub's redirect. It refuses other host names, because another site
// could make its name resolve to this address (DNS rebinding).
func (p *setupPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for key, value := range pageHeaders {
		w.Header().Set(key, value)
	}
	path := r.URL.Path
	switch {
	case !p.serves(r.Host):
		http.Error(w, "This page is available only at "+p.base()+".", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet:
		http.Error(w, "This page accepts only GET.", http.StatusMethodNotAllowed)
	case path == "/created":
		p.created(w, r)
	case same(path, "/"+p.secret):
		p.show(w, p.base())
	case p.public == nil:
		nothing(w)
	case path == p.public.Path+"/created":
		p.created(w, r)
	// With the public URL's path, or without it if the proxy strips it.
	case same(path, p.public.Path+"/"+p.secret+"/remote"), same(path, "/"+p.secret+"/remote"):
		p.show(w, p.public.String())
	default:
		nothing(w)
	}
}

var pageHeaders = map[string]string{
	"Cache-Control":          "no-store",
	"Referrer-Policy":        "no-referrer",
	"X-Content-Type-Options": "nosniff",
	"X-Frame-Options":        "DENY",
	"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; " +
		"frame-ancestors 'none'; base-uri 'none'",
}

func (p *setupPage) serves(host string) bool {
	if host == p.listener.Addr().String() {
		return true
	}
	return p.public != nil && host == p.public.Host
}

// show answers with the form.
func (p *setupPage) show(w http.ResponseWriter, back string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Fails only if the browser has left.
	_ = p.form(w, p.state, back+"/created")
}

func nothing(w http.ResponseWriter) {
	const message = "There is nothing here. Use the address that pawl setup printed."
	http.Error(w, message, http.StatusNotFound)
}

// created handles GitHub's redirect. After a request with a wrong state, the right redirect still works.
func (p *setupPage) created(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := q.Get("code")
	switch {
	case !same(q.Get("state"), p.state):
		const message = "This request did not come from the page that pawl setup showed. " +
			"Start there again."
		http.Error(w, message, http.StatusForbidden)
		return
	case !forge.ValidCode(code):
		const message = "GitHub sent no valid code. " +
			"Start again on the page that pawl setup showed."
		http.Error(w, message, http.StatusBadRequest)
		return
	case p.used.Swap(true):
		const message = "Setup already has GitHub's answer. Look at the terminal."
		http.Error(w, message, http.StatusConflict)
		return
	}
	p.codes <- code
	select {
	case <-p.finished:
	case <-r.Context().Done():
		return
	}
	if p.err != nil {
		http.Error(w, "Setup failed: "+p.err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = nextPage.Execute(w, map[string]any{
		"Steps":  p.next,
		"Config": p.Config,
	})
}

func same(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

//go:embed form.html next.html
var pageFiles embed.FS

var (
	setupForm = template.Must(template.ParseFS(pageFiles, "form.html"))
	nextPage  = template.Must(template.ParseFS(pageFiles, "next.html"))
)

// AppPermissions returns the permissions in app.yml.
func AppPermissions() map[string]string {
	return map[string]string{
		"actions":       "read",
		"checks":        "write",
		"contents":      "write",
		"issues":        "write",
		"pull_requests": "write",
		"metadata":      "read",
	}
}

// AppEvents returns the events in app.yml.
func AppEvents() []string {
	return []string{
		"issues",
		"issue_comment",
		"pull_request",
		"pull_request_review",
		"pull_request_review_comment",
		"check_run",
		"push",
		"delete",
		"repository",
	}
}

// keyFile is the key's name next to the configuration.
const keyFile = "app.pem"

func (s Setup) key() string { return filepath.Join(filepath.Dir(s.Config), keyFile) }

func (s Setup) free() error {
	for _, path := range []string{s.Config, s.key()} {
		_, err := os.Lstat(path)
		if err == nil {
			return fmt.Errorf("%s exists already, and nothing is overwritten; "+
				"move it away, or write to another file with --config", path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look for %s: %w", path, err)
		}
	}
	dir := filepath.Dir(s.Config)
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	if err != nil {
		return fmt.Errorf("write to the folder %s: %w (make it, or let this user own it)", dir, err)
	}
	return nil
}

// write creates both files, the key first, and checks that the server can read the configuration. unset lists the
// configuration's variables that this process lacks.
func (s Setup) write(app forge.NewApp) (unset []string, err error) {
	text, err := s.configuration(app)
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	err = writeSecret(s.key(), app.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("write the App's private key: %w", err)
	}
	err = writeSecret(s.Config, text)
	if err != nil {
		return nil, fmt.Errorf("write the configuration (the key is in %s): %w", s.key(), err)
	}
	cfg, err := config.Load(s.Config, environment(&unset))
	if err == nil {
		_, err = cfg.GitHub.App.Key()
	}
	if err != nil {
		return nil, fmt.Errorf("read what was written: %w", err)
	}
	slices.Sort(unset)
	return slices.Compact(unset), nil
}

// writeSecret creates a file for this user only. It follows no link and overwrites nothing.
func writeSecret(path, text string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.WriteString(text)
	if err != nil {
		return err
	}
	return file.Sync()
}

// starter is the template of the new configuration: the required keys, and optional keys as comments.
//
//go:embed pawl.yml.tmpl
var starter string

func (s Setup) configuration(app forge.NewApp) (string, error) {
	vendor := func(kind string) config.Vendor {
		return config.VendorOf(cmp.Or(config.ProtocolOf(kind), config.OpenAI))
	}
	functions := text.FuncMap{
		"quote":  quoteYAML,
		"vendor": vendor,
	}
	t, err := text.New("pawl.yml").Funcs(functions).Parse(starter)
	if err != nil {
		return "", err
	}
	base := func(v config.Vendor) string { return os.Getenv(v.URLVariable) }
	var b strings.Builder
	usual := config.Default().GitHub
	err = t.Execute(&b, map[string]any{
		"App":       app,
		"Pages":     s.Pages,
		"Web":       s.hub.web,
		"REST":      s.hub.rest,
		"GraphQL":   s.hub.graphql,
		"Elsewhere": s.hub.rest != usual.V3APIURL,
		"Polls":     s.public == nil,
		"Base":      base,
		"Key":       keyFile,
		"Backend":   s.Backend,
		"CLIs":      config.CLIs(),
		"Vendors":   config.Vendors(),
		"Own":       vendor(s.Backend),
	})
	return b.String(), err
}

// quoteYAML quotes text for Go and YAML and escapes ${.
func quoteYAML(text string) string {
	return strconv.QuoteToASCII(strings.ReplaceAll(text, "${", "$${"))
}
