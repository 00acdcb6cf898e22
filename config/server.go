package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Server configures a Pawl server. Start from Default; the zero value is unusable.
type Server struct {
	HTTP      HTTP       `yaml:"server"`
	GitHub    GitHub     `yaml:"github"`
	Database  Database   `yaml:"database"`
	DataDir   string     `yaml:"data_dir"`
	Sandbox   Sandbox    `yaml:"sandbox"`
	Network   Network    `yaml:"network"`
	Setup     Setup      `yaml:"setup"`
	Images    Images     `yaml:"images"`
	Context   Context    `yaml:"context"`
	Providers []Provider `yaml:"providers"`
	Gateway   Gateway    `yaml:"gateway"`
	Accounts  []Account  `yaml:"accounts"`
	Backends  []Backend  `yaml:"backends"`
	Policy    Policy     `yaml:"policy"`
	Workers   int        `yaml:"workers"` // 0 runs no agents
	Node      Node       `yaml:"node"`
	Retention Retention  `yaml:"retention"`
	Notify    Notify     `yaml:"notify"`
	Log       Log        `yaml:"log"`
}

// GitHub identifies the GitHub server and the App. URLs end without a slash.
type GitHub struct {
	WebURL   string `yaml:"web_url"`
	V3APIURL string `yaml:"v3_api_url"`
	V4APIURL string `yaml:"v4_api_url"` // empty to derive it from V3APIURL
	Receive  string `yaml:"receive"`
	App      App    `yaml:"app"`
}

// How events reach the server.
const (
	ReceiveWebhook = "webhook" // GitHub sends to a public address
	ReceivePoll    = "poll"    // the server fetches; no public address needed
)

// App holds the App's credentials: exactly one of PrivateKey and PrivateKeyFile.
type App struct {
	IntegrationID         int64  `yaml:"integration_id"`
	WebhookSecret         Secret `yaml:"webhook_secret"`
	PreviousWebhookSecret Secret `yaml:"previous_webhook_secret"`
	PrivateKey            Secret `yaml:"private_key"`
	PrivateKeyFile        string `yaml:"private_key_file"`
	// Without ClientID and ClientSecret, users sign in with pawl login.
	ClientID       string `yaml:"client_id"`
	ClientSecret   Secret `yaml:"client_secret"`
	SigningKeyFile string `yaml:"signing_key_file"`
	User           string `yaml:"user"`
}

// Setup configures the setups of repositories.
type Setup struct {
	Secrets []SetupSecrets `yaml:"secrets"`
}

// SetupSecrets lists the server's environment variables that the setups of some repositories get.
type SetupSecrets struct {
	Env          []string `yaml:"env"`
	Repositories []string `yaml:"repositories"` // OWNER/NAME patterns (path.Match)
}

// Names returns a repository's variables.
func (s Setup) Names(repo string) []string {
	var names []string
	for _, group := range s.Secrets {
		if slices.ContainsFunc(group.Repositories, func(p string) bool {
			ok, err := path.Match(strings.ToLower(p), strings.ToLower(repo))
			return ok && err == nil
		}) {
			names = append(names, group.Env...)
		}
	}
	return names
}

type Retention struct {
	// Deliveries keeps GUIDs, so that a redelivery has no second effect.
	Deliveries  time.Duration `yaml:"deliveries"`
	Transcripts time.Duration `yaml:"transcripts"`
	Threads     time.Duration `yaml:"threads"`
}

// Notify configures alerts for the operator.
type Notify struct {
	URL Secret `yaml:"url"`
}

type Log struct {
	Level string `yaml:"level"`
}

const (
	// minWebhookSecret is in bytes, and 16 bytes have at most 128 bits of entropy. GitHub asks for "a random string of
	// text with high entropy".
	minWebhookSecret = 16
	// minDeliveryRetention is ten times GitHub's three days of redelivery.
	minDeliveryRetention = 720 * time.Hour
	// A transcript can take 256 MiB of disk space.
	defaultTranscripts = 720 * time.Hour
	// Merges may be reverted months later, and the log shows which texts are Pawl's.
	defaultThreads = 365 * 24 * time.Hour
	minThreads     = 90 * 24 * time.Hour
	// Users look at a failure within a day.
	minTranscripts = 24 * time.Hour
	// maxDrain equals maxTimeout, the longest time of an attempt.
	maxDrain   = 24 * time.Hour
	maxWorkers = 256 // our choice
)

