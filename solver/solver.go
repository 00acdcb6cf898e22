package solver

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
)

// Solver carries out decisions. Every field is required, except that exactly one
// of Local and Forge is set and those from Slots on may be nil or empty.
type Solver struct {
	Store   Store
	Config  config.Server
	Sandbox *sandbox.Sandbox
	// Forge reaches GitHub as the App.
	Forge *forge.Client
	// Local is a repository that is worked on without GitHub.
	Local *Local
	// Node names this process in leases.
	Node string
	Now  func() time.Time
	Log  zerolog.Logger
	// Lookup gives the environment variables that backends may name.
	Lookup func(name string) (string, bool)
	// Slots bounds the attempts that run at the same time: one element of its
	// capacity each. Nil means no bound.
	Slots chan struct{}
	// Gateway is what agents reach their models through; nil where no backend
	// names a provider.
	Gateway *gateway.Gateway
	// Program is the path of Pawl itself, which agents run as their test tool;
	// empty for none.
	Program string
	rooms   rooms
	learned learnedCache
	staged  *staged
	// Trace opens spans around pieces of work; it may be nil.
	Trace Trace
	// OnAttempt, OnReceipt and OnDecision are told what was logged, for metrics;
	// they may be nil and must not block.
	OnAttempt  func(backend string, ending policy.Ending, outcome policy.Outcome)
	OnReceipt  func(backend string, r Ended)
	OnDecision func(rule string, action policy.Action)
	// OnTakeOver is told of a thread that was taken from a node which did not
	// give it back; it may be nil and must not block.
	OnTakeOver func()
}

// Local is a git repository in a folder.
type Local struct {
	Dir string
	// Branch is the branch that is worked on; it must not exist yet.
	Branch string
	// Verify are verify commands beside those of the repository's configuration.
	Verify []string
}

// What a thread's folder holds: the HOME of its agent and, while it is used, the
// checkout. Both have the same path in every attempt, since an agent that
// continues a session remembers paths; the HOME is made anew unless it does. The
// output of each attempt is in a folder of its own, as is the HOME of verify
// commands.
const (
	homeDir        = "home"
	workDir        = "work"
	transcriptFile = "transcript"
	verifyDir      = "verify"
)

// ProcessPrefix begins the names of all processes that work in this data
// directory, so that a server can end those that an earlier one left behind.
func (s *Solver) ProcessPrefix() string { return s.Config.DataDir + ":" }

// attemptDir is where the transcript of one attempt lives. No two attempts share
// it.
func (s *Solver) attemptDir(t Thread, n int) string {
	return filepath.Join(s.threadDir(t), itoa(n))
}

// homeOf is the HOME of a thread's agents, and workOf their checkout.
func (s *Solver) homeOf(t Thread) string { return filepath.Join(s.threadDir(t), homeDir) }

func (s *Solver) workOf(t Thread) string { return filepath.Join(s.threadDir(t), workDir) }

func (s *Solver) threadDir(t Thread) string {
	return filepath.Join(s.Config.DataDir, "attempts", t.Owner, t.Name, itoa(t.Number))
}

func (s *Solver) cacheDir(t Thread) string {
	return filepath.Join(s.Config.DataDir, "repos", t.Owner, t.Name+".git")
}

// Limits are policy's numbers as the configuration gives them.
func Limits(p config.Policy) policy.Limits {
	return policy.Limits{
		MaxRestarts: p.Restarts.Max, BackoffAfter: p.Restarts.BackoffAfter, BackoffCap: p.Restarts.BackoffCap,
		MaxPerDay:            p.Restarts.MaxPerThreadPerDay,
		MaxConsecutiveLimits: p.UsageLimit.MaxConsecutive, AutoContinue: p.UsageLimit.AutoContinue,
		Severity: policy.SeverityLimits{
			MinEdits: p.Severity.MinEdits, MinRepeats: p.Severity.MinRepeats,
			ModerateEdits: p.Severity.ModerateEdits, ModerateRepeats: p.Severity.ModerateRepeats,
			SevereEdits: p.Severity.SevereEdits, SevereRepeats: p.Severity.SevereRepeats,
			MildCooldown: p.Severity.MildCooldown, ModerateCooldown: p.Severity.ModerateCooldown, SevereCooldown: p.Severity.SevereCooldown,
			MildGrade: p.Severity.MildGrade, ModerateGrade: p.Severity.ModerateGrade, SevereGrade: p.Severity.SevereGrade,
		},
		Similarity: p.Stagnation.Similarity, EscalateAfter: p.Stagnation.EscalateAfter,
		VerifyRetries: p.Ladder.VerifyRetries, EscalateEffort: p.Ladder.EscalateEffort,
		NoAnswerRetry: p.Ladder.NoAnswerRetry, ResumeSessions: p.Ladder.ResumeSessions,
		TokensPerDay: p.Budget.TokensPerThreadPerDay, USDPerDay: p.Budget.USDPerThreadPerDay,
	}
}

// placeName names the machine and the folder that this process works in. A
// session of an agent can be continued only where it was.
func (s *Solver) placeName() string {
	host := s.Node[:max(0, strings.LastIndexByte(s.Node, '-'))] // the process id follows
	return host + ":" + s.Config.DataDir
}
