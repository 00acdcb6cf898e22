package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/internal/render"
)

// User is a signed-in user.
type User struct {
	Login    string `json:"login,omitempty"` // at GitHub; empty after pawl login
	ID       int64  `json:"id,omitempty"`
	Operator bool   `json:"-"` // may see everything and use every button of this server
}

// Name identifies the user in logs and pages. GitHub logins have no spaces, so none equals the name of an
// operator without a login.
func (p User) Name() string {
	if p.Login == "" {
		return "an operator at the server"
	}
	return p.Login
}

type userKey struct{}

// who returns a request's user. The zero User may do nothing.
func who(r *http.Request) User {
	p, _ := r.Context().Value(userKey{}).(User)
	return p
}

// Lifetime and size of the cache of GitHub's answers about permissions.
const (
	permissionTime = time.Minute
	maxPermissions = 10_000
)

type permission struct {
	level string
	until time.Time
}

type permissionOf struct {
	user       int64
	repository string
}

// mayRead reports whether a user may see a repository ("owner/name"); treat an error as no. Unreadable repositories
// look like missing ones. Pawl asks GitHub as the App and stores no user tokens. Lost access takes effect within a
// minute.
func (p *pages) mayRead(ctx context.Context, by User, repo string) (bool, error) {
	if by.Operator || by.Login == "" {
		return by.Operator, nil
	}
	key, now := permissionOf{by.ID, strings.ToLower(repo)}, p.Now()
	if known, ok := p.permissions.Get(key); ok && now.Before(known.(permission).until) {
		return known.(permission).level != "none", nil
	}
	level, err := p.Access.Permission(ctx, repo, by)
	if err != nil {
		return false, err
	}
	p.permissions.Add(key, permission{level, now.Add(permissionTime)})
	return level != "none", nil
}

// may reports whether a user's permission for a repository is enough. Unlike mayRead, it asks GitHub each time.
func (p *pages) may(ctx context.Context, by User, repo string, enough func(permission string) bool) (bool, error) {
	if by.Operator || by.Login == "" {
		return by.Operator, nil
	}
	level, err := p.Access.Permission(ctx, repo, by)
	return enough(level), err
}

func (p *pages) allows(r *http.Request, enough func(permission string) bool) (bool, error) {
	if enough == nil {
		return who(r).Operator, nil
	}
	t, err := threadOf(r)
	if err != nil {
		return false, nil
	}
	return p.may(r.Context(), who(r), t.Repo(), enough)
}

// act handles a button, which is a form with method="post". ownSite and the SameSite=Strict cookie keep other sites
// out. Operators may press every button. Other users need enough permission for the thread's repository; a nil enough
// admits operators only. act writes the server's log; do writes the thread's log and redirects.
func (p *pages) act(enough func(permission string) bool, do func(w http.ResponseWriter, r *http.Request, by User)) http.Handler {
	return p.signedIn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok, err := p.allows(r, enough)
		if err != nil {
			p.unavailable(w, r, err)
			return
		}
		log := p.Log.With().Str("by", who(r).Name()).Str("path", render.Line(r.URL.Path, 200)).Logger()
		if !ok {
			// Missing repositories get the same answer.
			log.Warn().Msg("refused a button: the user may not do this")
			plain(w, http.StatusNotFound, noThread)
			return
		}
		log.Info().Msg("a user pressed a button")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		do(w, r, who(r))
	}))
}

// maxForm limits a form, in bytes: a text of commands.MaxText, each byte as %XX.
const maxForm = 3*commands.MaxText + 1<<10
