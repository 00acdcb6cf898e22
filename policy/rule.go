package policy

import (
	"strings"
	"time"
)

// Rule names a rule.
type Rule string

// The rules of this package: first Next's in order, then admit's.
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
	RuleUnwatched      Rule = "unwatched"
	RuleMoved          Rule = "moved"
	RuleNotGreen       Rule = "not_green"
	RuleWatch          Rule = "watch"
	RuleRestartLimit   Rule = "restart_limit"
	RuleBudget         Rule = "budget"
	RuleChecksFailed   Rule = "checks_failed"
	RuleDailyCap       Rule = "daily_cap"
	RuleCap            Rule = "cap" // of a global limit
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
	RuleHeadroom       Rule = "headroom"
	RuleCooldown       Rule = "cooldown"
	RuleRunaway        Rule = "runaway"
	RuleBackoff        Rule = "backoff"
)

// The rules that the solver applies outside Next.
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
	RuleRepeatedError   Rule = "repeated_error"
	RuleProbe           Rule = "probe"
	RuleCrowded         Rule = "crowded"
	RuleNoNode          Rule = "no_node"
)

// Words describe a rule for users.
type Words struct {
	Decides []Action // possible actions
	// When the rule applies, for docs/verdicts.md; empty if its title or an outcome's meaning explains it.
	When string
	// Waits completes "waits for", Stops says why work stopped. Rules from newer versions have neither.
	Waits, Stops string
	Help         Help // the useful commands after a stop
}

type Help int

const (
	HelpNone Help = iota
	HelpResume
	HelpRetry
	HelpAny
)

func (r Rule) Words() Words { return words[r] }

