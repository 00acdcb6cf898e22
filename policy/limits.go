package policy

import "time"

// Limits are policy's parameters. The zero value forbids everything; start from Defaults. The tags are the keys of
// the server configuration's group policy. "The incident" is the 1,249-restart loop that Pawl exists to prevent.
type Limits struct {
	Restarts    RestartLimits    `yaml:"restarts"`
	UsageLimit  UsageLimits      `yaml:"usage_limit"`
	Severity    SeverityLimits   `yaml:"severity"`
	Stagnation  StagnationLimits `yaml:"stagnation"`
	Ladder      Ladder           `yaml:"ladder"`
	Budget      Budget           `yaml:"budget"`
	Caps        Caps             `yaml:"caps"`
	Generations Generations      `yaml:"generations"`
	Unattended  Unattended       `yaml:"unattended"`
	Transient   Transient        `yaml:"transient"`
	Convergence Convergence      `yaml:"convergence"`
	// UpdateEvery is the shortest time between two looks whether the base has moved away from Pawl's pull request; 0
	// is never. 10 minutes is our choice: an update costs a run of the repository's CI.
	UpdateEvery time.Duration `yaml:"update_every"`
}

// RestartLimits limit the attempts of a thread.
type RestartLimits struct {
	// The first three are the incident's remedies: 50 restarts after a user last typed something new, over runs; the
	// first 10 without a wait, then min(cap, 2^(n−10) s).
	Max          int           `yaml:"max"`
	BackoffAfter int           `yaml:"backoff_after"`
	BackoffCap   time.Duration `yaml:"backoff_cap"`
	// MaxPerThreadPerDay holds for any 24 hours and all triggers. 60 leaves room for one full run.
	MaxPerThreadPerDay int `yaml:"max_per_thread_per_day"`
}

// Unattended limits the work for events without a user's new words: bots, checks, labels, re-runs, edited
// descriptions, repeated words.
type Unattended struct {
	// MaxAttempts is our choice: more than the ladder needs for one failing check, and few enough to stay unnoticed.
	MaxAttempts int `yaml:"max_attempts"`
}

// UsageLimits configure the response to a used-up quota.
type UsageLimits struct {
	// MaxConsecutive usage limits in a row on one account, over all threads, open its breaker. 3 is the incident's
	// remedy.
	MaxConsecutive int `yaml:"max_consecutive"`
	// AutoContinue waits for a known reset instead of ending the run at the first usage limit. It is off by the
	// incident's remedies: an operator must agree to a wait of days.
	AutoContinue bool `yaml:"auto_continue_on_limit_reset"`
}

// SeverityLimits are the published classification of edit loops: edit operations, and operations on the most edited
// file. Each class has a cooldown and a grade (0..1). The zero value calls everything severe.
type SeverityLimits struct {
	MinEdits         int           `yaml:"min_edits"`
	MinRepeats       int           `yaml:"min_repeats"`
	ModerateEdits    int           `yaml:"moderate_edits"`
	ModerateRepeats  int           `yaml:"moderate_repeats"`
	SevereEdits      int           `yaml:"severe_edits"`
	SevereRepeats    int           `yaml:"severe_repeats"`
	MildCooldown     time.Duration `yaml:"mild_cooldown"`
	ModerateCooldown time.Duration `yaml:"moderate_cooldown"`
	SevereCooldown   time.Duration `yaml:"severe_cooldown"`
	MildGrade        float64       `yaml:"mild_grade"`
	ModerateGrade    float64       `yaml:"moderate_grade"`
	SevereGrade      float64       `yaml:"severe_grade"`
	// CooldownScope is where a cooldown holds: on one repository, or on the whole server.
	CooldownScope Scope `yaml:"cooldown_scope"`
}

// Scope is how far something reaches.
type Scope string

const (
	OfRepository Scope = "repository"
	OfServer     Scope = "server"
)

// StagnationLimits define when attempts repeat each other.
type StagnationLimits struct {
	// Similarity of two fingerprints, in (0,1], from which two attempts are similar. 0.85 is published; with 64 bits
	// it is a distance of at most 9. docs/verdicts.md has the measurements on labelled pairs.
	Similarity    float64 `yaml:"similarity"`
	EscalateAfter int     `yaml:"escalate_after"` // similar attempts in a row
}

