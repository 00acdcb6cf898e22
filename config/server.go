package config

import (
	"time"
)

// Server is the configuration of one Pawl server. The zero value is not usable;
// start from Default.
type Server struct {
	HTTP      HTTP       `yaml:"server"`
	GitHub    GitHub     `yaml:"github"`
	Database  Database   `yaml:"database"`
	DataDir   string     `yaml:"data_dir"` // clones and transcripts
	Sandbox   Sandbox    `yaml:"sandbox"`
	Providers []Provider `yaml:"providers"`
	Backends  []Backend  `yaml:"backends"`
	Policy    Policy     `yaml:"policy"`
	Workers   int        `yaml:"workers"` // attempts that may run at the same time
	Retention Retention  `yaml:"retention"`
	Tracing   Tracing    `yaml:"tracing"`
	Log       Log        `yaml:"log"`
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
	// WriteSpacing is the shortest time between two writes to one installation.
	// GitHub asks for a second.
	WriteSpacing time.Duration `yaml:"write_spacing"`
	App          App           `yaml:"app"`
}

// App holds the credentials of the GitHub App. Exactly one of PrivateKey and
// PrivateKeyFile is set.
type App struct {
	IntegrationID int64  `yaml:"integration_id"`
	WebhookSecret Secret `yaml:"webhook_secret"`
	// PreviousWebhookSecret is accepted, too, while the secret is changed.
	PreviousWebhookSecret Secret `yaml:"previous_webhook_secret"`
	PrivateKey            Secret `yaml:"private_key"`
	PrivateKeyFile        string `yaml:"private_key_file"`
}

// Sandbox says how agents are kept in.
type Sandbox struct {
	// Mode is SandboxAuto or SandboxNone.
	Mode string `yaml:"mode"`
	// ReadOnly are folders and files that every agent can read: where agents are
	// installed outside /usr, tool chains, caches. Nothing in them is secret.
	ReadOnly []string `yaml:"read_only"`
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
	// Transcripts is how long the output of agents is kept after an attempt.
	Transcripts time.Duration `yaml:"transcripts"`
	// Threads is how long the log of a closed thread is kept after its last event.
	Threads time.Duration `yaml:"threads"`
}

// Tracing says where traces go.
type Tracing struct {
	// Endpoint is the address of an OpenTelemetry collector that speaks OTLP over
	// HTTP, such as http://127.0.0.1:4318; empty switches traces off.
	Endpoint string `yaml:"endpoint"`
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
	// defaultTranscripts is as long; a transcript can be 256 MiB.
	defaultTranscripts = 720 * time.Hour
	// defaultThreads is a year: a merge may be reverted months later, and the log
	// knows what Pawl itself wrote.
	defaultThreads = 365 * 24 * time.Hour
	minThreads     = 90 * 24 * time.Hour
	// minTranscripts is a day: a person comes back to the office.
	minTranscripts = 24 * time.Hour
	// maxWriteSpacing keeps a status comment from coming minutes late.
	maxWriteSpacing = 10 * time.Second
	// defaultWriteSpacing is what GitHub's documentation asks of integrations:
	// "wait at least one second between each request".
	defaultWriteSpacing = time.Second
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
			V4APIURL: "https://api.github.com/graphql", WriteSpacing: defaultWriteSpacing,
		},
		Database:  Database{Driver: SQLite, Path: "pawl.db"},
		DataDir:   ".",
		Sandbox:   Sandbox{Mode: SandboxAuto},
		Policy:    DefaultPolicy(),
		Workers:   2,
		Retention: Retention{Deliveries: minDeliveryRetention, Transcripts: defaultTranscripts, Threads: defaultThreads},
		Log:       Log{Level: "info"},
	}
}
