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

// Access configures who may see the pages.
type Access struct {
	// URL is the pages' public address without a trailing slash.
	URL string
	// OAuth is the App's client; nil if users sign in only by pawl login.
	OAuth  *oauth2.Config
	Client *http.Client // for the token exchange
	// User returns a token's owner.
	User func(ctx context.Context, token string) (User, error)
	// Permission returns a user's level for a repository ("owner/name"): admin, maintain, write, triage, read or none.
	Permission func(ctx context.Context, repo string, by User) (level string, err error)
	Operators  []string // logins
	// MetricsToken admits programs to /metrics; empty admits none.
	MetricsToken string
	Key          []byte // session key; see SessionKey

	base *url.URL // URL, parsed
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

// ownHost reports whether a request names this site as its host. Foreign pages can point their host names at this
// server (DNS rebinding), but not IP addresses.
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

// ownSite rejects foreign host names and cross-site posts.
func (p *pages) ownSite(h http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	_ = cross.AddTrustedOrigin(p.Access.base.Scheme + "://" + p.Access.base.Host) // never fails with scheme and host
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusForbidden, "This request did not come from Pawl's own pages. Nothing was done.")
	}))
	inside := cross.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.Access.ownHost(r.Host) {
			plain(
				w,
				http.StatusMisdirectedRequest,
				"These pages are not served under this host name. Use the address in server.public_url.",
			)
			return
		}
		inside.ServeHTTP(w, r)
	})
}

// signedIn admits signed-in users and shows others how to sign in.
func (p *pages) signedIn(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok, err := p.session(r)
		switch {
		case err != nil:
			p.unavailable(w, r, err)
			return
		case !ok:
			p.askIn(w, r)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

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

// knows reports whether a request may see details of the server.
func (p *pages) knows(r *http.Request) bool {
	if p.hasToken(r) {
		return true
	}
	user, ok, err := p.session(r)
	return err == nil && ok && user.Operator && p.Access.ownHost(r.Host)
}
