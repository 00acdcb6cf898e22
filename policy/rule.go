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
	RuleStillFailing   Rule = "still_failing"
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

// Words say when a rule speaks, and what people are told where it spoke last.
type Words struct {
	Decides []Action // what may follow
	When    string   // when the rule speaks, for docs/verdicts.md
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

// words has a row for each rule, in the order of the constants.
var words = map[Rule]Words{
	RulePaused: {
		Decides: []Action{DoStop},
		When:    "the operator or the repository forbids work",
		Stops:   "work is paused here",
	},
	RuleClosed: {
		Decides: []Action{DoStop},
		When:    "the thread cannot be worked on any more",
		Stops:   "the thread cannot be worked on any more",
	},
	RuleCancelled: {
		Decides: []Action{DoStop},
		When:    "a user asked to stop",
		Stops:   "somebody asked for it",
		Help:    HelpResume,
	},
	RuleRevoked: {
		Decides: []Action{DoStop},
		When:    "nobody who asked for the work may write to the repository any more, which is asked again before each push and each later act for them",
		Stops:   "whoever asked for it may not write any more",
		Help:    HelpRetry,
	},
	RuleDeclined: {
		Decides: []Action{DoAsk},
		When:    "the agent said that the task cannot be done or contradicts itself, and changed nothing",
		Stops:   "the agent declined",
		Help:    HelpAny,
	},
	RuleQuestion: {
		Decides: []Action{DoAsk},
		When:    "the agent asked a question and changed nothing; a comment of somebody who may write is the answer",
		Stops:   "the agent asks a question",
		Help:    HelpAny,
	},
	RuleAnswered: {
		Decides: []Action{DoDone},
		When:    "an attempt that was to answer did",
	},
	RulePlan: {
		Decides: []Action{DoAsk},
		When:    "the plan that `/pawl go` names was edited after the command or by somebody who may not write, or is gone",
		Stops:   "the plan cannot be worked off as it stands",
	},
	RulePlanned: {
		Decides: []Action{DoAsk},
		When:    "an attempt that was to plan did; `/pawl go` has the plan worked off",
	},
	RuleDone: {
		Decides: []Action{DoDone},
		When:    "the last attempt ended completed, its work or the work that it continued is kept, and it was verified, or there is nothing to verify by",
	},
	RuleRestartLimit: {
		Decides: []Action{DoStop},
		When:    "the work was restarted as often as it may be without a person's new words",
		Stops:   "the run reached its restart limit",
	},
	RuleBudget: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		When:    "the attempt's own budget is used up, which stops; a daily budget is used up, which waits until there is room again",
		Waits:   "the day's budget is used up",
		Stops:   "the budget is used up",
		Help:    HelpAny,
	},
	RuleChecksFailed: {
		Decides: []Action{DoStop},
		When:    "the checks of others failed again after as many attempts for them alone as there may be",
		Stops:   "checks failed",
		Help:    HelpAny,
	},
	RuleDailyCap: {
		Decides: []Action{DoWait, DoStop},
		When:    "the thread's attempts of the day are used up, which waits; on two days in a row they were, which stops",
		Waits:   "the thread's attempts of the day are used up",
		Stops:   "the thread reached its daily cap of attempts",
	},
	RuleCap: {
		Decides: []Action{DoWait},
		When:    "the day's attempts of the repository, the installation, the server or the account are used up",
		Waits:   "the day's attempts are used up",
	},
	RuleGenerations: {
		Decides: []Action{DoStop},
		When:    "Pawl's own work led here, further than it may without a person",
		Stops:   "Pawl's own work led here, and no person asked",
		Help:    HelpNone,
	},
	RuleAuth: {
		Decides: []Action{DoAttempt, DoStop},
		When:    "a login was refused: another account's backend, else the operator",
		Stops:   "the agent's login was rejected",
		Help:    HelpRetry,
	},
	RuleMisconfigured: {
		Decides: []Action{DoAttempt, DoStop},
		When:    "the agent could not be started: another account's backend, else the operator",
		Stops:   "the agent is misconfigured",
		Help:    HelpRetry,
	},
	RuleUsageLimit: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		When:    "a usage limit was hit: another account's backend, the reset if it is waited for, else stop",
		Waits:   "usage limit",
		Stops:   "usage limit",
		Help:    HelpResume,
	},
	RuleLimitReset: {
		Decides: []Action{DoAttempt},
		When:    "the usage limit that was waited for was reset",
	},
	RuleEditLoop: {
		Decides: []Action{DoAttempt},
		When:    "an edit loop made progress; its backend rests",
	},
	RuleStagnation: {
		Decides: []Action{DoAttempt, DoStop},
		When:    "attempts came to the same point",
		Stops:   "the attempts come to the same point again",
		Help:    HelpAny,
	},
	RuleNoAnswer: {
		Decides: []Action{DoAttempt},
		When:    "rung 1 without the gateway, once a run",
	},
	RuleNoChange: {
		Decides: []Action{DoStop},
		When:    "the attempt ended completed and changed nothing",
		Stops:   "the agent changed nothing",
		Help:    HelpAny,
	},
	RuleLeftOut: {
		Decides: []Action{DoStop},
		When:    "nothing was changed but files that are left out of commits: protected paths and what git cannot hold",
		Stops:   "the agent changed only files that are left out",
		Help:    HelpAny,
	},
	RuleSecret: {
		Decides: []Action{DoStop},
		When:    "what the attempt made holds what looks like a secret; nothing of it was committed, and the place and its fingerprint are named",
		Stops:   "the work holds what looks like a secret",
		Help:    HelpRetry,
	},
	RuleConflict: {
		Decides: []Action{DoStop},
		When:    "the agent left conflict markers of a merge of the base, and nothing of it was pushed",
		Stops:   "the conflict with the base is not resolved",
		Help:    HelpAny,
	},
	RuleUnattended: {
		Decides: []Action{DoStop},
		When:    "events began as many attempts as they may without a person's new words",
		Stops:   "nobody seems to be attending",
	},
	RuleNotConverging: {
		Decides: []Action{DoStop},
		When:    "five rounds of review ran, or they show that they lead nowhere",
		Stops:   "the rounds of review do not converge",
		Help:    HelpAny,
	},
	RuleNotBlocking: {
		Decides: []Action{DoStop},
		When:    "three rounds of review ran, and nothing new is marked as blocking",
		Stops:   "remarks wait that are not marked as blocking",
		Help:    HelpAny,
	},
	RuleTransient: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		When:    "the provider refused in a way that passes",
		Waits:   "the provider refuses for the moment",
		Stops:   "the provider refused again and again",
		Help:    HelpResume,
	},
	RuleSilent: {
		Decides: []Action{DoAttempt, DoStop},
		When:    "the agent hung and was ended; the third in a row stops",
		Stops:   "the agent fell silent again and again",
		Help:    HelpAny,
	},
	RuleNoProgress: {
		Decides: []Action{DoStop},
		When:    "the attempt failed and changed nothing",
		Stops:   "the attempt failed and brought no change",
		Help:    HelpAny,
	},
	RuleInterrupted: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		When:    "Pawl or its machine broke off: three in a row that Pawl could not carry through stop; three that ended with their server wait",
		Waits:   "attempts were interrupted again and again",
		Stops:   "attempts were interrupted again and again",
		Help:    HelpRetry,
	},
	RuleStillFailing: {
		Decides: []Action{DoAttempt},
		When:    "the only failing tests also fail on the base and none was fixed: the agent is asked once whether they belong to the task",
	},
	RuleVerifyFailed: {
		Decides: []Action{DoAttempt, DoStop},
		When:    "rung 2: verification failed",
		Stops:   "verification keeps failing",
		Help:    HelpAny,
	},
	RuleVerifyBroken: {
		Decides: []Action{DoStop},
		When:    "a verify command cannot work here, and could not before Pawl began",
		Stops:   "verification cannot work here",
		Help:    HelpRetry,
	},
	RuleEscalateEffort: {
		Decides: []Action{DoAttempt},
		When:    "rung 3: rung 2 is used up",
	},
	RuleProgress: {
		Decides: []Action{DoAttempt},
		When:    "an attempt that did not end completed moved the work",
	},
	RuleGather: {
		Decides: []Action{DoWait},
		When:    "more of a review may follow",
		Waits:   "more of the same feedback",
	},
	RuleFeedback: {
		Decides: []Action{DoAttempt},
		When:    "somebody asks for work",
	},
	RuleNothingLeft: {
		Decides: []Action{DoDone},
		When:    "nobody asks for anything any more",
	},
	RuleNoBackend: {
		Decides: []Action{DoStop},
		When:    "no backend may be used, and none is free by itself",
		Stops:   "no backend may run",
		Help:    HelpResume,
	},
	RuleLimitBreaker: {
		Decides: []Action{DoStop},
		When:    "the account hit as many usage limits in a row as it may",
		Stops:   "too many usage limits in a row",
		Help:    HelpResume,
	},
	RuleAuthBreaker: {
		Decides: []Action{DoStop},
		When:    "the account's login was refused as often in a row as it may be",
		Stops:   "the agent's login was rejected",
		Help:    HelpResume,
	},
	RuleCooldown: {
		Decides: []Action{DoWait},
		When:    "the backend rests after an edit loop",
		Waits:   "cooldown after an edit loop",
	},
	RuleRunaway: {
		Decides: []Action{DoStop},
		When:    "the only backends left had three severe edit loops here within a week; a user's command lifts that",
		Stops:   "the backend ran away three times in a week here",
		Help:    HelpResume,
	},
	RuleBackoff: {
		Decides: []Action{DoWait},
		When:    "the pause between two restarts has not passed",
		Waits:   "pause between restarts",
	},
	RuleEmptyTask: {
		Decides: []Action{DoAsk},
		When:    "there is nothing to work on",
		Stops:   "nothing says what is wanted",
		Help:    HelpAny,
	},
	RuleFork: {
		Decides: []Action{DoStop},
		When:    "the pull request's branch belongs to another repository",
		Stops:   "the branch belongs to another repository",
		Help:    HelpAny,
	},
	RuleDefaultBranch: {
		Decides: []Action{DoStop},
		When:    "the pull request's branch is the default branch",
		Stops:   "its branch is the default branch",
		Help:    HelpAny,
	},
	RuleEmptyRepository: {
		Decides: []Action{DoStop},
		When:    "the repository has no commits",
		Stops:   "the repository has no commits",
		Help:    HelpAny,
	},
	RuleRepositoryGone: {
		Decides: []Action{DoStop},
		When:    "Pawl cannot see the repository",
		Stops:   "Pawl cannot see the repository",
		Help:    HelpAny,
	},
	RuleBranchGone: {
		Decides: []Action{DoStop},
		When:    "the pull request's branch does not exist",
		Stops:   "its branch does not exist",
		Help:    HelpAny,
	},
	RuleRewritten: {
		Decides: []Action{DoAsk},
		When:    "the branch was force-pushed: its head does not hold the commit that a review, a remark on lines or red checks were about, or that was the head when something was asked for, or that the last attempt pushed or began from while nobody typed anything since. A person's next words let it go on from the branch as it is",
		Stops:   "the branch was force-pushed since",
		Help:    HelpAny,
	},
	RuleConfigError: {
		Decides: []Action{DoStop},
		When:    "the repository's file has errors",
		Stops:   "the repository's configuration has errors",
		Help:    HelpRetry,
	},
	RuleSetupFailed: {
		Decides: []Action{DoStop},
		When:    "a command of the repository's setup failed, before any attempt",
		Stops:   "setup failed",
		Help:    HelpRetry,
	},
	RulePushRefused: {
		Decides: []Action{DoStop},
		When:    "GitHub refused the push",
		Stops:   "GitHub refused the push",
		Help:    HelpAny,
	},
	RulePawlFailed: {
		Decides: []Action{DoStop},
		When:    "Pawl could not do its job",
		Stops:   "Pawl itself failed",
		Help:    HelpRetry,
	},
	RuleProbe: {
		Decides: []Action{DoWait},
		When:    "another attempt tries the account first. The thread looks again every 2 to 40 seconds",
		Waits:   "one attempt that tries the limited account first",
	},
	RuleCrowded: {
		Decides: []Action{DoWait},
		When:    "as many attempts run as may, and others wait already. The thread looks again every 2 to 40 seconds",
		Waits:   "a place among the attempts that may run at the same time",
	},
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
