package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v60/github"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy/feedback"
)

// defaultMaxWait is how long one call sleeps for limits before the caller gets a *RateLimited: a step stores a
// longer wait and makes room for others.
const defaultMaxWait = 30 * time.Second

// TryTimeout ends one try, answer included. GitHub ends a request after 10 s; the rest is for slow networks and
// large lists.
const TryTimeout = 30 * time.Second

// Config names the GitHub and the App.
type Config struct {
	WebURL     string // the base of clone addresses, such as https://github.com
	APIURL     string // the base of the REST API, such as https://api.github.com or https://HOST/api/v3
	GraphURL   string // the GraphQL API; empty means the one that goes with APIURL
	AppID      int64  // the App's numeric id (GitHub calls it integration id, too)
	PrivateKey []byte // the App's RSA key as PEM
	UserAgent  string // sent with each request; empty means "pawl"
	// Transport sends the requests; nil means a pool of its own.
	Transport http.RoundTripper
	Now       func() time.Time // the clock; nil means time.Now
	// Sleep waits for a duration or until the context ends, which is an error; nil means a timer.
	Sleep func(context.Context, time.Duration) error
	// Log gets retries and waits; its zero value logs nothing.
	Log zerolog.Logger
}

// Client talks to one GitHub as one App, with one service per kind of object. It is safe for concurrent use; use
// New.
type Client struct {
	Actions      Actions
	Apps         Apps
	Checks       Checks
	Discussions  Discussions
	Issues       Issues
	PullRequests PullRequests
	Repositories Repositories

	Clock *Clock // reads GitHub's clock from its answers

	cfg     Config // with its defaults
	api     *url.URL
	signed  *ghinstallation.AppsTransport
	maxWait time.Duration
	fence   func(context.Context) error // called before each write; nil for none

	*state
}

type state struct {
	self  chan *App // the App's identity, nil if unknown; empty while GitHub is asked
	cache *cache

	mu       sync.Mutex
	tokens   map[tokenKey]tokenSlot
	limiters map[int64]*limiter

	sent   *prometheus.CounterVec // by method and path template
	points *prometheus.CounterVec // by limiter key
}

// Metrics count the requests to GitHub (retries, pages, token requests and followed redirects each count), and
// GitHub's points since the client was made: 1 for a read, 5 for a write, none for a 304.
func (c *Client) Metrics() []prometheus.Collector { return []prometheus.Collector{c.sent, c.points} }

// Repo names one repository and Pawl's installation for it. If ID is zero, a token is narrowed by name, which a
// rename breaks.
type Repo struct {
	Owner        string
	Name         string
	ID           int64
	Installation int64
}

func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// namePattern is GitHub's form of names. Others would change the path of a request.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

func validName(name string) bool {
	switch name {
	case ".", "..":
		return false
	}
	return namePattern.MatchString(name)
}

func (r Repo) validate() error {
	for _, name := range []string{r.Owner, r.Name} {
		if !validName(name) {
			return fmt.Errorf("repository %q: not a name that GitHub gives; owner and name may hold letters, digits, '.', '_' and '-'", r.FullName())
		}
	}
	return nil
}

// New makes a client of a checked configuration without a request. Its error names the setting to correct.
func New(cfg Config) (*Client, error) {
	api, err := baseURL(cfg.APIURL)
	if err != nil {
		return nil, fmt.Errorf("github.v3_api_url: %w", err)
	}
	if cfg.Transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = 16
		cfg.Transport = own
	}
	c := &Client{cfg: cfg, api: api}
	c.fillDefaults()
	c.signed, err = ghinstallation.NewAppsTransport(c.Clock, cfg.AppID, cfg.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("github.app.private_key: %w; it must be the whole PEM file that the App's settings page gives under \"Generate a private key\", with its line breaks", err)
	}
	return c, nil
}

func (c *Client) services() {
	c.Actions = Actions{c}
	c.Apps = Apps{c}
	c.Checks = Checks{c}
	c.Discussions = Discussions{c}
	c.Issues = Issues{c}
	c.PullRequests = PullRequests{c}
	c.Repositories = Repositories{c}
}

