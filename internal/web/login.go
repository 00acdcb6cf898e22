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

// Login addresses. GitHub redirects users to CallbackPath.
const (
	CallbackPath = "/login/callback"
	loginPath    = "/login/github"
	LinkPath     = "/login/link/"
	logoutPath   = "/logout"
)

// loginsAtOnce limits concurrent code exchanges.
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

// askIn answers requests without a session. A browser that follows a link from another site does not send its
// SameSite=Strict cookie, so askIn redirects it: the second request comes from this site.
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
		"Only users who may read the repository and operators of this server see this page.",
	)
}

func (p *pages) signIn(w http.ResponseWriter, r *http.Request, status int, next, why string) {
	link := ""
	if p.Access.OAuth != nil {
		link = p.Access.base.Path + loginPath + "?" + url.Values{"next": {local(next)}}.Encode()
	}
	p.lead(w, r, status, way{Title: "Sign in", Text: why, SignIn: link})
}

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
	// SameSite is Lax, because the browser must send the cookie after GitHub's redirect.
	cookie, err := p.cookie(loginCookie, l, loginTime, http.SameSiteLaxMode)
	if err != nil {
		p.signIn(w, r, http.StatusBadRequest, "/", "The address to go back to is too long.")
		return
	}
	http.SetCookie(w, cookie)
	redirect(w, http.StatusSeeOther, p.Access.OAuth.AuthCodeURL(l.State, oauth2.S256ChallengeOption(l.Verifier)))
}

// fromGitHub handles GitHub's redirect. It accepts a login once, and only in the browser that began it.
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
			"No login began in this browser within the last 10 minutes. Start again.",
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
	var user User
	if err == nil {
		// The token is used only here and never stored.
		user, err = p.Access.User(r.Context(), token.AccessToken)
	}
	if err == nil && (user.Login == "" || user.ID == 0) {
		err = errors.New("the answer names no user")
	}
	if err != nil {
		p.Log.Warn().Str("cause", render.Line(err.Error(), 300)).Msg("log in with GitHub")
		p.signIn(w, r, http.StatusBadGateway, l.Next, "GitHub did not say who you are; the server's log says why. Try again.")
		return
	}
	p.begin(w, r, user, l.Next)
}

// offer shows a login link's button. Showing the button does not use up the link, since chats and mail programs
// prefetch links.
func (p *pages) offer(w http.ResponseWriter, r *http.Request) {
	p.withLink(w, r, isGood, func() {
		// Under no-referrer, browsers without Sec-Fetch-Site omit the origin, and ownSite would refuse the button.
		// The origin does not contain the secret.
		w.Header().Set("Referrer-Policy", "strict-origin")
		p.lead(w, r, http.StatusOK, way{
			Title:  "Sign in",
			Text:   "This link signs this browser in as an operator of this server, once.",
			Button: "Sign in",
		})
	})
}

func (p *pages) byLink(w http.ResponseWriter, r *http.Request) {
	p.withLink(w, r, redeem, func() { p.begin(w, r, User{}, "/") })
}

// withLink calls good if check accepts the request's link.
func (p *pages) withLink(w http.ResponseWriter, r *http.Request, check func(context.Context, *store.Store, string) (bool, error), good func()) {
	ok, err := check(r.Context(), p.Store, r.PathValue("secret"))
	switch {
	case err != nil:
		p.unavailable(w, r, err)
	case !ok:
		const why = "This link was used before, or is older than 5 minutes. pawl login prints another."
		p.signIn(w, r, http.StatusForbidden, "/", why)
	default:
		good()
	}
}

// begin starts a session and replaces the browser's earlier one.
func (p *pages) begin(w http.ResponseWriter, r *http.Request, user User, next string) {
	out, err := p.signedOut(r.Context())
	if err != nil {
		p.unavailable(w, r, err)
		return
	}
	cookie, err := p.cookie(
		sessionCookie,
		session{User: user, Until: p.Now().Add(sessionTime), Knows: out.Last},
		sessionTime,
		http.SameSiteStrictMode,
	)
	if err != nil {
		p.Log.Error().Err(err).Msg("seal a session")
		plain(w, http.StatusInternalServerError, "Sign-in failed; the server's log says why.")
		return
	}
	p.Log.Info().Str("by", user.Name()).Msg("a user signed in")
	http.SetCookie(w, cookie)
	// After a redirect from GitHub, the browser would not send the new cookie. After a redirect by this page, it does.
	p.lead(w, r, http.StatusOK, way{
		Title: "Signed in",
		Text:  "You are signed in as " + user.Name() + ".",
		Go:    p.Access.base.Path + local(next),
	})
}

// local returns the path and query of an address on this site, otherwise "/".
func local(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		path.Clean(u.Path) != u.Path || strings.ContainsFunc(u.Path, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}
