package thread

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

type Kind string

// The kinds of events. Webhooks, users and the solver cause the first five; only users cause Operated.
const (
	KindFeedback       Kind = "feedback"        // Feedback, accepted
	KindIgnored        Kind = "ignored"         // Feedback that does not count, with the reason
	KindControl        Kind = "control"         // Feedback with a control command
	KindQuestion       Kind = "question"        // Feedback that needs an answer: status, why, unknown commands
	KindThread         Kind = "thread"          // Change
	KindWithdrawn      Kind = "withdrawn"       // Withdrawn
	KindDecision       Kind = "decision"        // Decided
	KindAttemptStarted Kind = "attempt_started" // Started
	KindAuthored       Kind = "authored"        // Authored
	KindPublished      Kind = "published"       // Authored, by Pawl itself
	KindSteered        Kind = "steered"         // Steered
	KindAttemptEnded   Kind = "attempt_ended"   // policy.Receipt
	KindUnfinished     Kind = "unfinished"      // Unfinished
	KindChecked        Kind = "checked"         // Checked
	KindWatched        Kind = "watched"         // Watched
	KindActStarted     Kind = "act_started"     // Act
	KindActDone        Kind = "act_done"        // Act
	KindOperated       Kind = "operated"        // Operated, in a repository's or the server's log
)

// Details holds a thread's data from a webhook. Empty fields are unknown and do not replace known ones.
type Details struct {
	Installation  int64  `json:"installation,omitempty"`
	RepoID        int64  `json:"repo_id,omitempty"`
	Title         string `json:"title,omitempty"`
	Body          string `json:"body,omitempty"`
	Author        string `json:"author,omitempty"`
	Labels        string `json:"labels,omitempty"` // one label per line
	Pull          bool   `json:"pull,omitempty"`
	HeadRef       string `json:"head_ref,omitempty"`
	HeadSHA       string `json:"head_sha,omitempty"`
	HeadRepoID    int64  `json:"head_repo_id,omitempty"`
	BaseRef       string `json:"base_ref,omitempty"`
	DefaultBranch string `json:"default_branch,omitempty"`
	URL           string `json:"url,omitempty"`
}

// Target identifies what a reaction is added to: issue, issue_comment, review_comment or review, and its id (an
// issue's number). Reviews need Node, since the REST API has no reactions to them. The zero value takes no reaction.
type Target struct {
	Kind string `json:"kind,omitempty"`
	ID   int64  `json:"id,omitempty"`
	Node string `json:"node,omitempty"`
}

// Bare returns the target without its node, so that targets of the REST and GraphQL APIs compare equal.
func (t Target) Bare() Target { return Target{Kind: t.Kind, ID: t.ID} }

// Feedback holds a remark and its judgement. Text is unchanged.
type Feedback struct {
	Source policy.Source  `json:"source"`
	By     feedback.Actor `json:"by"`
	Reason string         `json:"reason"`
	// Own marks Pawl's own actions, which are not shown.
	Own     bool   `json:"own,omitempty"`
	Command string `json:"command,omitempty"`
	Mention bool   `json:"mention,omitempty"`
	// Pin is the backend that a solve command or a label pawl:BACKEND names.
	Pin string `json:"pin,omitempty"`
	// Standing marks what the pull request had before the watch: a request by a label, or a review.
	Standing bool `json:"standing,omitempty"`
	// Severity grades a reviewer's remark (feedback.Severity); otherwise 0.
	Severity int    `json:"severity,omitempty"`
	Text     string `json:"text,omitempty"`
	Raw      string `json:"raw,omitempty"`
	// Description and Baseline hold an edited description after and before the edit.
	Description string `json:"description,omitempty"`
	Baseline    string `json:"baseline,omitempty"`
	Target      Target `json:"target,omitzero"`
	// First marks original comments as opposed to edits.
	First bool `json:"first,omitempty"`
	// Check and Conclusion hold another App's check run.
	Check      string `json:"check,omitempty"`
	Conclusion string `json:"conclusion,omitempty"`
	Outside    string `json:"outside,omitempty"` // why the work did not cause the failure, or empty
	// Tests lists the failing tests of the checks.
	Tests []string `json:"tests,omitempty"`
	// Generation counts Pawl's own steps since the last user comment; Cause names the latest.
	Generation int       `json:"generation,omitempty"`
	Cause      string    `json:"cause,omitempty"`
	Number     int       `json:"number,omitempty"` // issue or pull request
	URL        string    `json:"url,omitempty"`
	SHA        string    `json:"sha,omitempty"` // commit of the feedback
	MadeAt     time.Time `json:"made_at,omitzero"`
	Delivery   string    `json:"delivery,omitempty"`
	Snapshot   *Details  `json:"snapshot,omitempty"`

	// Backend is the choice of "use". Word is the subject of a question, such as an unknown command.
	Backend string `json:"backend,omitempty"`
	Word    string `json:"word,omitempty"`
	// Private marks questions in private repositories.
	Private bool `json:"private,omitempty"`

	Seq int64     `json:"-"`
	At  time.Time `json:"-"`
}

