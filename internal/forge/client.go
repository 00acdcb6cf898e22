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

// defaultMaxWait limits one call's sleep for limits. After that the caller gets a *RateLimited and stores the wait.
const defaultMaxWait = 30 * time.Second

// TryTimeout limits one try. GitHub ends requests after 10 s; the rest is for slow networks and large lists.
const TryTimeout = 30 * time.Second

// Config identifies the GitHub server and the App.
type Config struct {
	WebURL     string // base of clone URLs, such as https://github.com
	APIURL     string // REST API, such as https://api.github.com or https://HOST/api/v3
	GraphURL   string // GraphQL API; empty to derive it from APIURL
	AppID      int64  // numeric App id
	PrivateKey []byte // RSA key in PEM
	UserAgent  string // empty for "pawl"
	// Transport sends requests; nil for a new connection pool.
	Transport http.RoundTripper
	Now       func() time.Time // nil for time.Now
	// Sleep waits for a duration or returns the context's error; nil for a timer.
	Sleep func(context.Context, time.Duration) error
	Log   zerolog.Logger
}

// Client accesses one GitHub server as one App. Create it with New. It is safe for concurrent use.
type Client struct {
	Actions      Actions
	Apps         Apps
	Checks       Checks
	Discussions  Discussions
	Issues       Issues
	PullRequests PullRequests
	Repositories Repositories

	Clock *Clock // GitHub's clock

	cfg     Config // with defaults
	api     *url.URL
	signed  *ghinstallation.AppsTransport
	maxWait time.Duration
	fence   func(context.Context) error // called before each write, or nil

	*state
}

type state struct {
	self  chan *App // holds the App's identity or nil; empty during the request
	cache *cache

	mu       sync.Mutex
	tokens   map[tokenKey]tokenSlot
	limiters map[int64]*limiter

	sent   *prometheus.CounterVec
	points *prometheus.CounterVec // by limiter key
}

// Metrics returns counters of requests (including retries, pages and redirects) and of GitHub's points: 1 for a read, 5
// for a write, 0 for a 304.
func (c *Client) Metrics() []prometheus.Collector { return []prometheus.Collector{c.sent, c.points} }

// Repo identifies a repository and its installation. Without ID, tokens are narrowed by name, which a rename breaks.
type Repo struct {
	Owner        string
	Name         string
	ID           int64
	Installation int64
}

func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// namePattern keeps names from changing a request's path.
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
			return fmt.Errorf("repository %q: not a valid GitHub name; owner and name may contain letters, digits, '.', '_' and '-'", r.FullName())
		}
	}
	return nil
}

// New makes a client and sends no request. Errors name the wrong setting.
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
		return nil, fmt.Errorf("github.app.private_key: %w; it must be the whole PEM file that the App's settings page offers under \"Generate a private key\", with its line breaks", err)
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
		Help: "Requests sent to GitHub by this node, including failed tries."}, []string{"method", "route"})
	c.points = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pawl_github_points_total",
		Help: "GitHub's rate limit points for this node's requests, by installation; 0 is the App itself, -1 no credentials."}, []string{"installation"})
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

// CloneURL returns the repository's clone URL without credentials.
func (c *Client) CloneURL(repo Repo) string {
	return strings.TrimSuffix(c.cfg.WebURL, "/") + "/" + repo.Owner + "/" + repo.Name + ".git"
}

func baseURL(address string) (*url.URL, error) {
	return url.Parse(strings.TrimSuffix(address, "/") + "/")
}

// Repositories reads repositories and their contents.
type Repositories struct{ client *Client }

type RepoInfo struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"` // new name after a rename
	DefaultBranch string `json:"default_branch"`
}

// Get reads the repository and follows a rename.
func (s Repositories) Get(ctx context.Context, repo Repo) (info RepoInfo, err error) {
	_, err = s.client.do(ctx, request{route: "/repos/{owner}/{repo}", repo: repo, holds: []string{"id"}}, &info)
	return info, err
}

// on sends a request about a repository. After a rename the error has the new name.
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

// Permission returns admin, maintain, write, triage, read or none. A custom role counts as its base role.
func (s Repositories) Permission(ctx context.Context, repo Repo, login string) (string, error) {
	level, _, err := s.PermissionOf(ctx, repo, login)
	return level, err
}

// PermissionOf also returns the login's user id, since a login may change hands. ErrUninstalled means that the App
// cannot see the repository.
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

// visible returns ErrUninstalled if the App cannot see the repository.
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
