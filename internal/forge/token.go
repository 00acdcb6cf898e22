package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/crash"
)

// tokenMargin is how long before its end a token is no longer handed out, so
// that a push that starts with it can finish. GitHub's tokens live one hour.
const tokenMargin = 5 * time.Minute

// tokenKey names a repository by its id, and by its name only where the id is
// not known, so that a rename keeps the token.
type tokenKey struct {
	installation, id int64
	name             string
}

// tokenSlot holds one token, which is taken out while it is read or made, so that
// many calls at once make one token.
type tokenSlot chan token

// token is one that GitHub made; its zero value has ended.
type token struct {
	value   string
	expires time.Time
}

// slot is where the installation token of a repository is.
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

// drop forgets a token that GitHub refused. A newer one stays: another call
// may have replaced it meanwhile. An empty refused drops any token.
func (s *state) drop(repo Repo, refused string) {
	slot := s.slot(repo)
	known := <-slot
	if refused == "" || known.value == refused {
		known = token{}
	}
	slot <- known
}

// Token returns an installation token that reaches this repository only, with
// the permissions Pawl needs, and lives for five minutes or more. It serves
// REST and git (user x-access-token). It is a secret and opaque: it must not
// reach an agent, an argument list, a file or a log.
func (c *Client) Token(ctx context.Context, repo Repo) (string, error) {
	if err := repo.validate(); err != nil {
		return "", err
	}
	if repo.Installation <= 0 {
		return "", fmt.Errorf("token for %s: the installation id is not known; take it from the webhook", repo.FullName())
	}
	s := c.slot(repo)
	var known token
	select {
	case known = <-s:
		defer func() { s <- known }()
	case <-ctx.Done():
		return "", fmt.Errorf("token for %s: %w", repo.FullName(), ctx.Err())
	}
	if c.now().Before(known.expires.Add(-tokenMargin)) {
		return known.value, nil
	}
	// One repository and exactly the permissions of app.yml. The workflows permission is
	// left out on purpose: without it GitHub refuses pushes that touch .github/workflows.
	opts := &github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{
		Checks:       github.String("write"),
		Contents:     github.String("write"),
		Issues:       github.String("write"),
		PullRequests: github.String("write"),
		Metadata:     github.String("read"),
	}}
	if repo.ID != 0 {
		opts.RepositoryIDs = []int64{repo.ID}
	} else {
		opts.Repositories = []string{repo.Name}
	}
	made, err := c.mint(ctx, repo.Installation, opts)
	if err != nil {
		return "", fmt.Errorf("token for %s: %w", repo.FullName(), err)
	}
	crash.Point("token_minted")
	known = token{made.GetToken(), made.GetExpiresAt().Time}
	return known.value, nil
}

// Forget drops the repository's token, for a caller whose git push was refused
// with it. The next Token makes a fresh one.
func (c *Client) Forget(repo Repo) { c.drop(repo, "") }

// mint makes a token. Making one more than needed does no harm, so it is
// simply repeated when an answer is lost.
func (c *Client) mint(ctx context.Context, installation int64, opts *github.InstallationTokenOptions) (made github.InstallationToken, err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, route: "/app/installations/{installation}/access_tokens", args: []any{installation}, body: opts, as: asApp,
		holds: []string{"token", "expires_at"}, explain: explainMint,
	}, &made)
	return made, err
}

// explainMint reads a refused token request: 404 after the App was
// uninstalled, 422 when the repository is not part of it or a permission was not
// granted; explain knows the 403 while the installation is suspended.
func explainMint(a answer) (hint string, kind error) {
	switch {
	case a.status == http.StatusNotFound:
		return "the App was uninstalled there; install it again to go on", ErrUninstalled
	case a.status == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(a.message), "permission"):
		return "the installation lacks permissions of app.yml; accept them on the installation's settings page", ErrForbidden
	case a.status == http.StatusUnprocessableEntity:
		return "the repository is not part of the installation, or was deleted; add it on the installation's settings page", ErrUninstalled
	default:
		return explain(a)
	}
}
