package config

import (
	"time"
)

// Server is the configuration of one Pawl server. The zero value is not usable;
// start from Default.
type Server struct {
	HTTP      HTTP      `yaml:"server"`
	GitHub    GitHub    `yaml:"github"`
	Database  Database  `yaml:"database"`
	DataDir   string    `yaml:"data_dir"` // clones and transcripts
	Sandbox   Sandbox   `yaml:"sandbox"`
	Backends  []Backend `yaml:"backends"`
	Policy    Policy    `yaml:"policy"`
	Workers   int       `yaml:"workers"` // attempts that may run at the same time
	Retention Retention `yaml:"retention"`
	Log       Log       `yaml:"log"`
}

// HTTP says where Pawl listens.
type HTTP struct {
	// Address is host:port; an empty host means every interface.
	Address string `yaml:"address"`
	// PublicURL is where people reach the status pages; empty means that
	// comments and check runs carry no link to them.
	PublicURL string `yaml:"public_url"`
}

// GitHub names the GitHub and the App. The URLs end without a slash.
type GitHub struct {
	WebURL   string `yaml:"web_url"` // clone and push base
	V3APIURL string `yaml:"v3_api_url"`
	V4APIURL string `yaml:"v4_api_url"`
	App      App    `yaml:"app"`
}

// App holds the credentials of the GitHub App. Exactly one of PrivateKey and
// PrivateKeyFile is set.
type App struct {
	IntegrationID  int64  `yaml:"integration_id"`
	WebhookSecret  Secret `yaml:"webhook_secret"`
	PrivateKey     Secret `yaml:"private_key"`
	PrivateKeyFile string `yaml:"private_key_file"`
}

// Sandbox says how agents are kept in.
type Sandbox struct {
	// Mode is SandboxAuto or SandboxNone.
	Mode string `yaml:"mode"`
}

// The sandbox modes.
const (
	SandboxAuto = "auto" // bubblewrap; refuse to start where it cannot work
	SandboxNone = "none" // run agents as the user that runs Pawl
)

// Retention says how long records are kept.
type Retention struct {
	// Deliveries is how long the GUID of a delivery is remembered, so that a
	// redelivery has no second effect.
	Deliveries time.Duration `yaml:"deliveries"`
}

// Log says what is logged.
type Log struct {
	Level string `yaml:"level"` // trace, debug, info, warn or error
}

// The numbers that are neither in the published configuration nor policy.
const (
	// minWebhookSecret is the shortest webhook secret, in bytes. GitHub asks for
	// "a random string of text with high entropy"; 16 bytes are 128 bits at best.
	minWebhookSecret = 16
	// minDeliveryRetention is ten times the three days in which GitHub can
	// redeliver a webhook under the same GUID.
	minDeliveryRetention = 720 * time.Hour
	// maxWorkers bounds the agent processes of one node.
	maxWorkers = 256
)

// Default is the server configuration before a file is read. It lacks what has
// no sensible default: the App's credentials and the backends.
func Default() Server {
	return Server{
		HTTP: HTTP{Address: "127.0.0.1:8080"},
		GitHub: GitHub{
			WebURL:   "https://github.com",
			V3APIURL: "https://api.github.com",
			V4APIURL: "https://api.github.com/graphql",
		},
		Database:  Database{Driver: SQLite, Path: "pawl.db"},
		DataDir:   ".",
		Sandbox:   Sandbox{Mode: SandboxAuto},
		Policy:    DefaultPolicy(),
		Workers:   2,
		Retention: Retention{Deliveries: minDeliveryRetention},
		Log:       Log{Level: "info"},
	}
}
