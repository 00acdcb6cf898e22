package config

import "time"

// Backend is an agent CLI with its account, model and effort.
type Backend struct {
	// Name is what maintainers and the repository's file call it.
	Name string `yaml:"name"`
	// Kind is codex, claude, gemini, opencode or command.
	Kind string `yaml:"kind"`
	// Argv is the command line of kind command. For the other kinds it replaces
	// the name of the CLI; empty means that the CLI is looked up in PATH.
	Argv []string `yaml:"argv"`
	// Stream says how standard output is read: plain, codex, claude, gemini or
	// opencode. It is plain for kind command and the kind's own otherwise.
	Stream string `yaml:"stream"`
	// Model is handed to the CLI; empty means the CLI's own default.
	Model string `yaml:"model"`
	// Effort is handed to the CLI; empty means the CLI's own default.
	Effort string `yaml:"effort"`
	// EscalatedEffort is the effort of the last recovery; empty means that this
	// backend has none.
	EscalatedEffort string `yaml:"escalated_effort"`
	// Account names who pays: backends with the same account share one usage
	// limit. It defaults to the backend's name.
	Account string `yaml:"account"`
	// Provider names the provider that the agent reaches through the gateway,
	// which keeps the key; empty means that it signs in by itself.
	Provider string `yaml:"provider"`
	// CredentialFile is the file of an account's login, which the agent gets to
	// read; empty for none.
	CredentialFile string `yaml:"credential_file"`
	// Env are the names of the environment variables that reach the agent.
	Env []string `yaml:"env"`
	// Timeout is how long one attempt may take.
	Timeout time.Duration `yaml:"timeout"`
	// IdleTimeout is how long the agent may print nothing.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// StartupTimeout is how long the agent may take to print its first byte.
	StartupTimeout time.Duration `yaml:"startup_timeout"`
}

// The kinds of backend.
const (
	Codex    = "codex"
	Claude   = "claude"
	Gemini   = "gemini"
	OpenCode = "opencode"
	Command  = "command"
)

// Plain is the stream of an agent that prints text.
const Plain = "plain"

// defaultTimeout is the time limit of one attempt in the published
// configuration. The others follow from the recorded runs: an agent that works
// prints at least at every tool call, and the first byte of every recorded CLI
// came within seconds.
const (
	defaultTimeout        = 90 * time.Minute
	defaultIdleTimeout    = 15 * time.Minute
	defaultStartupTimeout = 2 * time.Minute
	// maxTimeout keeps an attempt within a day, the span of the daily cap.
	maxTimeout = 24 * time.Hour
)

// NewBackend is the backend that {name: NAME, kind: KIND} gives in a file.
func NewBackend(name, kind string) Backend {
	b := Backend{Name: name, Kind: kind}
	b.setDefaults()
	b.complete(func(string) bool { return false })
	return b
}

// setDefaults fills in what holds for every backend before one is decoded.
func (b *Backend) setDefaults() {
	b.Timeout, b.IdleTimeout, b.StartupTimeout = defaultTimeout, defaultIdleTimeout, defaultStartupTimeout
}

// complete fills in what follows from other fields once one is decoded.
func (b *Backend) complete(set func(key string) bool) {
	if b.Account == "" {
		b.Account = b.Name
	}
	if b.Stream == "" && b.Kind == Command {
		b.Stream = Plain
	}
	if b.Stream == "" {
		b.Stream = b.Kind
	}
	if !set("idle_timeout") {
		b.IdleTimeout = min(b.IdleTimeout, b.Timeout)
	}
	if !set("startup_timeout") {
		b.StartupTimeout = min(b.StartupTimeout, b.Timeout)
	}
}
