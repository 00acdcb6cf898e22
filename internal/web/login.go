package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	"golang.org/x/oauth2"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
)

// The addresses of the login. GitHub sends people back to CallbackPath.
const (
	CallbackPath = "/login/callback"
	loginPath    = "/login/github"
	LinkPath     = "/login/link/"
	logoutPath   = "/logout"
)

// loginsAtOnce is how many codes are exchanged at GitHub at a time.
const loginsAtOnce = 2

func (p *pages) addLogin(to handlers) {
	to["GET "+loginPath] = http.HandlerFunc(p.toGitHub)
	to["GET "+CallbackPath] = inLine(make(chan struct{}, loginsAtOnce), http.HandlerFunc(p.fromGitHub))
	to["GET "+LinkPath+"{secret}"] = http.HandlerFunc(p.offer)
	to["POST "+LinkPath+"{secret}"] = http.HandlerFunc(p.byLink)
	to["POST "+logoutPath] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.forget(w, sessionCookie)
		p.message(w, r, http.StatusOK, "Signed out", "You are signed out in this browser.")
	})
}

// askIn answers who is not signed in. A browser that followed a link from elsewhere did not send its cookie, which
// is SameSite=Strict; asked by the page itself it does.
func (p *pages) askIn(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		p.lead(w, r, http.StatusOK, way{
			Title: "One moment",
			Text:  "Opening the page …",
			Go:    p.Access.base.Path + local(r.URL.RequestURI()),
		})
		return
	}
	p.signIn(
		w,
		r,
		http.StatusUnauthorized,
		r.URL.RequestURI(),
		"This page is for people who may read the repository that it is about, and for the operators of this server.",
	)
}

// signIn shows the way in.
func (p *pages) signIn(w http.ResponseWriter, r *http.Request, status int, next, why string) {
	link := ""
	if p.Access.OAuth != nil {
		link = p.Access.base.Path + loginPath + "?" + url.Values{"next": {local(next)}}.Encode()
	}
	p.lead(w, r, status, way{Title: "Sign in", Text: why, SignIn: link})
}

// toGitHub sends the browser to GitHub (docs.github.com, "Generating a user access token for a GitHub App").
func (p *pages) toGitHub(w http.ResponseWriter, r *http.Request) {
	if p.Access.OAuth == nil {
		p.signIn(
			w,
			r,
			http.StatusNotFound,
			"/",
			"This server has no login with GitHub: github.app.client_id and client_secret are not set.",
		)
		return
	}
	l := login{
		State:    rand.Text(),
		Verifier: oauth2.GenerateVerifier(),
		Next:     local(r.URL.Query().Get("next")),
		Until:    p.Now().Add(loginTime),
	}
	// Lax, as GitHub's redirect has to bring it along.
	cookie, err := p.cookie(loginCookie, l, loginTime, http.SameSiteLaxMode)
	if err != nil {
		p.signIn(w, r, http.StatusBadRequest, "/", "The address to go back to is too long.")
		return
	}
	http.SetCookie(w, cookie)
	redirect(w, http.StatusSeeOther, p.Access.OAuth.AuthCodeURL(l.State, oauth2.S256ChallengeOption(l.Verifier)))
}

// fromGitHub takes what GitHub sends the browser back with. It counts in the browser that went there only, once.
func (p *pages) fromGitHub(w http.ResponseWriter, r *http.Request) {
	var l login
	q := r.URL.Query()
	known := p.opened(r, loginCookie, &l) && p.Now().Before(l.Until)
	if p.Access.OAuth == nil || !known || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.State)) != 1 {
		p.signIn(
			w,
			r,
			http.StatusForbidden,
			"/",
			"This did not come from a login that was begun in this browser within the last 10 minutes. Begin again.",
		)
		return
	}
	p.forget(w, loginCookie)
	if q.Get("code") == "" {
		p.signIn(w, r, http.StatusForbidden, l.Next, "GitHub did not sign you in: "+render.Line(q.Get("error_description"), 200))
		return
	}
	token, err := p.Access.OAuth.Exchange(
		context.WithValue(r.Context(), oauth2.HTTPClient, p.Access.Client),
		q.Get("code"),
		oauth2.VerifierOption(l.Verifier),
	)
	var person Person
	if err == nil {
		// The token is used this once, and kept nowhere.
		person, err = p.Access.User(r.Context(), token.AccessToken)
	}
	if err == nil && (person.Login == "" || person.ID == 0) {
		err = errors.New("the answer names nobody")
	}
	if err != nil {
		p.Log.Warn().Str("cause", render.Line(err.Error(), 300)).Msg("a login with GitHub failed")
		p.signIn(w, r, http.StatusBadGateway, l.Next, "GitHub did not say who you are; the server's log says why. Try again.")
		return
	}
	p.begin(w, r, person, l.Next)
}

// offer shows the button of a link that pawl login made. It uses nothing up: chats and mail programs fetch links before
// anybody clicks.
func (p *pages) offer(w http.ResponseWriter, r *http.Request) {
	p.withLink(w, r, isGood, func() {
		// Under no-referrer browsers without Sec-Fetch-Site send the button's request without its origin, and ownSite
		// refuses it. An origin does not hold the link's secret.
		w.Header().Set("Referrer-Policy", "strict-origin")
		p.lead(w, r, http.StatusOK, way{
			Title:  "Sign in",
			Text:   "This link signs this browser in as an operator of this server, once.",
			Button: "Sign in",
		})
	})
}

// byLink signs an operator in who pressed the button of a link.
func (p *pages) byLink(w http.ResponseWriter, r *http.Request) {
	p.withLink(w, r, redeem, func() { p.begin(w, r, Person{}, "/") })
}

// withLink goes on where a check says that the request's link is good.
func (p *pages) withLink(w http.ResponseWriter, r *http.Request, check func(context.Context, *store.Store, string) (bool, error), good func()) {
	ok, err := check(r.Context(), p.Store, r.PathValue("secret"))
	switch {
	case err != nil:
		p.unavailable(w, r, err)
	case !ok:
		const told = "This link was used before, or is older than 5 minutes. pawl login prints another."
		p.signIn(w, r, http.StatusForbidden, "/", told)
	default:
		good()
	}
}

// begin begins a session, whatever the browser had before.
func (p *pages) begin(w http.ResponseWriter, r *http.Request, person Person, next string) {
	out, err := p.signedOut(r.Context())
	if err != nil {
		p.unavailable(w, r, err)
		return
	}
	cookie, err := p.cookie(
		sessionCookie,
		session{Person: person, Until: p.Now().Add(sessionTime), Knows: out.Last},
		sessionTime,
		http.SameSiteStrictMode,
	)
	if err != nil {
		p.Log.Error().Err(err).Msg("a session could not be sealed")
		plain(w, http.StatusInternalServerError, "You could not be signed in; the server's log says why.")
		return
	}
	p.Log.Info().Str("by", person.Name()).Msg("a person signed in")
	http.SetCookie(w, cookie)
	// A redirect that began at GitHub would not bring the new cookie along; the page itself does.
	p.lead(w, r, http.StatusOK, way{
		Title: "Signed in",
		Text:  "You are signed in as " + person.Name() + ".",
		Go:    p.Access.base.Path + local(next),
	})
}

// local is an address of this site as a path with its query; "/" for everything else.
func local(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		path.Clean(u.Path) != u.Path || strings.ContainsFunc(u.Path, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}
