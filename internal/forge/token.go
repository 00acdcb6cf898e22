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

// tokenMargin is how long before its end (GitHub's live one hour) a token is no longer handed out, so
// that a push can finish.
const tokenMargin = 5 * time.Minute

// tokenKey names a repository by its id, and by name only where that is unknown: a rename keeps the
// token.
type tokenKey struct {
	installation, id int64
	name             string
}

// tokenSlot holds one token, taken out while it is made, so that many calls at once make one.
type tokenSlot chan token

// token is one that GitHub made; its zero value has ended.
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

// drop forgets a token that GitHub refused, not a newer one; an empty refused drops any.
func (s *state) drop(repo Repo, refused string) {
	slot := s.slot(repo)
	known := <-slot
	if refused == "" || known.value == refused {
		known = token{}
	}
	slot <- known
}

// Token returns an installation token for this repository only, with the permissions that Pawl needs,
// for five minutes or more, for REST and git (user x-access-token). It is a secret: it must not reach
// an agent, an argument list, a file or a log.
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
	// Exactly the permissions of app.yml. Without workflows GitHub refuses pushes that touch
	// .github/workflows.
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

// Forget drops a token with which a git push was refused; the next Token makes a fresh one.
func (c *Client) Forget(repo Repo) { c.drop(repo, "") }

// mint makes a token. One more than needed does no harm, so it is repeated when an answer is lost.
func (c *Client) mint(ctx context.Context, installation int64, opts *github.InstallationTokenOptions) (made github.InstallationToken, err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, route: "/app/installations/{installation}/access_tokens", args: []any{installation}, body: opts, as: asApp,
		holds: []string{"token", "expires_at"}, explain: explainMint,
	}, &made)
	return made, err
}

// explainMint reads a refused token: 404 after the App was uninstalled, 422 when the repository is not
// part of it or a permission is missing; explain knows the 403 of a suspended installation.
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
