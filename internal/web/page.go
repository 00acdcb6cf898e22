package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
)

//go:embed page.html status.html thread.html
var templates embed.FS

//go:embed style.css
var style string

// pageTime bounds the work on one page; refresh is after how many seconds a
// browser asks for it again.
const (
	pageTime = 10 * time.Second
	refresh  = 15
)

// pages renders the HTML pages.
type pages struct {
	Options
	learned                *standing
	statusPage, threadPage *template.Template
	policy                 string // the Content-Security-Policy
}

func newPages(o Options, s *standing) *pages {
	parse := func(name string) *template.Template {
		return template.Must(template.New("page.html").ParseFS(templates, "page.html", name))
	}
	sum := sha256.Sum256([]byte(style))
	return &pages{
		Options: o, learned: s, statusPage: parse("status.html"), threadPage: parse("thread.html"),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// frame is what every page has around its content. Home leads to the status
// page: a relative address, so that a proxy may serve the pages below a path.
type frame struct {
	Title   string
	Home    string
	Style   template.CSS
	Refresh int
	Build   Build
	At      moment
}

func (p *pages) frame(title, home string, now time.Time) frame {
	return frame{Title: title, Home: home, Style: template.CSS(style), Refresh: refresh, Build: p.Build,
		At: at(now, now.UTC().Format("2006-01-02 15:04:05 UTC"))}
}

// render answers with a page, or with 500 and no half page.
func (p *pages) render(w http.ResponseWriter, page *template.Template, data any) {
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		p.Log.Error().Err(err).Msg("render a page")
		plain(w, http.StatusInternalServerError, "The page could not be rendered; the server's log says why.")
		return
	}
	guard(w.Header())
	w.Header().Set("Content-Security-Policy", p.policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Whoever asked has gone away if this does not arrive.
	_, _ = b.WriteTo(w)
}

// unavailable answers when the store cannot be read. The cause stays in the
// log.
func (p *pages) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody is waiting any more
	}
	p.Log.Error().Err(err).Str("path", line(r.URL.Path, 200)).Msg("a page could not be shown")
	plain(w, http.StatusServiceUnavailable, "The database could not be read; see /readyz and the server's log.")
}

// plain answers with one line of text.
func plain(w http.ResponseWriter, status int, s string) {
	guard(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s+"\n") // as above
}

// guard keeps browsers from guessing types, framing, caching and telling other
// sites where a link was followed.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// within bounds the work on a page.
func within(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), pageTime)
}

// headline is the sentence that says where a thread stands: the title of its
// check run.
func headline(f checkrun.Facts) string {
	return line(checkrun.Checks(f)[0].Title, 200)
}

// class is the style of a state; a word of ours, never one of the log.
func class(s checkrun.State) string {
	switch s {
	case checkrun.Running, checkrun.Waiting, checkrun.Stopped, checkrun.Done, checkrun.Failed:
		return string(s)
	case checkrun.ConfigError:
		return string(checkrun.Failed)
	}
	return "other"
}
