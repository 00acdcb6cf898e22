package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	lru "github.com/hashicorp/golang-lru"
	"golang.org/x/oauth2"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
)

func (s *Server) access(ctx context.Context) (a web.Access, err error) {
	c := s.cfg.HTTP
	a = web.Access{
		URL:          c.PublicURL,
		Operators:    c.Operators,
		MetricsToken: c.MetricsToken.Reveal(),
		Permission:   newPermissions(s.forge).of,
	}
	if a.URL == "" {
		a.URL = "http://" + reachable(s.pagesListener.Addr())
	}
	if a.Key, err = web.SessionKey(ctx, s.store); err != nil {
		return a, err
	}
	if err := web.RememberPages(ctx, s.store, hostName(), a.URL); err != nil {
		return a, err
	}
	if app := s.cfg.GitHub.App; app.ClientID != "" {
		a.OAuth = &oauth2.Config{
			ClientID: app.ClientID, ClientSecret: app.ClientSecret.Reveal(), RedirectURL: a.URL + web.CallbackPath,
			Endpoint: oauth2.Endpoint{
				AuthURL: s.cfg.GitHub.WebURL + "/login/oauth/authorize", TokenURL: s.cfg.GitHub.WebURL + "/login/oauth/access_token",
				AuthStyle: oauth2.AuthStyleInParams,
			},
		}
		a.Client = &http.Client{Timeout: loginTimeout, Transport: outbound(2)}
		a.User = s.user(a.Client)
	}
	return a, nil
}

// reachable returns a listener's address for clients on this machine.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a.String()
}

// loginTimeout limits each of a login's two requests. Both fit into internal/web's time limit for a response.
const loginTimeout = forge.TryTimeout

// maxUser limits GitHub's response about a user, in bytes. Typical responses have 2 KiB.
const maxUser = 64 << 10

// user returns a function that reads a token's user (docs.github.com, "Get the authenticated user").
func (s *Server) user(client *http.Client) func(ctx context.Context, token string) (web.User, error) {
	return func(ctx context.Context, token string) (p web.User, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cfg.GitHub.V3APIURL+"/user", nil)
		if err != nil {
			return p, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", "application/vnd.github+json")
		r.Header.Set("User-Agent", userAgent(s.deps.Build))
		answer, err := client.Do(r)
		if err != nil {
			return p, err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return p, fmt.Errorf("GET /user: %s", answer.Status)
		}
		return p, json.NewDecoder(io.LimitReader(answer.Body, maxUser)).Decode(&p)
	}
}

// maxInstallations limits the number of cached installations.
const maxInstallations = 1000

// permissions asks GitHub as the App for users' permissions.
type permissions struct {
	forge *forge.Client
	known *lru.Cache // by lower-case repository name
}

func newPermissions(client *forge.Client) *permissions {
	known, err := lru.New(maxInstallations)
	if err != nil {
		panic(err) // fails only for a size below 1
	}
	return &permissions{forge: client, known: known}
}

// of returns a user's permission. It is "none" without an installation, or if the login now belongs to another user.
func (p *permissions) of(ctx context.Context, name string, by web.User) (string, error) {
	level, id, err := p.ask(ctx, name, by.Login)
	switch {
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrUninstalled), errors.Is(err, forge.ErrForbidden):
		p.known.Remove(strings.ToLower(name))
		return "none", nil
	case err != nil:
		return "", err
	case id != by.ID:
		return "none", nil
	}
	return level, nil
}

func (p *permissions) ask(ctx context.Context, name, login string) (level string, id int64, err error) {
	owner, short, _ := strings.Cut(name, "/")
	repo := forge.Repo{Owner: owner, Name: short}
	if id, ok := p.known.Get(strings.ToLower(name)); ok {
		repo.Installation = id.(int64)
		return p.forge.Repositories.PermissionOf(ctx, repo, login)
	}
	if repo.Installation, err = p.forge.Apps.Installation(ctx, repo); err != nil {
		return "", 0, err
	}
	p.known.Add(strings.ToLower(name), repo.Installation)
	return p.forge.Repositories.PermissionOf(ctx, repo, login)
}

// LoginLink creates a login link to the pages of the server that started last on this machine.
func LoginLink(ctx context.Context, db *store.Store) (string, error) {
	at, err := web.PagesAt(ctx, db, hostName())
	if err != nil {
		return "", err
	}
	secret, err := web.NewLink(ctx, db)
	return at + web.LinkPath + secret, err
}