// Ladder switches the recoveries.
type Ladder struct {
	VerifyRetries  int  `yaml:"verify_retries"` // retries with the failed output, before the effort is raised
	EscalateEffort bool `yaml:"escalate_effort"`
	NoAnswerRetry  bool `yaml:"no_answer_retry"` // asks once more, in the opposite thinking mode
	RunTestsTool   bool `yaml:"run_tests_tool"`  // gives the agent a tool that runs the verify commands
	RunTestsCalls  int  `yaml:"run_tests_calls"` // per attempt
	ResumeSessions bool `yaml:"resume_sessions"` // continues the agent's session if that promises more than a new one
}

// Budget limits tokens and cost. Zero means no limit. Tokens are input, with the cached part, and output.
type Budget struct {
	TokensPerAttempt int64 `yaml:"tokens_per_attempt"`
	// USDPerAttempt needs the provider's prices.
	USDPerAttempt float64 `yaml:"usd_per_attempt"`
	// The limits per thread hold for any 24 hours.
	TokensPerThreadPerDay int64   `yaml:"tokens_per_thread_per_day"`
	USDPerThreadPerDay    float64 `yaml:"usd_per_thread_per_day"`
	// So do the global limits, over all nodes.
	TokensPerRepositoryPerDay   int64   `yaml:"tokens_per_repository_per_day"`
	USDPerRepositoryPerDay      float64 `yaml:"usd_per_repository_per_day"`
	TokensPerInstallationPerDay int64   `yaml:"tokens_per_installation_per_day"`
	USDPerInstallationPerDay    float64 `yaml:"usd_per_installation_per_day"`
	TokensPerServerPerDay       int64   `yaml:"tokens_per_server_per_day"`
	USDPerServerPerDay          float64 `yaml:"usd_per_server_per_day"`
	TokensPerAccountPerDay      int64   `yaml:"tokens_per_account_per_day"`
	USDPerAccountPerDay         float64 `yaml:"usd_per_account_per_day"`
}

// Defaults are the published numbers, used for keys that the server configuration does not set.
func Defaults() Limits {
	return Limits{
		Restarts:   RestartLimits{Max: 50, BackoffAfter: 10, BackoffCap: 300 * time.Second, MaxPerThreadPerDay: 60},
		UsageLimit: UsageLimits{MaxConsecutive: 3},
		Severity: SeverityLimits{
			MinEdits: 40, MinRepeats: 8,
			ModerateEdits: 60, ModerateRepeats: 15,
			SevereEdits: 100, SevereRepeats: 25,
			MildCooldown: 90 * time.Minute, ModerateCooldown: 3 * time.Hour, SevereCooldown: 6 * time.Hour,
			MildGrade: 0.08, ModerateGrade: 0.05, SevereGrade: 0.02, CooldownScope: OfRepository,
		},
		Stagnation: StagnationLimits{Similarity: 0.85, EscalateAfter: 2},
		Ladder: Ladder{VerifyRetries: 2, EscalateEffort: true, NoAnswerRetry: true,
			RunTestsTool: true, RunTestsCalls: 20, ResumeSessions: true},
		// With mostly cached input, two million tokens cost about a dollar.
		Budget: Budget{USDPerRepositoryPerDay: 50, USDPerInstallationPerDay: 100, USDPerServerPerDay: 200, USDPerAccountPerDay: 200,
			TokensPerRepositoryPerDay: 100e6, TokensPerInstallationPerDay: 200e6, TokensPerServerPerDay: 400e6, TokensPerAccountPerDay: 400e6},
		Caps:        Caps{PerRepositoryPerDay: 100, PerInstallationPerDay: 300, PerServerPerDay: 500, PerAccountPerDay: 500},
		Generations: Generations{Max: 2},
		Unattended:  Unattended{MaxAttempts: 5},
		Convergence: Convergence{MaxRounds: 5, BlockingRounds: 2, MaxGrowth: 3},
		UpdateEvery: 10 * time.Minute,
		Transient:   Transient{MaxConsecutive: 5, BackoffStart: 30 * time.Second, BackoffCap: 300 * time.Second},
	}
}
