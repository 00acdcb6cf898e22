package policy

import (
	"strings"
	"time"
)

// Rule names what spoke in a decision. What people are told of each stands beside it, in Words.
type Rule string

// The rules of this package: those that Next asks, whose order stands there, and of what admits an attempt.
const (
	RulePaused         Rule = "paused"
	RuleClosed         Rule = "closed"
	RuleCancelled      Rule = "cancelled"
	RuleRevoked        Rule = "revoked"
	RuleDeclined       Rule = "declined"
	RuleQuestion       Rule = "question"
	RuleAnswered       Rule = "answered"
	RulePlan           Rule = "plan"
	RulePlanned        Rule = "planned"
	RuleDone           Rule = "done"
	RuleRestartLimit   Rule = "restart_limit"
	RuleBudget         Rule = "budget"
	RuleChecksFailed   Rule = "checks_failed"
	RuleDailyCap       Rule = "daily_cap"
	RuleCap            Rule = "cap" // above the thread
	RuleGenerations    Rule = "generations"
	RuleAuth           Rule = "auth"
	RuleMisconfigured  Rule = "misconfigured"
	RuleUsageLimit     Rule = "usage_limit"
	RuleLimitReset     Rule = "limit_reset"
	RuleEditLoop       Rule = "edit_loop"
	RuleStagnation     Rule = "stagnation"
	RuleNoAnswer       Rule = "no_answer"
	RuleNoChange       Rule = "no_change"
	RuleLeftOut        Rule = "left_out"
	RuleSecret         Rule = "secret"
	RuleConflict       Rule = "conflict"
	RuleUnattended     Rule = "unattended"
	RuleNotConverging  Rule = "not_converging"
	RuleNotBlocking    Rule = "not_blocking"
	RuleTransient      Rule = "transient"
	RuleSilent         Rule = "silent"
	RuleNoProgress     Rule = "no_progress"
	RuleInterrupted    Rule = "interrupted"
	RuleVerifyFailed   Rule = "verify_failed"
	RuleVerifyBroken   Rule = "verify_broken"
	RuleEscalateEffort Rule = "escalate_effort"
	RuleProgress       Rule = "progress"
	RuleGather         Rule = "gather"
	RuleFeedback       Rule = "feedback"
	RuleNothingLeft    Rule = "nothing_left"
	RuleNoBackend      Rule = "no_backend"
	RuleLimitBreaker   Rule = "usage_limit_breaker"
	RuleAuthBreaker    Rule = "auth_breaker"
	RuleCooldown       Rule = "cooldown"
	RuleRunaway        Rule = "runaway"
	RuleBackoff        Rule = "backoff"
)

// The rules of the step, which knows the repository, the nodes and GitHub.
const (
	RuleEmptyTask       Rule = "empty_task"
	RuleFork            Rule = "fork"
	RuleDefaultBranch   Rule = "default_branch"
	RuleEmptyRepository Rule = "empty_repository"
	RuleRepositoryGone  Rule = "repository_gone"
	RuleBranchGone      Rule = "branch_gone"
	RuleRewritten       Rule = "rewritten"
	RuleConfigError     Rule = "config_error"
	RuleSetupFailed     Rule = "setup_failed"
	RulePushRefused     Rule = "push_refused"
	RulePawlFailed      Rule = "pawl_failed"
	RuleProbe           Rule = "probe"
	RuleCrowded         Rule = "crowded"
)

// Words are what people are told where a rule spoke last.
type Words struct {
	// Waits says what a wait by the rule is for, Stops why the work stopped. Each is empty where the rule
	// never decides that, and both are for a rule that a later version of Pawl wrote.
	Waits, Stops string
	Help         Help // what helps after a stop
}

// Help says which commands help after a stop.
type Help int

// No command helps, to go on does, to try again does, or, as trying again does, to try in another way.
const (
	HelpNone Help = iota
	HelpResume
	HelpRetry
	HelpAny
)

func (r Rule) Words() Words { return words[r] }

