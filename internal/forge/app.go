package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/policy/feedback"
)

// Apps sends requests as the App: identity, installations, webhooks.
type Apps struct{ client *Client }

type App struct {
	ID   int64  `json:"id"`
	Slug string `json:"slug"`
	// Permissions maps names such as "checks" to "read" or "write".
	Permissions map[string]string `json:"permissions"`
	Events      []string          `json:"events"` // subscribed webhook events
	// Installations counts the accounts that installed the App.
	Installations int `json:"installations_count"`
	// BotID and BotLogin identify <slug>[bot], the author of the App's texts. BotID is 0 if the user does not exist.
	BotID    int64  `json:"-"`
	BotLogin string `json:"-"`
}

// Get reads the App's identity once. Concurrent calls share one request, since GitHub allows 60 user look-ups an hour
// per address.
func (s Apps) Get(ctx context.Context) (App, error) {
	select {
	case known := <-s.client.self:
		defer func() { s.client.self <- known }()
		if known != nil {
			return *known, nil
		}
		app, err := s.askSelf(ctx)
		if err != nil {
			return App{}, fmt.Errorf("look up the App: %w", err)
		}
		known = &app
		return app, nil
	case <-ctx.Done():
		return App{}, fmt.Errorf("look up the App: %w", context.Cause(ctx))
	}
}

func (s Apps) askSelf(ctx context.Context) (app App, err error) {
	if _, err := s.client.do(ctx, request{route: "/app", as: asApp, holds: []string{"id", "slug"}, explain: explainSelf}, &app); err != nil {
		return App{}, err
	}
	app.BotLogin = app.Slug + "[bot]"
	app.BotID, err = s.userID(ctx, app.BotLogin)
	if errors.Is(err, ErrNotFound) {
		// The App's id and performed_via_github_app still identify its texts.
		s.client.cfg.Log.Warn().Str("login", app.BotLogin).Msg("GitHub knows no bot user of the App")
		return app, nil
	}
	if err != nil {
		return App{}, fmt.Errorf("its bot user %s: %w", app.BotLogin, aboutNoThread(err))
	}
	return app, nil
}

// explainSelf explains why GitHub refused the App's identity. An unknown App id gets a 404.
func explainSelf(a answer) (hint string, kind error) {
	hint, kind = explain(a)
	switch kind {
	case ErrUnauthorized, ErrUnavailable:
		return hint, kind
	}
	return "compare github.app.integration_id with the App's settings page", ErrUnauthorized
}

func aboutNoThread(err error) error {
	if isOf(err, ErrForbidden, ErrInvalid, ErrGone, ErrUninstalled) {
		return fmt.Errorf("%w: %s", ErrUnavailable, err)
	}
	return err
}

// userID looks up a user without credentials. If GitHub refuses (in private mode, or above 60 an hour per address),
// userID uses a token with metadata access. The App's JWT does not work for users.
func (s Apps) userID(ctx context.Context, login string) (int64, error) {
	r := request{route: "/users/{login}", args: []any{login}, as: anonymous, holds: []string{"id"}}
	var user feedback.Actor
	_, err := s.client.do(ctx, r, &user)
	if !wantsToken(err) {
		return user.ID, err
	}
	installation, token, tokenErr := s.metadataToken(ctx)
	if tokenErr != nil {
		return 0, fmt.Errorf("%s (and with a token: %w)", err, tokenErr)
	}
	r.as, r.token, r.repo.Installation = asToken, token, installation
	_, err = s.client.do(ctx, r, &user)
	return user.ID, err
}

func wantsToken(err error) bool {
	_, limited := errors.AsType[*RateLimited](err)
	return limited || isOf(err, ErrUnauthorized, ErrForbidden, ErrNotFound)
}

