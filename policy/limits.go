package policy

import "time"

// Limits are the numbers that policy decides by. The zero value forbids everything; start from Defaults. The
// names in the tags are the keys of the server configuration, whose group policy holds these limits as they
// are. "The incident" is the 1,249-restart loop that Pawl exists to prevent.
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
	// UpdateEvery is how often at most Pawl looks whether the base has moved away from a pull request of its own; 0 is
	// never. 10 minutes is our choice: an update costs a run of the repository's CI.
	UpdateEvery time.Duration `yaml:"update_every"`
}

// RestartLimits bound how often a thread is worked on.
type RestartLimits struct {
	// The first three are remedies of the incident: 50 attempts after the first since a person typed something new,
	// over runs, the first 10 of them without a wait, and min(cap, 2^(n−10) s) between the others.
	Max          int           `yaml:"max"`
	BackoffAfter int           `yaml:"backoff_after"`
	BackoffCap   time.Duration `yaml:"backoff_cap"`
	// MaxPerThreadPerDay holds for any 24 hours, whoever causes the events. 60 leaves room for one full run.
	MaxPerThreadPerDay int `yaml:"max_per_thread_per_day"`
}

// Unattended bounds what events ask for without a person's new words: bots, checks, labels, re-runs, edits of
// descriptions, and words that were said before.
type Unattended struct {
	// MaxAttempts is our choice: more than the ladder makes of one failing check, fewer than nobody notices.
	MaxAttempts int `yaml:"max_attempts"`
}

// UsageLimits say what happens when an account has used up its quota.
type UsageLimits struct {
	// MaxConsecutive in a row, on one account and over all threads, open its breaker. 3 is a remedy of the incident.
	MaxConsecutive int `yaml:"max_consecutive"`
	// AutoContinue waits for a known reset instead of ending the run at the first usage limit. It is off, as in the
	// incident's remedies: waiting for days needs somebody's consent.
	AutoContinue bool `yaml:"auto_continue_on_limit_reset"`
}

// SeverityLimits are the published classification of edit loops: edit operations and operations on the most edited
// file, with the cooldown and the grade (0..1) that each class costs. The zero value calls everything severe.
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
	// CooldownScope is where a backend rests that went in circles: on that repository alone, or on all of the server.
	CooldownScope Scope `yaml:"cooldown_scope"`
}

// Scope is how far something reaches.
type Scope string

const (
	OfRepository Scope = "repository"
	OfServer     Scope = "server"
)

// StagnationLimits say when attempts repeat each other.
type StagnationLimits struct {
	// Similarity is that of two fingerprints, in (0,1], from which two attempts count as similar. 0.85 is published; at 64
	// bits it is a distance of at most 9. Docs/verdicts.md has what labelled pairs say of it.
	Similarity    float64 `yaml:"similarity"`
	EscalateAfter int     `yaml:"escalate_after"` // so many similar attempts in a row
}

// Ladder switches the recoveries.
type Ladder struct {
	VerifyRetries  int  `yaml:"verify_retries"`  // with the output of what failed, before the effort is raised
	EscalateEffort bool `yaml:"escalate_effort"` // allows one attempt at the backend's escalated effort
	NoAnswerRetry  bool `yaml:"no_answer_retry"` // asks once more, in the opposite thinking mode
	RunTestsTool   bool `yaml:"run_tests_tool"`  // gives the agent a tool that runs the verify commands
	RunTestsCalls  int  `yaml:"run_tests_calls"` // that an attempt may make of it
	ResumeSessions bool `yaml:"resume_sessions"` // continues the agent's session, where that promises more than a new one
}

// Budget bounds what is spent. Zero means no bound. Tokens are those that go in,
// cached ones included, and those that come out.
type Budget struct {
	TokensPerAttempt int64 `yaml:"tokens_per_attempt"`
	// USDPerAttempt needs prices at the provider.
	USDPerAttempt float64 `yaml:"usd_per_attempt"`
	// The bounds per thread hold for any 24 hours.
	TokensPerThreadPerDay int64   `yaml:"tokens_per_thread_per_day"`
	USDPerThreadPerDay    float64 `yaml:"usd_per_thread_per_day"`
	// So do those above the thread, over all nodes.
	TokensPerRepositoryPerDay   int64   `yaml:"tokens_per_repository_per_day"`
	USDPerRepositoryPerDay      float64 `yaml:"usd_per_repository_per_day"`
	TokensPerInstallationPerDay int64   `yaml:"tokens_per_installation_per_day"`
	USDPerInstallationPerDay    float64 `yaml:"usd_per_installation_per_day"`
	TokensPerServerPerDay       int64   `yaml:"tokens_per_server_per_day"`
	USDPerServerPerDay          float64 `yaml:"usd_per_server_per_day"`
	TokensPerAccountPerDay      int64   `yaml:"tokens_per_account_per_day"`
	USDPerAccountPerDay         float64 `yaml:"usd_per_account_per_day"`
}

// Defaults are the published numbers, which hold where the server configuration says nothing else.
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
		// Where most of what goes in is cached, two million tokens cost about a dollar.
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
