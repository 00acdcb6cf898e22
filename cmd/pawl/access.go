package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
)

// listen opens both listeners: that of the webhook, which strangers may reach, and that of the pages.
func (n *node) listen() (err error) {
	if n.listener, err = net.Listen("tcp", n.cfg.HTTP.Address); err != nil {
		return fmt.Errorf("server.address: %w", err)
	}
	address := n.cfg.HTTP.Pages
	if address == "" {
		if n.pagesListener, err = net.Listen("tcp", config.DefaultPages); err == nil {
			return nil
		}
		// Several servers of one machine need no setting for their pages.
		address = "127.0.0.1:0"
	}
	if n.pagesListener, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("server.pages: %w", err)
	}
	return nil
}

// access is who may see the pages, and how they sign in.
func (n *node) access(ctx context.Context) (a web.Access, err error) {
	c := n.cfg.HTTP
	a = web.Access{URL: c.PublicURL, Operators: c.Operators, MetricsToken: c.MetricsToken.Reveal(), Permission: n.permission()}
	if a.URL == "" {
		a.URL = "http://" + reachable(n.pagesListener.Addr())
	}
	if a.Key, err = web.SessionKey(ctx, n.store); err != nil {
		return a, err
	}
	if err := web.RememberPages(ctx, n.store, hostName(), a.URL); err != nil {
		return a, err
	}
	if app := n.cfg.GitHub.App; app.ClientID != "" {
		a.OAuth = &oauth2.Config{
			ClientID: app.ClientID, ClientSecret: app.ClientSecret.Reveal(), RedirectURL: a.URL + web.CallbackPath,
			Endpoint: oauth2.Endpoint{
				AuthURL: n.cfg.GitHub.WebURL + "/login/oauth/authorize", TokenURL: n.cfg.GitHub.WebURL + "/login/oauth/access_token",
				AuthStyle: oauth2.AuthStyleInParams,
			},
		}
		a.Client = &http.Client{Timeout: loginTimeout, Transport: outbound(2)}
		a.User = n.user(a.Client)
	}
	return a, nil
}

// reachable is a listener's address as this machine reaches it.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a.String()
}

// loginTimeout bounds each request of a login; a person waits for it.
const loginTimeout = 10 * time.Second

// maxUser bounds GitHub's answer to who somebody is, in bytes; it has some 2 KiB.
const maxUser = 64 << 10

// user asks GitHub whose token this is (docs.github.com, "Get the authenticated user").
func (n *node) user(client *http.Client) func(ctx context.Context, token string) (web.Person, error) {
	return func(ctx context.Context, token string) (p web.Person, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.cfg.GitHub.V3APIURL+"/user", nil)
		if err != nil {
			return p, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", "application/vnd.github+json")
		r.Header.Set("User-Agent", "pawl/"+buildInfo().Version)
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

// maxInstallations is of how many repositories it is remembered through which installation they are reached, until
// they are reached no more.
const maxInstallations = 1000

// permission asks GitHub what a person may do in a repository, as the App. Where the App is not installed, and of
// somebody else under the person's old login, the answer is none.
func (n *node) permission() func(ctx context.Context, repo string, by web.Person) (string, error) {
	known, err := lru.New(maxInstallations)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return func(ctx context.Context, name string, by web.Person) (level string, err error) {
		owner, short, _ := strings.Cut(name, "/")
		repo := forge.Repo{Owner: owner, Name: short}
		if id, ok := known.Get(strings.ToLower(name)); ok {
			repo.Installation = id.(int64)
		} else if repo.Installation, err = n.forge.Installation(ctx, repo); err == nil {
			known.Add(strings.ToLower(name), repo.Installation)
		}
		var id int64
		if err == nil {
			level, id, err = forge.PermissionOf(ctx, n.forge, repo, by.Login)
		}
		switch {
		case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrUninstalled), errors.Is(err, forge.ErrForbidden):
			known.Remove(strings.ToLower(name))
			return "none", nil
		case err != nil:
			return "", err
		case id != by.ID:
			return "none", nil
		}
		return level, nil
	}
}

func loginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login --config FILE", Short: "Print a link that opens the pages as an operator", Args: cobra.NoArgs,
		Long: "Print a link to the pages of the server on this machine. The first browser that opens it, within 5 minutes, is signed in\n" +
			"as an operator for 8 hours. Who may read the configuration and write to the database may do so anyway.\n" +
			"Everybody else signs in with GitHub: see github.app.client_id and server.operators.",
	}
	return onDatabase(cmd, store.Beside, func(_ config.Server, db *store.Store, _ []string) error {
		link, err := loginLink(cmd.Context(), db)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), render.Clean(link))
		}
		return err
	})
}

// loginLink makes a link to the pages of the server that started last on this machine.
func loginLink(ctx context.Context, db *store.Store) (string, error) {
	at, err := web.PagesAt(ctx, db, hostName())
	if err != nil {
		return "", err
	}
	secret, err := web.NewLink(ctx, db)
	return at + web.LinkPath + secret, err
}