// words lacks the rules that only start an attempt, or end a run with what was asked for.
var words = map[Rule]Words{
	RulePaused:          {Stops: "work is paused here"},
	RuleClosed:          {Stops: "the thread cannot be worked on any more"},
	RuleCancelled:       {Stops: "somebody asked for it", Help: HelpResume},
	RuleRevoked:         {Stops: "whoever asked for it may not write any more", Help: HelpRetry},
	RuleDeclined:        {Stops: "the agent declined", Help: HelpAny},
	RuleQuestion:        {Stops: "the agent asks a question", Help: HelpAny},
	RulePlan:            {Stops: "the plan cannot be worked off as it stands"},
	RuleRestartLimit:    {Stops: "the run reached its restart limit"},
	RuleBudget:          {Waits: "the day's budget is used up", Stops: "the budget is used up", Help: HelpAny},
	RuleGenerations:     {Stops: "Pawl's own work led here, and no person asked", Help: HelpNone},
	RuleCap:             {Waits: "the day's attempts are used up"},
	RuleChecksFailed:    {Stops: "checks failed", Help: HelpAny},
	RuleDailyCap:        {Waits: "the thread's attempts of the day are used up", Stops: "the thread reached its daily cap of attempts"},
	RuleAuth:            {Stops: "the agent's login was rejected", Help: HelpRetry},
	RuleAuthBreaker:     {Stops: "the agent's login was rejected", Help: HelpResume},
	RuleMisconfigured:   {Stops: "the agent is misconfigured", Help: HelpRetry},
	RuleUsageLimit:      {Waits: "usage limit", Stops: "usage limit", Help: HelpResume},
	RuleLimitBreaker:    {Stops: "too many usage limits in a row", Help: HelpResume},
	RuleStagnation:      {Stops: "the attempts come to the same point again", Help: HelpAny},
	RuleNoChange:        {Stops: "the agent changed nothing", Help: HelpAny},
	RuleLeftOut:         {Stops: "the agent changed only files that are left out", Help: HelpAny},
	RuleSecret:          {Stops: "the work holds what looks like a secret", Help: HelpRetry},
	RuleConflict:        {Stops: "the conflict with the base is not resolved", Help: HelpAny},
	RuleUnattended:      {Stops: "nobody has typed anything new"},
	RuleNotConverging:   {Stops: "the rounds of review do not converge", Help: HelpAny},
	RuleNotBlocking:     {Stops: "remarks wait that are not marked as blocking", Help: HelpAny},
	RuleTransient:       {Waits: "the provider refuses for the moment", Stops: "the provider refused again and again", Help: HelpResume},
	RuleSilent:          {Stops: "the agent fell silent again and again", Help: HelpAny},
	RuleNoProgress:      {Stops: "the attempt failed and brought no change", Help: HelpAny},
	RuleInterrupted:     {Waits: "attempts were interrupted again and again", Stops: "attempts were interrupted again and again", Help: HelpRetry},
	RuleVerifyFailed:    {Stops: "verification keeps failing", Help: HelpAny},
	RuleVerifyBroken:    {Stops: "verification cannot work here", Help: HelpRetry},
	RuleNoBackend:       {Stops: "no backend may run", Help: HelpResume},
	RuleCooldown:        {Waits: "cooldown after an edit loop"},
	RuleRunaway:         {Stops: "the backend ran away three times in a week here", Help: HelpResume},
	RuleBackoff:         {Waits: "pause between restarts"},
	RuleGather:          {Waits: "more of the same feedback"},
	RuleProbe:           {Waits: "one attempt that tries the limited account first"},
	RuleCrowded:         {Waits: "a place among the attempts that may run at the same time"},
	RuleEmptyTask:       {Stops: "nothing says what is wanted", Help: HelpAny},
	RuleFork:            {Stops: "the branch belongs to another repository", Help: HelpAny},
	RuleDefaultBranch:   {Stops: "its branch is the default branch", Help: HelpAny},
	RuleEmptyRepository: {Stops: "the repository has no commits", Help: HelpAny},
	RuleRepositoryGone:  {Stops: "Pawl cannot see the repository", Help: HelpAny},
	RuleBranchGone:      {Stops: "its branch does not exist", Help: HelpAny},
	RuleRewritten:       {Stops: "the branch was force-pushed since", Help: HelpAny},
	RulePushRefused:     {Stops: "GitHub refused the push", Help: HelpAny},
	RuleConfigError:     {Stops: "the repository's configuration has errors", Help: HelpRetry},
	RuleSetupFailed:     {Stops: "setup failed", Help: HelpRetry},
	RulePawlFailed:      {Stops: "Pawl itself failed", Help: HelpRetry},
}

type Reason struct {
	Rule Rule `json:"rule,omitempty"` // the rule that gives it, which need not be the one that decided
	// Text is a sentence without a full stop. Where Until is set it ends in the
	// word that asks for that time: it resets at, cooling down until.
	Text  string    `json:"text"`
	Until time.Time `json:"until,omitzero"`
}

// Write is the sentence with its time as the caller writes times.
func (r Reason) Write(write func(time.Time) string) string {
	if r.Until.IsZero() {
		return r.Text
	}
	return r.Text + " " + write(r.Until)
}

// String is the sentence with its time as the contract writes times.
func (r Reason) String() string { return r.Write(Clock) }

// Reasons are those of one decision, the most important first.
type Reasons []Reason

// Because are reasons of one rule that name no time.
func Because(r Rule, texts ...string) Reasons {
	return each(texts, func(t string) Reason { return Reason{Rule: r, Text: t} })
}

// Write are the sentences with their times as the caller writes times.
func (r Reasons) Write(write func(time.Time) string) []string {
	return each(r, func(one Reason) string { return one.Write(write) })
}

// Texts are the sentences as the contract and the logs have them.
func (r Reasons) Texts() []string { return r.Write(Clock) }

func (r Reasons) String() string { return strings.Join(r.Texts(), "; ") }