// Context limits the discussion in the prompt.
type Context struct {
	MaxBytes int  `yaml:"max_bytes"`
	Linked   int  `yaml:"linked"` // depth of linked issues and pull requests: 0 or 1
	Pictures bool `yaml:"pictures"`
}

// maxContext is a quarter of what models with 200,000 tokens can read.
const maxContext = 200 << 10

// Default returns the defaults without the App's credentials and backends.
func Default() Server {
	return Server{
		HTTP:     HTTP{Address: "127.0.0.1:8080", HooksFrom: HooksFromAny},
		GitHub:   GitHub{WebURL: "https://github.com", V3APIURL: "https://api.github.com", Receive: ReceiveWebhook},
		Context:  Context{MaxBytes: 60 << 10, Linked: 1, Pictures: true},
		Database: Database{Driver: SQLite, Path: "pawl.db"},
		DataDir:  ".",
		Sandbox:  Sandbox{Mode: SandboxAuto, Network: NetworkWalled, Memory: 8 << 30, PIDs: 4096, Disk: 20 << 30},
		Network:  Network{Download: 10 << 30},
		Policy: Policy{Limits: policy.Defaults(), Learning: Learning{
			Mode:         policy.ModeAuto,
			JudgeTimeout: 5 * time.Minute,
			JudgeTokens:  40_000,
		}},
		Workers:   2,
		Node:      Node{Labels: []string{}, Prefer: defaultPrefer},
		Retention: Retention{Deliveries: minDeliveryRetention, Transcripts: defaultTranscripts, Threads: defaultThreads},
		Log:       Log{Level: "info"},
	}
}

const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Database is an address: sqlite:PATH or postgres://….
type Database struct {
	Driver string // SQLite or Postgres
	Path   string // SQLite file
	URL    Secret // PostgreSQL URL, usually with a password
}

// DSN returns the address for internal/store. It may hold a password.
func (d Database) DSN() string {
	if d.Driver == Postgres {
		return d.URL.Reveal()
	}
	return "sqlite:" + d.Path
}

// UnmarshalText parses the one-line form. Errors never repeat the value, which may hold a password.
func (d *Database) UnmarshalText(text []byte) error {
	value := string(text)
	path, isPath := strings.CutPrefix(value, "sqlite:")
	u, err := url.Parse(value)
	switch {
	case strings.HasPrefix(value, "memory:"):
		return errors.New("would be lost when Pawl exits; write sqlite:PATH")
	case isPath:
		return d.setPath(path)
	case !strings.HasPrefix(value, "postgres://") && !strings.HasPrefix(value, "postgresql://"):
		return errors.New("is neither sqlite:PATH nor postgres://USER:PASSWORD@HOST/NAME; write one of the two")
	case err != nil:
		return errors.New("is not a valid URL; write postgres://USER:PASSWORD@HOST/NAME and percent-encode special characters in the password")
	case strings.Trim(u.Path, "/") == "":
		return errors.New("names no database; write postgres://USER:PASSWORD@HOST/NAME")
	default:
		*d = Database{Driver: Postgres, URL: NewSecret(value)}
	}
	return nil
}

func (d *Database) setPath(path string) error {
	if path == "" {
		return errors.New("names no file after sqlite:; write sqlite:pawl.db")
	}
	special := strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") // special to SQLite
	if special || strings.ContainsAny(path, "?\x00") {
		return errors.New("is not a plain file path; write sqlite:PATH, without SQLite options")
	}
	*d = Database{Driver: SQLite, Path: path}
	return nil
}

