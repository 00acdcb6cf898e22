package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
)

// Person is who is signed in.
type Person struct {
	Login    string `json:"login,omitempty"` // at GitHub; empty for who came by a link of pawl login
	ID       int64  `json:"id,omitempty"`
	Operator bool   `json:"-"` // may see and do everything on this server
}

// Name is how logs and pages call the person. A login has no spaces, so nobody's is that of who came by a link.
func (p Person) Name() string {
	if p.Login == "" {
		return "an operator at the server"
	}
	return p.Login
}

type personKey struct{}

// who is the person who asks; the zero Person, who may nothing, where nobody is signed in. Every page but those of the
// login has one.
func who(r *http.Request) Person {
	p, _ := r.Context().Value(personKey{}).(Person)
	return p
}

// permissionTime is how long an answer of GitHub holds for what people may read, and maxPermissions how many are kept.
const (
	permissionTime = time.Minute
	maxPermissions = 10_000
)

// permission is what GitHub said of a person and a repository.
type permission struct {
	level string
	until time.Time
}

type permissionOf struct {
	person     int64
	repository string
}

// mayRead reports whether a person may see what is said of a repository ("owner/name"); an error is no yes. Of one that they
// may not read a page shows nothing: not its name, no count that it is part of, and for an address of it the same 404 as
// for one that does not exist. GitHub is asked with the
// App's permissions, so that nobody's token is kept; who lost access sees nothing a minute later.
func (p *pages) mayRead(ctx context.Context, by Person, repo string) (bool, error) {
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

// may reports whether a person's permission for a repository is enough, asked of GitHub anew each time.
func (p *pages) may(ctx context.Context, by Person, repo string, enough func(permission string) bool) (bool, error) {
	if by.Operator || by.Login == "" {
		return by.Operator, nil
	}
	level, err := p.Access.Permission(ctx, repo, by)
	return enough(level), err
}

// allows reports whether who asks may use a button; see act.
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

// act is the handler of a button, which is a form with method="post" without a token of its own: what does not come from
// Pawl's own pages was refused before (ownSite, beside a cookie that is SameSite=Strict). It lets operators, and of others,
// where the path is that of a thread, whose permission there is enough; with nil operators only. It writes down who did
// what in the server's log, and do does so in the log of the thread, by the name by.Name(). do answers with a redirect, since
// the page after a POST is asked for anew.
func (p *pages) act(enough func(permission string) bool, do func(w http.ResponseWriter, r *http.Request, by Person)) http.Handler {
	return p.signedIn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok, err := p.allows(r, enough)
		if err != nil {
			p.unavailable(w, r, err)
			return
		}
		log := p.Log.With().Str("by", who(r).Name()).Str("path", render.Line(r.URL.Path, 200)).Logger()
		if !ok {
			// Also where the repository does not exist.
			log.Warn().Msg("a button was refused: the person may not do this")
			plain(w, http.StatusNotFound, noThread)
			return
		}
		log.Info().Msg("a person acts")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		do(w, r, who(r))
	}))
}

// maxForm bounds what a button sends, in bytes.
const maxForm = 16 << 10
