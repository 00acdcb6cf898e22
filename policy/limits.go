package policy

import "time"

// Limits are the numbers that policy decides by. The zero value forbids
// everything; start from Defaults.
type Limits struct {
	// MaxRestarts is the number of attempts after the first that one run may
	// have.
	MaxRestarts int
	// BackoffAfter is the number of restarts that start without a wait.
	BackoffAfter int
	// BackoffCap is the longest wait between two restarts.
	BackoffCap time.Duration
	// MaxPerDay is the number of attempts that one thread may have in any 24
	// hours, whoever causes the events.
	MaxPerDay int
	// MaxConsecutiveLimits is the number of usage limits in a row, on one
	// backend account and over all threads, that opens its breaker.
	MaxConsecutiveLimits int
	// AutoContinue waits for a known reset instead of ending the run at the
	// first usage limit.
	AutoContinue bool
	Severity     SeverityLimits
	// Similarity is the similarity of two fingerprints, 0..1, from which two
	// attempts count as similar.
	Similarity float64
	// EscalateAfter is the number of consecutive similar attempts that
	// escalates.
	EscalateAfter int
	// VerifyRetries is how often a failed verification is retried with its
	// output before the effort is raised.
	VerifyRetries int
	// EscalateEffort allows one attempt at the backend's escalated effort.
	EscalateEffort bool
	// NoAnswerRetry allows one more attempt after one that ended without an
	// answer, in the opposite thinking mode.
	NoAnswerRetry bool
	// ResumeSessions allows an attempt to continue the session of the one before.
	ResumeSessions bool
	// TokensPerDay and USDPerDay bound what one thread may use in any 24 hours;
	// 0 for no bound.
	TokensPerDay int64
	USDPerDay    float64
}

// SeverityLimits are the thresholds of the severity verdict: edit operations
// and operations on the most repeated path, with the cooldown and the grade
// (0..1) that each class costs. The zero value calls everything severe.
type SeverityLimits struct {
	MinEdits, MinRepeats           int
	ModerateEdits, ModerateRepeats int
	SevereEdits, SevereRepeats     int
	MildCooldown                   time.Duration
	ModerateCooldown               time.Duration
	SevereCooldown                 time.Duration
	MildGrade                      float64
	ModerateGrade                  float64
	SevereGrade                    float64
}

// Defaults are the published numbers of the server configuration: restart and
// usage-limit numbers from the remedies of the 1,249-restart incident, severity
// classes, cooldowns and grades from the published classification of edit
// loops, similarity from 64-bit fingerprints at a distance of at most 9, which
// no threshold is shown to beat on recorded pairs (docs/verdicts.md, What the data says).
func Defaults() Limits {
	return Limits{
		MaxRestarts: 50, BackoffAfter: 10, BackoffCap: 300 * time.Second, MaxPerDay: 60,
		MaxConsecutiveLimits: 3,
		Severity: SeverityLimits{
			MinEdits: 40, MinRepeats: 8,
			ModerateEdits: 60, ModerateRepeats: 15,
			SevereEdits: 100, SevereRepeats: 25,
			MildCooldown: 90 * time.Minute, ModerateCooldown: 3 * time.Hour, SevereCooldown: 6 * time.Hour,
			MildGrade: 0.08, ModerateGrade: 0.05, SevereGrade: 0.02,
		},
		Similarity: 0.85, EscalateAfter: 2,
		VerifyRetries: 2, EscalateEffort: true, NoAnswerRetry: true, ResumeSessions: true,
	}
}