// Made returns when GitHub says the remark was made, or else when it arrived.
func (f Feedback) Made() time.Time {
	if f.MadeAt.IsZero() {
		return f.At
	}
	return f.MadeAt
}

type Change struct {
	// What is one of thumbs_up, thumbs_down, closed, reopened, merged, pull_closed, pull_merged, pull_reopened,
	// head_moved, branch_deleted, uninstalled, installed, renamed, repository_deleted, approved, changes_requested,
	// dismissed, reverted, base_moved, drafted, retargeted, seen (only a Snapshot).
	What   string    `json:"what"`
	By     string    `json:"by,omitempty"`
	Detail string    `json:"detail,omitempty"`
	MadeAt time.Time `json:"made_at,omitzero"` // when it was closed on GitHub, if known
	// Number and URL name the thread's pull request.
	Number   int      `json:"number,omitempty"`
	URL      string   `json:"url,omitempty"`
	Delivery string   `json:"delivery,omitempty"`
	Snapshot *Details `json:"snapshot,omitempty"`
}

// Withdrawn cancels earlier feedback.
type Withdrawn struct {
	Seqs   []int64 `json:"seqs"`
	Reason string  `json:"reason"`
}

// Decided holds a decision. Feedback after event Seen is undecided.
type Decided struct {
	policy.Decision
	Seen     int64     `json:"seen"`
	Problems []Problem `json:"problems,omitempty"` // errors in the repository's configuration
	On       string    `json:"on,omitempty"`       // commit of a decision before the first attempt
	Output   string    `json:"output,omitempty"`   // end of the output behind the decision
	// Failed means that Pawl itself could not continue.
	Failed bool `json:"failed,omitempty"`
	// Like names a thread that stopped on the same task, and the reason.
	Like string `json:"like,omitempty"`
}

// Refuse returns a decision that stops the run with a hint for users.
func Refuse(rule policy.Rule, hint, reason string) *Decided {
	return &Decided{Decision: policy.Decision{
		Action:  policy.DoStop,
		Rule:    rule,
		Hint:    hint,
		Reasons: policy.Because(rule, reason),
	}}
}

// Problem is an error in the repository's configuration. Line 0 means the whole file.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	SHA     string `json:"sha"` // commit with the file
}

// Started logs the beginning of an attempt before anything happens.
type Started struct {
	N        int             `json:"n"`
	Run      int             `json:"run"`
	Decision policy.Decision `json:"decision"`
	Seen     int64           `json:"seen"`
	Backend  string          `json:"backend"`
	Account  string          `json:"account"`
	Kind     string          `json:"kind"`
	Model    string          `json:"model,omitempty"`
	Effort   string          `json:"effort,omitempty"`
	// Session is the agent's session to continue; Continues gives the reason.
	Session   string `json:"session,omitempty"`
	Continues string `json:"continues,omitempty"`
	// Base is the start commit, Place the node's folder.
	Base    string         `json:"base,omitempty"`
	Place   string         `json:"place,omitempty"`
	Context policy.Context `json:"context,omitzero"` // kind of work, for learning
	// Updates means that the base is merged first; NoAgent means that no agent runs after the merge.
	Updates bool `json:"updates,omitempty"`
	NoAgent bool `json:"no_agent,omitempty"`
	// Proposal suggests a setup at a thread's first attempt.
	Proposal policy.Proposal `json:"proposal,omitzero"`
	Plan     string          `json:"plan,omitempty"`
	Began    time.Time       `json:"-"`             // start time, in this process only
	Repo     config.Repo     `json:"repo,omitzero"` // repository configuration of the attempt
}

// Steered logs that attempt N takes the texts of feedback Seqs, before its agent receives them.
type Steered struct {
	N    int     `json:"n"`
	Seqs []int64 `json:"seqs"`
}

