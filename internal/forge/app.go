package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-github/v60/github"
)

// App is who Pawl is at GitHub.
type App struct {
	ID   int64
	Slug string
	Name string
	// Permissions maps a permission such as "checks" to "read" or "write".
	Permissions map[string]string
	// Events are the webhook events the App subscribes to.
	Events []string
	// BotID and BotLogin name the user <slug>[bot] that GitHub gives as author
	// of what the App writes.
	// BotID is 0 where GitHub knows no such user.
	BotID    int64
	BotLogin string
}

// App asks GitHub who the App is, once; later calls answer from memory. Of many
// that come at once, as after a start, one asks and the others wait for it: a
// person's address may ask for users 60 times an hour only.
func (c *Client) App(ctx context.Context) (App, error) {
	if known := c.known(); known != nil {
		return *known, nil
	}
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return App{}, fmt.Errorf("look up the App: %w", context.Cause(ctx))
	}
	if known := c.known(); known != nil {
		return *known, nil
	}
	var got *github.App
	err := c.do(ctx, request{method: http.MethodGet, route: "/app", as: asApp, explain: explainSelf, send: func(ctx context.Context, gh *github.Client) (err error) {
		got, _, err = gh.Apps.Get(ctx, "")
		if err == nil && (got.GetID() == 0 || got.GetSlug() == "") {
			return errEmptyAnswer
		}
		return err
	}})
	if err != nil {
		return App{}, fmt.Errorf("look up the App: %w", err)
	}
	app := App{
		ID: got.GetID(), Slug: got.GetSlug(), Name: got.GetName(), Events: got.Events,
		Permissions: permissions(got.Permissions), BotLogin: got.GetSlug() + "[bot]",
	}
	if app.BotID, err = c.userID(ctx, app.BotLogin); errors.Is(err, ErrNotFound) {
		// Its id and performed_via_github_app still tell what the App wrote.
		c.log.Warn().Str("login", app.BotLogin).Msg("GitHub knows no bot user of the App")
	} else if err != nil {
		return App{}, fmt.Errorf("look up the App's bot user %s: %w", app.BotLogin, aboutNoThread(err))
	}
	c.selfMu.Lock()
	c.self = &app
	c.selfMu.Unlock()
	return app, nil
}

// explainSelf reads a refusal to say who the App is: GitHub answers 404 for an id
// that it does not know. It is the same as a key that it refuses.
func explainSelf(a answer) (hint string, kind error) {
	if hint, kind = explain(a); kind == ErrUnauthorized || kind == ErrUnavailable {
		return hint, kind
	}
	return "compare github.app.integration_id with the App's settings page", ErrUnauthorized
}

// aboutNoThread keeps a refusal of the bot user from being taken for one of the
// thread that was to be worked on.
func aboutNoThread(err error) error {
	for _, kind := range []error{ErrForbidden, ErrInvalid, ErrGone, ErrUninstalled} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: %s", ErrUnavailable, err)
		}
	}
	return err
}

func (c *Client) known() *App {
	c.selfMu.Lock()
	defer c.selfMu.Unlock()
	return c.self
}

// userID looks up a user without credentials, which is enough on github.com.
// Where that is not allowed (an Enterprise Server in private mode answers 401 or
// 404) or used up (60 an hour for each address), it takes a token of the App's first
// installation that can read metadata only; the App's JWT is not accepted for
// users.
func (c *Client) userID(ctx context.Context, login string) (int64, error) {
	r := request{method: http.MethodGet, route: "/users/{login}", as: anonymous}
	var user *github.User
	r.send = func(ctx context.Context, gh *github.Client) (err error) {
		user, _, err = gh.Users.Get(ctx, url.PathEscape(login))
		if err == nil && user.GetID() == 0 {
			return errEmptyAnswer
		}
		return err
	}
	err := c.do(ctx, r)
	var limit *RateLimited
	if err == nil || !errors.Is(err, ErrUnauthorized) && !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrNotFound) && !errors.As(err, &limit) {
		return user.GetID(), err
	}
	installation, token, tokenErr := c.metadataToken(ctx)
	if tokenErr != nil {
		return 0, fmt.Errorf("%s (and with a token: %w)", err, tokenErr)
	}
	r.as, r.token, r.repo.Installation = asToken, token, installation
	err = c.do(ctx, r)
	return user.GetID(), err
}

// metadataToken makes a token of the App's first installation that may read
// metadata and nothing else.
func (c *Client) metadataToken(ctx context.Context) (installation int64, token string, err error) {
	err = c.do(ctx, request{method: http.MethodGet, route: "/app/installations", as: asApp, send: func(ctx context.Context, gh *github.Client) error {
		all, _, err := gh.Apps.ListInstallations(ctx, &github.ListOptions{PerPage: pageSize})
		for _, one := range all {
			if one.SuspendedAt == nil && installation == 0 {
				installation = one.GetID()
			}
		}
		return err
	}})
	if err != nil {
		return 0, "", err
	}
	if installation == 0 {
		return 0, "", errors.New("the App is installed nowhere; install it on a repository")
	}
	made, err := c.mint(ctx, installation, &github.InstallationTokenOptions{
		Permissions: &github.InstallationPermissions{Metadata: github.String("read")},
	})
	return installation, made.GetToken(), err
}

// Installation is one account's or organisation's installation of the App.
type Installation struct {
	ID          int64
	Account     string
	Suspended   bool
	Permissions map[string]string
}

// InstallationFor finds the installation that reaches a repository;
// ErrUninstalled when there is none.
func (c *Client) InstallationFor(ctx context.Context, owner, name string) (Installation, error) {
	repo := Repo{Owner: owner, Name: name}
	if err := repo.check(); err != nil {
		return Installation{}, err
	}
	var got *github.Installation
	err := c.do(ctx, request{
		method: http.MethodGet, route: "/repos/{owner}/{repo}/installation", as: asApp,
		explain: func(a answer) (string, error) {
			if a.status == http.StatusNotFound {
				return "install the App on " + repo.FullName() + ", or check the name", ErrUninstalled
			}
			return explain(a)
		},
		send: func(ctx context.Context, gh *github.Client) (err error) {
			got, _, err = gh.Apps.FindRepositoryInstallation(ctx, owner, name)
			if err == nil && got.GetID() == 0 {
				return errEmptyAnswer
			}
			return err
		},
	})
	if err != nil {
		return Installation{}, fmt.Errorf("find the installation for %s: %w", repo.FullName(), err)
	}
	return Installation{
		ID: got.GetID(), Account: got.GetAccount().GetLogin(), Suspended: got.SuspendedAt != nil,
		Permissions: permissions(got.Permissions),
	}, nil
}

// permissions turns go-github's struct of pointers into the map that GitHub
// sends: its JSON form is exactly that map.
func permissions(p *github.InstallationPermissions) map[string]string {
	all := make(map[string]string)
	text, err := json.Marshal(p)
	if err != nil || json.Unmarshal(text, &all) != nil || all == nil {
		return map[string]string{}
	}
	return all
}