// words has a row for each rule, in the constants' order.
var words = map[Rule]Words{
	RulePaused: {
		Decides: []Action{DoStop},
		Stops:   "work is paused here",
	},
	RuleClosed: {
		Decides: []Action{DoStop},
		When:    "the thread, its branch or its repository was closed, merged or removed",
		Stops:   "the thread was closed, merged or removed",
	},
	RuleCancelled: {
		Decides: []Action{DoStop},
		Stops:   "a user asked for it",
		Help:    HelpResume,
	},
	RuleRevoked: {
		Decides: []Action{DoStop},
		Stops:   "the user who asked lost write access",
		Help:    HelpRetry,
	},
	RuleDeclined: {
		Decides: []Action{DoAsk},
		Stops:   "the agent declined",
		Help:    HelpAny,
	},
	RuleQuestion: {
		Decides: []Action{DoAsk},
		Stops:   "the agent asks a question",
		Help:    HelpAny,
	},
	RuleAnswered: {
		Decides: []Action{DoDone},
	},
	RulePlan: {
		Decides: []Action{DoAsk},
		When:    "the plan of `/pawl go` is gone, or was edited later or by a user without permission",
		Stops:   "the plan cannot be carried out as it stands",
	},
	RulePlanned: {
		Decides: []Action{DoAsk},
	},
	RuleDone: {
		Decides: []Action{DoDone},
		When:    "the attempt ended well, and its or earlier work is kept",
	},
	RuleUnwatched: {
		Decides: []Action{DoDone},
		When:    "only a watch that has ended asked for the work",
	},
	RuleMoved: {
		Decides: []Action{DoDone},
		When:    "the branch moved during a round of a watch",
	},
	RuleNotGreen: {
		Decides: []Action{DoStop},
		When:    "a watch used up its rounds, or a round fixed no failing test",
		Stops:   "not green after 5 rounds",
		Help:    HelpAny,
	},
	RuleWatch: {
		Decides: []Action{DoWait},
		When:    "a watched pull request: checks run, or a user pushed within the last hour",
		Waits:   "the next round of the watch",
	},
	RuleRestartLimit: {
		Decides: []Action{DoStop},
		Stops:   "the run reached its restart limit",
	},
	RuleBudget: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		When:    "the attempt's own budget (stop) or a daily one is used up",
		Waits:   "the day's budget is used up",
		Stops:   "the budget is used up",
		Help:    HelpAny,
	},
	RuleChecksFailed: {
		Decides: []Action{DoStop},
		When:    "other apps' checks failed again after all attempts for them",
		Stops:   "checks failed",
		Help:    HelpAny,
	},
	RuleDailyCap: {
		Decides: []Action{DoWait, DoStop},
		When:    "the thread's daily attempts are used up; twice in a row stops",
		Waits:   "the thread's daily attempts are used up",
		Stops:   "the thread reached its daily cap of attempts",
	},
	RuleCap: {
		Decides: []Action{DoWait},
		When:    "the daily attempts of a [global limit](#budgets) are used up",
		Waits:   "the day's attempts are used up",
	},
	RuleGenerations: {
		Decides: []Action{DoStop},
		Stops:   "Pawl's own work caused this request, and no user asked",
		Help:    HelpNone,
	},
	RuleAuth: {
		Decides: []Action{DoAttempt, DoStop},
		Stops:   "the agent's login was rejected",
		Help:    HelpRetry,
	},
	RuleMisconfigured: {
		Decides: []Action{DoAttempt, DoStop},
		Stops:   "the agent is misconfigured",
		Help:    HelpRetry,
	},
	RuleUsageLimit: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		Waits:   "usage limit",
		Stops:   "usage limit",
		Help:    HelpResume,
	},
	RuleLimitReset: {
		Decides: []Action{DoAttempt},
		When:    "the reset has passed",
	},
	RuleEditLoop: {
		Decides: []Action{DoAttempt},
	},
	RuleStagnation: {
		Decides: []Action{DoAttempt, DoStop},
		Stops:   "the attempts repeat the same result",
		Help:    HelpAny,
	},
	RuleNoAnswer: {
		Decides: []Action{DoAttempt},
	},
	RuleNoChange: {
		Decides: []Action{DoStop},
		Stops:   "the agent changed nothing",
		Help:    HelpAny,
	},
	RuleLeftOut: {
		Decides: []Action{DoStop},
		Stops:   "the agent changed only files that are left out",
		Help:    HelpAny,
	},
	RuleSecret: {
		Decides: []Action{DoStop},
		Stops:   "the work holds what looks like a secret",
		Help:    HelpRetry,
	},
	RuleConflict: {
		Decides: []Action{DoStop},
		Stops:   "the conflict with the base is not resolved",
		Help:    HelpAny,
	},
	RuleUnattended: {
		Decides: []Action{DoStop},
		Stops:   "too many attempts without user input",
	},
	RuleNotConverging: {
		Decides: []Action{DoStop},
		Stops:   "the review rounds do not converge",
		Help:    HelpAny,
	},
	RuleNotBlocking: {
		Decides: []Action{DoStop},
		Stops:   "the open review comments are not marked as blocking",
		Help:    HelpAny,
	},
	RuleTransient: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		Waits:   "the provider refuses requests for now",
		Stops:   "the provider refused again and again",
		Help:    HelpResume,
	},
	RuleSilent: {
		Decides: []Action{DoAttempt, DoStop},
		Stops:   "the agent repeatedly went silent",
		Help:    HelpAny,
	},
	RuleNoProgress: {
		Decides: []Action{DoStop},
		Stops:   "the attempt failed without a change",
		Help:    HelpAny,
	},
	RuleInterrupted: {
		Decides: []Action{DoAttempt, DoWait, DoStop},
		Waits:   "attempts were interrupted again and again",
		Stops:   "attempts were interrupted again and again",
		Help:    HelpRetry,
	},
	RuleStillFailing: {
		Decides: []Action{DoAttempt},
		When:    "every failing test also fails on the base; once per feedback",
	},
	RuleVerifyFailed: {
		Decides: []Action{DoAttempt, DoStop},
		Stops:   "verification keeps failing",
		Help:    HelpAny,
	},
	RuleVerifyBroken: {
		Decides: []Action{DoStop},
		Stops:   "the verify commands cannot run here",
		Help:    HelpRetry,
	},
	RuleEscalateEffort: {
		Decides: []Action{DoAttempt},
		When:    "rung 3",
	},
	RuleProgress: {
		Decides: []Action{DoAttempt},
		When:    "a failed attempt changed the tree",
	},
	RuleGather: {
		Decides: []Action{DoWait},
		Waits:   "the rest of a review",
	},
	RuleFeedback: {
		Decides: []Action{DoAttempt},
		When:    "a user asks for work",
	},
	RuleNothingLeft: {
		Decides: []Action{DoDone},
		When:    "no request is open",
	},
	RuleNoBackend: {
		Decides: []Action{DoStop},
		Stops:   "no backend may run",
		Help:    HelpResume,
	},
	RuleLimitBreaker: {
		Decides: []Action{DoStop},
		Stops:   "too many usage limits in a row",
		Help:    HelpResume,
	},
	RuleAuthBreaker: {
		Decides: []Action{DoStop},
		Stops:   "the agent's login was rejected",
		Help:    HelpResume,
	},
	RuleHeadroom: {
		Decides: []Action{DoWait},
		When:    "a usage window of the account lacks room for an attempt; see `policy.headroom`",
		Waits:   "free usage in the account's window",
	},
	RuleCooldown: {
		Decides: []Action{DoWait},
		Waits:   "cooldown after an edit loop",
	},
	RuleRunaway: {
		Decides: []Action{DoStop},
		Stops:   "the backend ran away three times in a week here",
		Help:    HelpResume,
	},
	RuleBackoff: {
		Decides: []Action{DoWait},
		Waits:   "pause between restarts",
	},
	RuleEmptyTask: {
		Decides: []Action{DoAsk},
		Stops:   "the request has no text",
		Help:    HelpAny,
	},
	RuleFork: {
		Decides: []Action{DoStop},
		Stops:   "the branch belongs to another repository",
		Help:    HelpAny,
	},
	RuleDefaultBranch: {
		Decides: []Action{DoStop},
		Stops:   "the pull request's branch is the default branch",
		Help:    HelpAny,
	},
	RuleEmptyRepository: {
		Decides: []Action{DoStop},
		Stops:   "the repository has no commits",
		Help:    HelpAny,
	},
	RuleRepositoryGone: {
		Decides: []Action{DoStop},
		Stops:   "Pawl cannot see the repository",
		Help:    HelpAny,
	},
	RuleBranchGone: {
		Decides: []Action{DoStop},
		Stops:   "the pull request's branch does not exist",
		Help:    HelpAny,
	},
	RuleRewritten: {
		Decides: []Action{DoAsk},
		When:    "a force-push removed a commit that feedback or the last attempt refers to; new words accept it",
		Stops:   "the branch was force-pushed",
		Help:    HelpAny,
	},
	RuleConfigError: {
		Decides: []Action{DoStop},
		Stops:   "the repository's configuration has errors",
		Help:    HelpRetry,
	},
	RuleSetupFailed: {
		Decides: []Action{DoStop},
		Stops:   "setup failed",
		Help:    HelpRetry,
	},
	RulePushRefused: {
		Decides: []Action{DoStop},
		Stops:   "GitHub refused the push",
		Help:    HelpAny,
	},
	RulePawlFailed: {
		Decides: []Action{DoStop},
		Stops:   "Pawl itself failed",
		Help:    HelpRetry,
	},
	RuleRepeatedError: {
		Decides: []Action{DoWait},
		When:    "a step failed several times in a row; Pawl tries again",
		Waits:   "the same error again and again",
	},
	RuleProbe: {
		Decides: []Action{DoWait},
		Waits:   "another attempt that tries the limited account first",
	},
	RuleCrowded: {
		Decides: []Action{DoWait},
		Waits:   "a free slot for another attempt",
	},
	RuleNoNode: {
		Decides: []Action{DoWait},
		Waits:   "a server that can run it",
	},
}

type Reason struct {
	Rule Rule `json:"rule,omitempty"` // may differ from the deciding rule
	// Text is a sentence without a full stop. If Until is set, the time completes the text, as in "it resets at" or
	// "cooling down until".
	Text  string    `json:"text"`
	Until time.Time `json:"until,omitzero"`
}

// Write appends the time in the caller's format.
func (r Reason) Write(write func(time.Time) string) string {
	if r.Until.IsZero() {
		return r.Text
	}
	return r.Text + " " + write(r.Until)
}

func (r Reason) String() string { return r.Write(Clock) }

// Reasons are ordered by importance.
type Reasons []Reason

// Because makes one rule's reasons without times.
func Because(r Rule, texts ...string) Reasons {
	return each(texts, func(t string) Reason { return Reason{Rule: r, Text: t} })
}

func (r Reasons) Write(write func(time.Time) string) []string {
	return each(r, func(one Reason) string { return one.Write(write) })
}

// Texts formats times as RFC 3339.
func (r Reasons) Texts() []string { return r.Write(Clock) }

func (r Reasons) String() string { return strings.Join(r.Texts(), "; ") }