// validateServer checks everything except the App, accounts, backends and policy. It trims slashes from URLs.
func (s *source) validateServer(c *Server) {
	validateHTTP(s, &c.HTTP)
	s.validateURL("github.web_url", &c.GitHub.WebURL)
	s.validateURL("github.v3_api_url", &c.GitHub.V3APIURL)
	if c.GitHub.V4APIURL != "" {
		s.validateURL("github.v4_api_url", &c.GitHub.V4APIURL)
	}
	between(s, "context.max_bytes", c.Context.MaxBytes, 0, maxContext)
	between(s, "context.linked", c.Context.Linked, 0, 1)
	s.oneOf("github.receive", c.GitHub.Receive, ReceiveWebhook, ReceivePoll)
	s.addIf(
		c.DataDir == "" || strings.ContainsRune(c.DataDir, 0),
		"data_dir",
		"names no folder; write . for the folder of this file",
	)
	s.oneOf("sandbox.mode", c.Sandbox.Mode, SandboxAuto, SandboxPod, SandboxNone)
	s.oneOf("sandbox.network", c.Sandbox.Network, NetworkWalled, NetworkOpen)
	atLeast(s, "sandbox.memory", c.Sandbox.Memory, leastMemory)
	atLeast(s, "sandbox.cpus", c.Sandbox.CPUs, leastCPUs)
	atLeast(s, "sandbox.pids", c.Sandbox.PIDs, leastPIDs)
	atLeast(s, "sandbox.disk", c.Sandbox.Disk, leastMemory)
	for key, list := range map[string][]policy.HostRule{
		"setup":  c.Network.Setup,
		"agent":  c.Network.Agent,
		"verify": c.Network.Verify,
		"judge":  c.Network.Judge,
	} {
		validateHosts(s, "network."+key, list)
	}
	for i, path := range c.Sandbox.ReadOnly {
		s.addIf(
			path == "" || path == "/" || strings.ContainsRune(path, 0),
			fmt.Sprintf("sandbox.read_only[%d]", i),
			"%s cannot be mounted; name a folder or a file that holds no secret",
			quote(path),
		)
	}
	c.Images.validate(s)
	for i, group := range c.Setup.Secrets {
		key := fmt.Sprintf("setup.secrets[%d]", i)
		s.validateEnv(key, "env", group.Env)
		s.addIf(
			len(group.Repositories) == 0,
			key+".repositories",
			"names no repository; write OWNER/NAME, or OWNER/* for all repositories of an owner",
		)
		for j, pattern := range group.Repositories {
			_, err := path.Match(pattern, "")
			s.addIf(
				err != nil || strings.Count(pattern, "/") != 1,
				fmt.Sprintf("%s.repositories[%d]", key, j),
				"%s is not OWNER/NAME; * matches any characters except a slash",
				quote(pattern),
			)
		}
	}
	if address := c.Notify.URL.Reveal(); address != "" {
		_, ok := webURL(address)
		s.addIf(!ok, "notify.url", "is not an absolute URL; write the URL of the chat's incoming webhook, or remove it")
	}
	s.validateProviders(c.Providers)
	s.validateGateway(c)
	s.oneOf("log.level", c.Log.Level, "trace", "debug", "info", "warn", "error")
	between(s, "workers", c.Workers, 0, maxWorkers)
	alone := c.Workers == 0 && c.Database.Driver != Postgres
	s.addIf(alone, "workers", "is 0, but this server is the only one on its SQLite database; use PostgreSQL with a second server, or 1 or more")
	deaf := c.Database.Driver != Postgres && !c.receives()
	s.addIf(deaf, "server.address", "is empty, so no server on this SQLite database receives webhooks; write HOST:PORT, use PostgreSQL with a second server, or set github.receive to poll")
	if c.Sandbox.Mode == SandboxPod {
		s.validatePod(c)
	}
	s.validateLabels("node.labels", c.Node.Labels)
	between(s, "node.prefer", c.Node.Prefer, 0, maxPrefer)
	s.addIf(
		c.Retention.Deliveries < minDeliveryRetention,
		"retention.deliveries",
		"%s is too short; GitHub redelivers for days under the same GUID, so keep at least 720h",
		c.Retention.Deliveries,
	)
	s.addIf(
		c.Retention.Transcripts < minTranscripts,
		"retention.transcripts",
		"%s is too short; keep at least %s, so that users can look at failures",
		c.Retention.Transcripts,
		minTranscripts,
	)
	s.addIf(
		c.Retention.Threads < minThreads,
		"retention.threads",
		"%s is too short; keep at least %s, so that Pawl still recognises its own texts",
		c.Retention.Threads,
		minThreads,
	)
}