func (c *Client) fillDefaults() {
	c.services()
	c.state = &state{self: make(chan *App, 1), cache: newCache(), tokens: map[tokenKey]tokenSlot{}, limiters: map[int64]*limiter{}}
	c.sent = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pawl_github_requests_total",
		Help: "Requests sent to GitHub by this node, tries that failed included."}, []string{"method", "route"})
	c.points = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pawl_github_points_total",
		Help: "Points that requests of this node cost by GitHub's count, by installation; 0 is the App itself, -1 no credentials."}, []string{"installation"})
	c.self <- nil
	c.cfg.UserAgent, c.maxWait = cmp.Or(c.cfg.UserAgent, "pawl"), defaultMaxWait
	if c.cfg.GraphURL == "" {
		c.cfg.GraphURL = graphAddress(c.cfg.APIURL)
	}
	if c.cfg.Now == nil {
		c.cfg.Now = time.Now
	}
	c.Clock = &Clock{base: c.cfg.Transport, now: c.cfg.Now}
	if c.cfg.Sleep == nil {
		c.cfg.Sleep = wait.For
	}
}

// CloneURL returns the URL for git, without a credential.
func (c *Client) CloneURL(repo Repo) string {
	return strings.TrimSuffix(c.cfg.WebURL, "/") + "/" + repo.Owner + "/" + repo.Name + ".git"
}

// baseURL ends with the slash that go-github wants.
func baseURL(address string) (*url.URL, error) {
	return url.Parse(strings.TrimSuffix(address, "/") + "/")
}

// Repositories reads repositories and their contents.
type Repositories struct{ client *Client }

type RepoInfo struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"` // the new name if the request used an old one
	DefaultBranch string `json:"default_branch"`
}

// Get reads the repository, following a rename.
func (s Repositories) Get(ctx context.Context, repo Repo) (info RepoInfo, err error) {
	_, err = s.client.do(ctx, request{route: "/repos/{owner}/{repo}", repo: repo, holds: []string{"id"}}, &info)
	return info, err
}

// on sends a request about a repository. If it was renamed, the error gives the new name.
func (c *Client) on(ctx context.Context, repo Repo, r request, into any) (*github.Response, error) {
	if err := repo.validate(); err != nil {
		return nil, err
	}
	r.repo = repo
	resp, err := c.do(ctx, r, into)
	if moved, ok := errors.AsType[*Moved](err); ok {
		if info, err := c.Repositories.Get(ctx, repo); err == nil && !strings.EqualFold(info.FullName, repo.FullName()) {
			moved.To = info.FullName
		}
	}
	return resp, err
}

// Permission returns a user's level: admin, maintain, write, triage, read or none. A custom role counts as its base
// level.
func (s Repositories) Permission(ctx context.Context, repo Repo, login string) (string, error) {
	level, _, err := s.PermissionOf(ctx, repo, login)
	return level, err
}

// PermissionOf is Permission with the id of whose login it is now: after a rename another user may have it. The error is
// ErrUninstalled if GitHub does not show the repository.
func (s Repositories) PermissionOf(ctx context.Context, repo Repo, login string) (level string, id int64, err error) {
	var got struct {
		Permission string         `json:"permission"`
		RoleName   string         `json:"role_name"`
		User       feedback.Actor `json:"user"`
	}
	_, err = s.client.on(ctx, repo, request{
		route: "/repos/{owner}/{repo}/collaborators/{login}/permission",
		args:  []any{login},
		lags:  true,
	}, &got)
	if isNoUser(err) {
		return "none", got.User.ID, nil
	}
	if errors.Is(err, ErrNotFound) {
		return "none", 0, s.visible(ctx, repo)
	}
	if err != nil {
		return "none", 0, err
	}
	for _, level := range []string{got.RoleName, got.Permission} {
		if slices.Contains([]string{"admin", "maintain", "write", "triage", "read"}, level) {
			return level, got.User.ID, nil
		}
	}
	return "none", got.User.ID, nil
}

// visible is nil if GitHub shows the repository to the App, and ErrUninstalled if it does not.
func (s Repositories) visible(ctx context.Context, repo Repo) error {
	_, err := s.Get(ctx, repo)
	failed, ok := errors.AsType[*Error](err)
	if ok && failed.Kind == ErrNotFound {
		failed.Kind = ErrUninstalled
		failed.Hint = "the repository was deleted, renamed, or taken out of the App's installation"
	}
	return err
}

// isNoUser recognises GitHub's answer to an unknown login.
func isNoUser(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	return failed.Status == http.StatusNotFound && strings.Contains(failed.Message, "is not a user")
}
