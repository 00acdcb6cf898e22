package policy

import "time"

// Limits are the numbers that policy decides by. The zero value forbids
// everything; start from Defaults. The names in the tags are the keys of the
// server configuration, whose group policy holds these limits as they are.
// "The incident" is the 1,249-restart loop that Pawl exists to prevent.
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
}

// RestartLimits bound how often a thread is worked on.
type RestartLimits struct {
	// Max is the number of attempts after the first since a person typed something
	// new, over runs; 0 means none. 50 is a remedy of the incident.
	Max int `yaml:"max"`
	// BackoffAfter is the number of restarts without a wait. 10 is a remedy of
	// the incident.
	BackoffAfter int `yaml:"backoff_after"`
	// BackoffCap is the longest wait between restarts, min(cap, 2^(n−10) s).
	// 300 s is a remedy of the incident.
	BackoffCap time.Duration `yaml:"backoff_cap"`
	// MaxPerThreadPerDay is the number of attempts that one thread may have in
	// any 24 hours, whoever causes the events. 60 leaves room for one full run.
	MaxPerThreadPerDay int `yaml:"max_per_thread_per_day"`
}

// Unattended bounds what events ask for without a person's new words: bots, checks,
// labels, re-runs, edits of descriptions, and words that were said before.
type Unattended struct {
	// MaxAttempts is how many attempts in a row they may begin. 5 is our choice: more
	// than the ladder makes of one failing check, fewer than nobody notices.
	MaxAttempts int `yaml:"max_attempts"`
}

// UsageLimits say what happens when an account has used up its quota.
type UsageLimits struct {
	// MaxConsecutive is the number of usage limits in a row, on one account and
	// over all threads, that opens its breaker. 3 is a remedy of the incident.
	MaxConsecutive int `yaml:"max_consecutive"`
	// AutoContinue waits for a known reset instead of ending the run at the
	// first usage limit. It is off, as in the incident's remedies: waiting for
	// days needs somebody's consent.
	AutoContinue bool `yaml:"auto_continue_on_limit_reset"`
}

// SeverityLimits are the thresholds of the severity verdict: edit operations
// and operations on the most edited file, with the cooldown and the grade
// (0..1) that each class costs. All of them are the published classification
// of edit loops. The zero value calls everything severe.
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
}

// StagnationLimits say when attempts repeat each other.
type StagnationLimits struct {
	// Similarity is the similarity of two fingerprints, in (0,1], from which two
	// attempts count as similar. At 64 bits 0.85 is a distance of at most 9, which
	// no threshold is shown to beat on recorded pairs (docs/verdicts.md, What the
	// data says).
	Similarity float64 `yaml:"similarity"`
	// EscalateAfter is the number of consecutive similar attempts that escalates.
	EscalateAfter int `yaml:"escalate_after"`
}

// Ladder switches the recoveries.
type Ladder struct {
	// VerifyRetries is how often a failed verification is retried with its
	// output before the effort is raised; 0 means never.
	VerifyRetries int `yaml:"verify_retries"`
	// EscalateEffort allows one attempt at the backend's escalated effort.
	EscalateEffort bool `yaml:"escalate_effort"`
	// NoAnswerRetry asks once more, in the opposite thinking mode, when the agent
	// ended without an answer.
	NoAnswerRetry bool `yaml:"no_answer_retry"`
	// RunTestsTool gives the agent a tool that runs the verify commands.
	RunTestsTool bool `yaml:"run_tests_tool"`
	// RunTestsCalls is how often an attempt may use it.
	RunTestsCalls int `yaml:"run_tests_calls"`
	// ResumeSessions lets the next attempt of a run continue the session of the
	// agent, where that promises more than a new one.
	ResumeSessions bool `yaml:"resume_sessions"`
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
	TokensPerServerPerDay       int64   `yaml:"tokens_per_server_per_day"`
	TokensPerInstallationPerDay int64   `yaml:"tokens_per_installation_per_day"`
	USDPerInstallationPerDay    float64 `yaml:"usd_per_installation_per_day"`
	USDPerServerPerDay          float64 `yaml:"usd_per_server_per_day"`
}

// Defaults are the published numbers, which hold where the server configuration
// says nothing else.
func Defaults() Limits {
	return Limits{
		Restarts:   RestartLimits{Max: 50, BackoffAfter: 10, BackoffCap: 300 * time.Second, MaxPerThreadPerDay: 60},
		UsageLimit: UsageLimits{MaxConsecutive: 3},
		Severity: SeverityLimits{
			MinEdits: 40, MinRepeats: 8,
			ModerateEdits: 60, ModerateRepeats: 15,
			SevereEdits: 100, SevereRepeats: 25,
			MildCooldown: 90 * time.Minute, ModerateCooldown: 3 * time.Hour, SevereCooldown: 6 * time.Hour,
			MildGrade: 0.08, ModerateGrade: 0.05, SevereGrade: 0.02,
		},
		Stagnation: StagnationLimits{Similarity: 0.85, EscalateAfter: 2},
		Ladder: Ladder{VerifyRetries: 2, EscalateEffort: true, NoAnswerRetry: true,
			RunTestsTool: true, RunTestsCalls: 20, ResumeSessions: true},
		Budget:      Budget{USDPerRepositoryPerDay: 50, USDPerInstallationPerDay: 100, USDPerServerPerDay: 200},
		Caps:        Caps{PerRepositoryPerDay: 100, PerInstallationPerDay: 300, PerServerPerDay: 500},
		Generations: Generations{Max: 2},
		Unattended:  Unattended{MaxAttempts: 5},
		Transient:   Transient{MaxConsecutive: 5, BackoffStart: 30 * time.Second, BackoffCap: 300 * time.Second},
	}
}
