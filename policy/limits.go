package policy

import "time"

// Limits configure the rules; the tags are the keys of the server configuration's policy group. The zero value
// forbids everything; start from Defaults. "The incident" is the 1,249-restart loop that Pawl exists to prevent.
type Limits struct {
	Restarts    RestartLimits    `yaml:"restarts"`
	Headroom    HeadroomLimits   `yaml:"headroom"`
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
	// UpdateEvery is the shortest time between checks for a moved base; 0 disables them. 10 minutes is our choice:
	// each update runs the repository's CI.
	UpdateEvery time.Duration `yaml:"update_every"`
}

type RestartLimits struct {
	// The incident's remedies: 50 restarts since a user last typed something new, across runs. The first 10 do not
	// wait; later ones wait min(cap, 2^(n−10) s).
	Max          int           `yaml:"max"`
	BackoffAfter int           `yaml:"backoff_after"`
	BackoffCap   time.Duration `yaml:"backoff_cap"`
	// MaxPerThreadPerDay applies to any 24 hours and all triggers. 60 allows one full run.
	MaxPerThreadPerDay int `yaml:"max_per_thread_per_day"`
}

// Unattended limits work for events without new words from a user: bots, checks, labels, re-runs, edited descriptions,
// repeated words.
type Unattended struct {
	// MaxAttempts is our choice: one failing check needs fewer.
	MaxAttempts int `yaml:"max_attempts"`
}

type UsageLimits struct {
	// MaxConsecutive usage limits in a row on one account, over all threads, open its breaker. 3 is the incident's
	// remedy.
	MaxConsecutive int `yaml:"max_consecutive"`
	// AutoContinue waits for a known reset instead of ending the run. It is off by default (the incident's remedy):
	// an operator must agree to a wait of days.
	AutoContinue bool `yaml:"auto_continue_on_limit_reset"`
}

// SeverityLimits classify edit loops by the number of edits, in total and of the most edited file (published numbers).
// Each class has a cooldown and a grade (0..1). With the zero value every loop is severe.
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
	// CooldownScope applies a cooldown to one repository or to the whole server.
	CooldownScope Scope `yaml:"cooldown_scope"`
}

type Scope string

const (
	OfRepository Scope = "repository"
	OfServer     Scope = "server"
)

// StagnationLimits define similar attempts.
type StagnationLimits struct {
	// Similarity is the least similarity, in (0,1], of two similar attempts' fingerprints. 0.85 is published: a
	// distance of at most 9 of 64 bits (measurements: docs/verdicts.md).
	Similarity    float64 `yaml:"similarity"`
	EscalateAfter int     `yaml:"escalate_after"` // similar attempts in a row
}

// Ladder enables the recoveries.
type Ladder struct {
	VerifyRetries  int  `yaml:"verify_retries"` // retries with the failed output, before the effort is raised
	EscalateEffort bool `yaml:"escalate_effort"`
	NoAnswerRetry  bool `yaml:"no_answer_retry"` // repeats once in the opposite thinking mode
	RunTestsTool   bool `yaml:"run_tests_tool"`  // gives the agent a tool that runs the verify commands
	RunTestsCalls  int  `yaml:"run_tests_calls"` // per attempt
	ResumeSessions bool `yaml:"resume_sessions"` // continues the agent's session if possible; see Facts.Resume
}

// Budget limits tokens (input, including cached input, plus output) and cost. Zero means no limit.
type Budget struct {
	TokensPerAttempt int64 `yaml:"tokens_per_attempt"`
	// USDPerAttempt needs the provider's prices.
	USDPerAttempt float64 `yaml:"usd_per_attempt"`
	// Limits per thread in any 24 hours.
	TokensPerThreadPerDay int64   `yaml:"tokens_per_thread_per_day"`
	USDPerThreadPerDay    float64 `yaml:"usd_per_thread_per_day"`
	// Global limits in any 24 hours, over all nodes.
	TokensPerRepositoryPerDay   int64   `yaml:"tokens_per_repository_per_day"`
	USDPerRepositoryPerDay      float64 `yaml:"usd_per_repository_per_day"`
	TokensPerInstallationPerDay int64   `yaml:"tokens_per_installation_per_day"`
	USDPerInstallationPerDay    float64 `yaml:"usd_per_installation_per_day"`
	TokensPerServerPerDay       int64   `yaml:"tokens_per_server_per_day"`
	USDPerServerPerDay          float64 `yaml:"usd_per_server_per_day"`
	TokensPerAccountPerDay      int64   `yaml:"tokens_per_account_per_day"`
	USDPerAccountPerDay         float64 `yaml:"usd_per_account_per_day"`
}

// Defaults returns the default limits.
func Defaults() Limits {
	return Limits{
		Restarts:   RestartLimits{Max: 50, BackoffAfter: 10, BackoffCap: 300 * time.Second, MaxPerThreadPerDay: 60},
		UsageLimit: UsageLimits{MaxConsecutive: 3},
		Headroom:   HeadroomLimits{HoldAt: 0.95, Reserve: 0.10},
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
		// Two million mostly cached tokens cost about a dollar.
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