// validatePod checks what sandbox.mode pod needs. An agent in a pod can change all files and end all processes there.
func (s *source) validatePod(c *Server) {
	s.addIf(
		c.Workers > 1,
		"workers",
		"is %d, but sandbox.mode is pod, which does not separate agents in one pod; write 1, and start more pods",
		c.Workers,
	)
	s.addIf(
		c.Database.Driver != Postgres,
		"database",
		"is an SQLite file, which agents can change if sandbox.mode is pod; use PostgreSQL",
	)
}

// receives reports whether this server gets events from GitHub.
func (c *Server) receives() bool { return c.HTTP.Address != "" || c.GitHub.Receive == ReceivePoll }

func isShortSecret(n int) bool { return n > 0 && n < minWebhookSecret }

// login matches a GitHub login. Enterprise logins may end with an underscore and a short code.
var login = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// validateApp checks github.app. hooks reports whether the server accepts webhooks.
func (s *source) validateApp(app App, hooks bool) {
	s.addIf(
		!s.set("github.app.integration_id"),
		"github.app.integration_id",
		"is missing; write the App ID from the App's settings page, or run pawl setup",
	)
	s.addIf(
		app.IntegrationID <= 0,
		"github.app.integration_id",
		"must be the App ID, a positive number; it is on the App's settings page",
	)
	now, before := len(app.WebhookSecret.Reveal()), len(app.PreviousWebhookSecret.Reveal())
	s.addIf(
		now == 0 && hooks,
		"github.app.webhook_secret",
		"is missing; without it anyone could send webhooks. Set the same random text of at least %d characters here and in the App's settings",
		minWebhookSecret,
	)
	s.addIf(
		isShortSecret(now),
		"github.app.webhook_secret",
		"has %d characters; use at least %d random ones, the same as in the App's settings",
		now,
		minWebhookSecret,
	)
	s.addIf(
		isShortSecret(before),
		"github.app.previous_webhook_secret",
		"has %d characters; use the secret that was valid before, or remove it",
		before,
	)
	s.addIf(
		app.User != "" && !login.MatchString(app.User),
		"github.app.user",
		"%s is not a login; write an account name without @",
		quote(app.User),
	)
	s.addIf(
		(app.ClientID == "") != app.ClientSecret.Empty(),
		"github.app.client_id",
		"and client_secret belong together; copy both from the App's settings page",
	)
	if app.PrivateKey.Empty() {
		s.addIf(
			app.PrivateKeyFile == "",
			"github.app.private_key_file",
			"is missing; name the .pem file from the App's settings, or put its text in private_key",
		)
		return
	}
	s.addIf(
		app.PrivateKeyFile != "",
		"github.app.private_key",
		"is given together with private_key_file; keep one of the two",
	)
	problem := keyProblem([]byte(app.PrivateKey.Reveal()))
	s.addIf(problem != "", "github.app.private_key", "%s", problem)
}

func (s *source) validateAddress(key, address string) {
	_, port, err := net.SplitHostPort(address)
	s.addIf(
		err != nil,
		key,
		"%s is not host:port; write it like 127.0.0.1:8080, or :8080 for every interface",
		s.found(key),
	)
	_, err = strconv.ParseUint(port, 10, 16)
	s.addIf(err != nil, key, "%s has no port between 0 and 65535; write it like 127.0.0.1:8080", s.found(key))
}

// webURL parses an absolute http or https URL.
func webURL(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, false
	}
	switch u.Scheme {
	case "http", "https":
		return u, u.Host != ""
	}
	return nil, false
}

// validateURL checks an absolute URL and trims trailing slashes.
func (s *source) validateURL(key string, value *string) {
	u, ok := webURL(*value)
	switch {
	case !ok:
		s.add(key, "is not an absolute URL; write it like https://github.example.com")
	case u.User != nil:
		s.add(key, "holds a user or password; remove it, Pawl signs in as the App")
	case u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		s.add(key, "holds a query or fragment; remove everything from ? or # on")
	default:
		*value = strings.TrimRight(*value, "/")
	}
}