// Unfinished holds work that a stopped server left. A killed attempt ended with its own receipt. A handed-over
// attempt (Times > 0) continues under its number or, with a Receipt, needs only its push.
type Unfinished struct {
	N int `json:"n"`
	// Orderly marks a handover, which does not count as an attempt.
	Orderly bool   `json:"orderly,omitempty"`
	Backend string `json:"backend"`
	Account string `json:"account,omitempty"`
	// Base is the start commit; Commit has the changed files, if any.
	Base   string `json:"base"`
	Commit string `json:"commit,omitempty"`
	// Session is the agent's session at Place, or empty.
	Session string `json:"session,omitempty"`
	Place   string `json:"place"`
	// Times counts consecutive handovers; Used sums the use.
	Times int          `json:"times,omitempty"`
	Used  policy.Spent `json:"used,omitzero"`
	// Receipt is complete if only the push is missing; otherwise nil.
	Receipt *policy.Receipt `json:"receipt,omitempty"`
	At      time.Time       `json:"-"` // end time, in this process only
}

// Changed reports whether the work has files.
func (u *Unfinished) Changed() bool { return u != nil && u.Commit != "" }

// interrupted reports whether a handed-over attempt needs more than its push.
func (u *Unfinished) interrupted() bool { return u.Times > 0 && u.Receipt == nil }

// Authored holds text by an agent, or by Pawl (N is 0), in the form of feedback.Authored. State keeps Pawl's part.
type Authored struct {
	N    int    `json:"n"`
	Runs []byte `json:"runs"`
}

// Act is logged before and after a change on GitHub. Hash identifies the content, so that unchanged content is not
// sent again.
type Act struct {
	Key  string `json:"key"`
	ID   int64  `json:"id,omitempty"`
	URL  string `json:"url,omitempty"`
	Hash string `json:"hash,omitempty"`
	SHA  string `json:"sha,omitempty"`
	Note string `json:"note,omitempty"`
	// Page is the question that the act answers, and its location.
	Page string `json:"page,omitempty"`
	// Going marks a check run in progress. Pawl ends it when the commit is no longer the head.
	Going bool `json:"going,omitempty"`
	// Node is the GraphQL id of a pull request or review thread.
	Node string `json:"node,omitempty"`
	// Title is the pull request's title by Pawl, even if users changed it.
	Title string `json:"title,omitempty"`
}

const Label = "pawl"

// BranchPrefix begins Pawl's branch names; the issue number follows.
const BranchPrefix = "pawl/issue-"

// Keys of acts. An act happens once per key, or with a Hash once per content.
const (
	ActPull       = "pull_request"
	ActUnfinished = "unfinished" // without a SHA the reference is deleted
)

// UnfinishedRef names GitHub's reference to unfinished work.
func UnfinishedRef(t ID) string { return fmt.Sprintf("refs/pawl/unfinished/%d", t.Number) }

func PushKey(branch, sha string) string { return pushKey + branch + ":" + sha }
func CheckKey(name, sha string) string  { return "check:" + name + ":" + sha }
func AnswerKey(seq int64) string        { return fmt.Sprint(commentKey, seq) }
func ReactKey(seq int64) string         { return fmt.Sprintf("reaction:%d", seq) }
func SaidKey(n int) string              { return fmt.Sprint(commentKey, "attempt:", n) }
func RerunKey(run int64) string         { return fmt.Sprint(rerunKey, run) }
func GradeKey(n int) string             { return fmt.Sprintf("grade:%d", n) }

const (
	commentKey = "comment:"
	pushKey    = "push:"
	rerunKey   = "rerun:" // a workflow run; SHA is its commit
	remarkKey  = "remark:%d:%d"
)

const ActStatus = commentKey + "status"

// Keys of acts on a pull request: its description, the end of its draft state, and the review request.
func PullBodyKey(number int) string   { return fmt.Sprintf("pull_body:%d", number) }
func PullReadyKey(number int) string  { return fmt.Sprintf("pull_ready:%d", number) }
func PullReviewKey(number int) string { return fmt.Sprintf("pull_review:%d", number) }

// RemarkKey returns the key of the answer to a review comment; a done remark's act has the thread's Node. resolveKey is
// for resolving the thread, ReviewAgainKey for requesting another review.
func RemarkKey(n int, id int64) string          { return fmt.Sprintf(remarkKey, n, id) }
func resolveKey(n int, id int64) string         { return fmt.Sprintf("resolve:%d:%d", n, id) }
func ReviewAgainKey(n int, login string) string { return fmt.Sprintf("review_again:%d:%s", n, login) }

const marker = "<!-- pawl:"

func Marked(text string) bool { return strings.Contains(text, marker) }

// Hash identifies content, so that unchanged content is not sent again.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
