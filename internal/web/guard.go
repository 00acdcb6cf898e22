package web

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// Access says who may see the pages.
type Access struct {
	// URL is where people reach the pages, without a slash at its end.
	URL string
	// OAuth is the App's client; nil where people come only by links of pawl login.
	OAuth  *oauth2.Config
	Client *http.Client // carries the exchange
	// User is whose token GitHub gave for OAuth.
	User func(ctx context.Context, token string) (Person, error)
	// Permission is a person's level in a repository ("owner/name"): admin, maintain, write, triage, read or none,
	// which it is also where the App does not reach it.
	Permission func(ctx context.Context, repo string, by Person) (level string, err error)
	Operators  []string // their logins
	// MetricsToken lets a program read /metrics; empty lets none.
	MetricsToken string
	Key          []byte // of the sessions; see SessionKey

	base *url.URL // URL, read
}

func (a Access) secure() bool { return a.base.Scheme == "https" }

func (a Access) cookieName(name string) string {
	if a.secure() {
		return "__Host-" + name
	}
	return name
}

func (a Access) operator(login string) bool {
	return slices.ContainsFunc(a.Operators, func(o string) bool { return strings.EqualFold(o, login) })
}

// ownHost reports whether a request was sent to this site by a name of it. A page elsewhere can have its own name
// lead here (DNS rebinding), and never an address: browsers take these as they are.
func (a Access) ownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return strings.EqualFold(name, "localhost") || strings.EqualFold(name, a.base.Hostname())
}

// ownSite keeps browsers that were led here, and posts from elsewhere, away from everything behind it.
func (p *pages) ownSite(h http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	_ = cross.AddTrustedOrigin(p.Access.base.Scheme + "://" + p.Access.base.Host) // never fails for an address with both
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusForbidden, "This did not come from Pawl's own pages, so nothing was done.")
	}))
	inside := cross.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.Access.ownHost(r.Host) {
			plain(
				w,
				http.StatusMisdirectedRequest,
				"These pages are not served under this name; server.public_url is the one that they have.",
			)
			return
		}
		inside.ServeHTTP(w, r)
	})
}

// signedIn lets people through who are signed in, and shows others how to.
func (p *pages) signedIn(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person, ok, err := p.session(r)
		switch {
		case err != nil:
			p.unavailable(w, r, err)
			return
		case !ok:
			p.askIn(w, r)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), personKey{}, person)))
	})
}

// operatorOnly lets operators through, and programs that have the token of the metrics.
func (p *pages) operatorOnly(h http.Handler) http.Handler {
	people := p.signedIn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !who(r).Operator {
			plain(w, http.StatusNotFound, noThread)
			return
		}
		h.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.hasToken(r) {
			h.ServeHTTP(w, r)
			return
		}
		p.ownSite(people).ServeHTTP(w, r)
	})
}

func (p *pages) hasToken(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	want := p.Access.MetricsToken
	return ok && want != "" && subtle.ConstantTimeCompare([]byte(token), []byte(want)) == 1
}

// knows reports whether details of the server may be told.
func (p *pages) knows(r *http.Request) bool {
	if p.hasToken(r) {
		return true
	}
	person, ok, err := p.session(r)
	return err == nil && ok && person.Operator && p.Access.ownHost(r.Host)
}