func isOf(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// HookRanges returns GitHub's webhook addresses (docs.github.com, "Get GitHub meta information"). Enterprise Servers
// list none.
func (s Apps) HookRanges(ctx context.Context) ([]netip.Prefix, error) {
	var meta struct {
		Hooks []netip.Prefix `json:"hooks"`
	}
	if _, err := s.client.do(ctx, request{route: "/meta", as: anonymous, once: true}, &meta); err != nil {
		return nil, fmt.Errorf("look up where webhooks come from: %w", aboutNoThread(err))
	}
	if len(meta.Hooks) == 0 {
		return nil, errors.New("look up where webhooks come from: this GitHub does not list the addresses; set server.hooks_from to any")
	}
	return meta.Hooks, nil
}

// Installation returns the App's installation in a repository, or ErrNotFound.
func (s Apps) Installation(ctx context.Context, repo Repo) (id int64, err error) {
	if err := repo.validate(); err != nil {
		return 0, err
	}
	var found github.Installation
	_, err = s.client.do(ctx, request{
		route: "/repos/{owner}/{repo}/installation",
		repo:  repo,
		as:    asApp,
		holds: []string{"id"},
	}, &found)
	return found.GetID(), err
}

func (s Apps) metadataToken(ctx context.Context) (installation int64, token string, err error) {
	var all []github.Installation
	query := url.Values{"per_page": {strconv.Itoa(pageSize)}}
	if _, err := s.client.do(ctx, request{route: "/app/installations", query: query, as: asApp}, &all); err != nil {
		return 0, "", err
	}
	first := slices.IndexFunc(all, func(one github.Installation) bool { return one.SuspendedAt == nil })
	if first < 0 {
		return 0, "", errors.New("the App is installed nowhere; install it on a repository")
	}
	installation = all[first].GetID()
	made, err := s.mint(ctx, installation, &github.InstallationTokenOptions{
		Permissions: &github.InstallationPermissions{Metadata: github.String("read")},
	})
	return installation, made.GetToken(), err
}

// NewApp holds an App made from a manifest, and its secrets.
type NewApp struct {
	ID            int64          `json:"id"`
	Slug          string         `json:"slug"`
	Owner         feedback.Actor `json:"owner"`
	HTMLURL       string         `json:"html_url"`
	WebhookSecret string         `json:"webhook_secret"`
	PrivateKey    string         `json:"pem"`
	ClientID      string         `json:"client_id"` // for logins through the App
	ClientSecret  string         `json:"client_secret"`
}

// codePattern keeps codes from changing the path; GitHub's have 40 hexadecimal digits.
var codePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

func ValidCode(code string) bool { return codePattern.MatchString(code) }

// ConvertManifest exchanges a manifest's code for the App (docs.github.com, "Registering a GitHub App from a
// manifest"). A code works once within an hour. Lost answers are retried although the code may be used up.
func ConvertManifest(ctx context.Context, apiURL, userAgent, code string) (made NewApp, err error) {
	api, err := baseURL(apiURL)
	if err != nil {
		return NewApp{}, err
	}
	if !ValidCode(code) {
		return NewApp{}, errors.New("convert the manifest: this is not a code from GitHub")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	c := &Client{api: api, cfg: Config{UserAgent: userAgent, Transport: transport}}
	c.fillDefaults()
	const route = "/app-manifests/{code}/conversions"
	_, err = c.do(ctx, request{
		method: http.MethodPost, route: route, args: []any{code}, as: anonymous, holds: []string{"id", "pem"}, explain: explainConversion,
	}, &made)
	if failed, ok := errors.AsType[*Error](err); ok {
		failed.Path = route // an unused code is a credential
	}
	if err != nil {
		return NewApp{}, fmt.Errorf("convert the manifest: %w", err)
	}
	return made, nil
}

func explainConversion(a answer) (hint string, kind error) {
	hint, kind = explain(a)
	switch a.status {
	case http.StatusNotFound, http.StatusUnprocessableEntity:
		hint = "the code was used before or is older than an hour"
	}
	return hint, kind
}

// tokenMargin is the minimum remaining life of a returned token, so that a push can finish. GitHub's tokens live an
// hour.
const tokenMargin = 5 * time.Minute

// tokenKey identifies a repository by id, or by name if the id is zero.
type tokenKey struct {
	installation, id int64
	name             string
}

// tokenSlot holds a token; it is empty while a call makes one.
type tokenSlot chan token

// token is expired if zero.
type token struct {
	value   string
	expires time.Time
}

func (s *state) slot(repo Repo) tokenSlot {
	key := tokenKey{installation: repo.Installation, id: repo.ID}
	if repo.ID == 0 {
		key.name = strings.ToLower(repo.FullName())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens[key] == nil {
		s.tokens[key] = make(tokenSlot, 1)
		s.tokens[key] <- token{}
	}
	return s.tokens[key]
}

// drop forgets a refused token, but not a newer one. An empty refused drops any token.
func (s *state) drop(repo Repo, refused string) {
	slot := s.slot(repo)
	known := <-slot
	if refused == "" || known.value == refused {
		known = token{}
	}
	slot <- known
}

// Token returns an installation token for one repository with Pawl's permissions. It is valid for at least five
// minutes, for REST and git (user x-access-token). Keep it from agents, arguments, files and logs.
func (s Apps) Token(ctx context.Context, repo Repo) (string, error) {
	if err := repo.validate(); err != nil {
		return "", err
	}
	if repo.Installation <= 0 {
		return "", fmt.Errorf("token for %s: the installation id is not known; take it from the webhook", repo.FullName())
	}
	slot := s.client.slot(repo)
	var known token
	select {
	case known = <-slot:
		defer func() { slot <- known }()
	case <-ctx.Done():
		return "", fmt.Errorf("token for %s: %w", repo.FullName(), ctx.Err())
	}
	if s.client.cfg.Now().Before(known.expires.Add(-tokenMargin)) {
		return known.value, nil
	}
	// The permissions of app.yml. Without the permission workflows, GitHub refuses pushes that touch .github/workflows.
	made, err := s.mint(ctx, repo.Installation, repo.narrow(&github.InstallationPermissions{
		Checks:       github.String("write"),
		Contents:     github.String("write"),
		Issues:       github.String("write"),
		PullRequests: github.String("write"),
		Metadata:     github.String("read"),
	}))
	if err != nil {
		return "", fmt.Errorf("token for %s: %w", repo.FullName(), err)
	}
	crash.Point("token_minted")
	known = token{made.GetToken(), made.GetExpiresAt().Time}
	return known.value, nil
}

// Forget drops the repository's token. Call it after GitHub rejected the token in a git command.
func (s Apps) Forget(repo Repo) { s.client.drop(repo, "") }

func (r Repo) narrow(to *github.InstallationPermissions) *github.InstallationTokenOptions {
	if r.ID == 0 {
		return &github.InstallationTokenOptions{Permissions: to, Repositories: []string{r.Name}}
	}
	return &github.InstallationTokenOptions{Permissions: to, RepositoryIDs: []int64{r.ID}}
}

// mint requests a token. It retries lost answers, since an extra token is harmless.
func (s Apps) mint(ctx context.Context, installation int64, opts *github.InstallationTokenOptions) (made github.InstallationToken, err error) {
	_, err = s.client.do(ctx, request{
		method: http.MethodPost, route: "/app/installations/{installation}/access_tokens", args: []any{installation}, body: opts, as: asApp,
		holds: []string{"token", "expires_at"}, explain: explainMint,
	}, &made)
	return made, err
}

// explainMint explains a refused token: 404 after uninstallation, 422 if the repository or a permission is missing.
func explainMint(a answer) (hint string, kind error) {
	switch {
	case a.status == http.StatusNotFound:
		return "the App was uninstalled from this account; install it again", ErrUninstalled
	case a.status == http.StatusUnprocessableEntity && a.mentions("permission"):
		return "the installation lacks permissions of app.yml; accept them on the installation's settings page", ErrForbidden
	case a.status == http.StatusUnprocessableEntity:
		return "the repository is not part of the installation, or was deleted; add it on the installation's settings page", ErrUninstalled
	default:
		return explain(a)
	}
}
