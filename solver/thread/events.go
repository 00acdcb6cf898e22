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

// The kinds of events. The first five come from webhooks and users, the others from the solver.
const (
	KindFeedback       Kind = "feedback"        // Feedback, accepted
	KindIgnored        Kind = "ignored"         // Feedback, with the reason why it does not count
	KindControl        Kind = "control"         // Feedback: a command that Controls
	KindQuestion       Kind = "question"        // Feedback that a comment answers: status, why, and unknown commands
	KindThread         Kind = "thread"          // Change
	KindWithdrawn      Kind = "withdrawn"       // Withdrawn
	KindDecision       Kind = "decision"        // Decided
	KindAttemptStarted Kind = "attempt_started" // Started
	KindAuthored       Kind = "authored"        // Authored
	KindPublished      Kind = "published"       // Authored, by Pawl itself
	KindAttemptEnded   Kind = "attempt_ended"   // policy.Receipt
	KindUnfinished     Kind = "unfinished"      // Unfinished
	KindChecked        Kind = "checked"         // Checked
	KindActStarted     Kind = "act_started"     // Act
	KindActDone        Kind = "act_done"        // Act
	KindOperated       Kind = "operated"        // Operated, in a repository's or the server's log
)

// Details are a webhook's data on its thread. Empty fields are unknown; later details replace only what they know.
type Details struct {
	Installation  int64  `json:"installation,omitempty"`
	RepoID        int64  `json:"repo_id,omitempty"`
	Title         string `json:"title,omitempty"`
	Body          string `json:"body,omitempty"`
	Author        string `json:"author,omitempty"`
	Labels        string `json:"labels,omitempty"` // label names, one a line
	Pull          bool   `json:"pull,omitempty"`
	HeadRef       string `json:"head_ref,omitempty"`
	HeadSHA       string `json:"head_sha,omitempty"`
	HeadRepoID    int64  `json:"head_repo_id,omitempty"`
	BaseRef       string `json:"base_ref,omitempty"`
	DefaultBranch string `json:"default_branch,omitempty"`
	URL           string `json:"url,omitempty"`
}

// Target is the object of a reaction: issue, issue_comment, review_comment or review, and its id (for an issue its
// number). A review also has its Node, since the REST API has no reactions to it. The zero value takes no reaction.
type Target struct {
	Kind string `json:"kind,omitempty"`
	ID   int64  `json:"id,omitempty"`
	Node string `json:"node,omitempty"`
}

// Bare is the target without its node, as in results of GraphQL.
func (t Target) Bare() Target { return Target{Kind: t.Kind, ID: t.ID} }

// Feedback is a remark with its judgement. Text is as in the payload.
type Feedback struct {
	Source policy.Source  `json:"source"`
	By     feedback.Actor `json:"by"`
	Reason string         `json:"reason"`
	// Own says that Pawl itself acted, which is not shown.
	Own     bool   `json:"own,omitempty"`
	Command string `json:"command,omitempty"`
	Mention bool   `json:"mention,omitempty"`
	// Pin is the backend that a solve command names, as with a label pawl:BACKEND.
	Pin string `json:"pin,omitempty"`
	// Severity of a reviewer's remark (feedback.Severity); else 0.
	Severity int    `json:"severity,omitempty"`
	Text     string `json:"text,omitempty"`
	Raw      string `json:"raw,omitempty"`
	// Description is the content of an edited description, Baseline the content before.
	Description string `json:"description,omitempty"`
	Baseline    string `json:"baseline,omitempty"`
	Target      Target `json:"target,omitzero"`
	// First marks an original comment, not an edit.
	First bool `json:"first,omitempty"`
	// Check and Conclusion describe another App's finished check run.
	Check      string `json:"check,omitempty"`
	Conclusion string `json:"conclusion,omitempty"`
	Outside    string `json:"outside,omitempty"` // why the work did not cause its failure; empty if it may have
	// Generation counts the pieces of Pawl's own work that led here without a user's comment. Cause names the last
	// one.
	Generation int       `json:"generation,omitempty"`
	Cause      string    `json:"cause,omitempty"`
	Number     int       `json:"number,omitempty"` // its issue or pull request
	URL        string    `json:"url,omitempty"`
	SHA        string    `json:"sha,omitempty"` // the commit it is about
	MadeAt     time.Time `json:"made_at,omitzero"`
	Delivery   string    `json:"delivery,omitempty"`
	Snapshot   *Details  `json:"snapshot,omitempty"`

	// Backend is the choice of a "use" command. Word is the subject of a question, such as a backend or an unknown
	// command.
	Backend string `json:"backend,omitempty"`
	Word    string `json:"word,omitempty"`
	// Private says that the question's repository is private.
	Private bool `json:"private,omitempty"`

	Seq int64     `json:"-"`
	At  time.Time `json:"-"`
}

// Made is when it was made, if GitHub said so, else when it arrived.
func (f Feedback) Made() time.Time {
	if f.MadeAt.IsZero() {
		return f.At
	}
	return f.MadeAt
}

type Change struct {
	// What is thumbs_up, thumbs_down, closed, reopened, merged, pull_closed, pull_merged, pull_reopened, head_moved, branch_deleted, uninstalled,
	// installed, renamed, repository_deleted, edited, approved, changes_requested, reverted or base_moved.
	What   string    `json:"what"`
	By     string    `json:"by,omitempty"`
	Detail string    `json:"detail,omitempty"`
	MadeAt time.Time `json:"made_at,omitzero"` // when something was closed, if GitHub said so
	// Number and URL are a pull request of the thread.
	Number   int      `json:"number,omitempty"`
	URL      string   `json:"url,omitempty"`
	Delivery string   `json:"delivery,omitempty"`
	Snapshot *Details `json:"snapshot,omitempty"`
}

// Withdrawn takes back feedback that does not count after all.
type Withdrawn struct {
	Seqs   []int64 `json:"seqs"`
	Reason string  `json:"reason"`
}

// Decided is a logged decision. Seen is the last event that it took into account; later feedback is still fresh.
type Decided struct {
	policy.Decision
	Seen     int64     `json:"seen"`
	Problems []Problem `json:"problems,omitempty"` // errors in the repository's configuration
	On       string    `json:"on,omitempty"`       // the commit of a decision before the first attempt
	Output   string    `json:"output,omitempty"`   // the end of the command's output behind the decision
	// Failed says that Pawl itself could not continue.
	Failed bool `json:"failed,omitempty"`
	// Like names another thread that stopped on the same task, and why.
	Like string `json:"like,omitempty"`
}

// Refuse is a decision to stop before anything runs, with a hint for users.
func Refuse(rule policy.Rule, hint, reason string) *Decided {
	return &Decided{Decision: policy.Decision{
		Action:  policy.DoStop,
		Rule:    rule,
		Hint:    hint,
		Reasons: policy.Because(rule, reason),
	}}
}

// Problem is an error in the repository's configuration at a line, from 1; 0 means the whole file.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	SHA     string `json:"sha"` // the commit with the file
}

// Started is the beginning of an attempt, logged before anything is done.
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
	// Session is the agent's session to continue; Continues says why it is or is not continued.
	Session   string `json:"session,omitempty"`
	Continues string `json:"continues,omitempty"`
	// Base is the commit that it starts from, Place its folder.
	Base    string         `json:"base,omitempty"`
	Place   string         `json:"place,omitempty"`
	Context policy.Context `json:"context,omitzero"` // the kind of work, for learning
	// Updates says that the base is merged first, NoAgent that no agent is asked after that.
	Updates bool `json:"updates,omitempty"`
	NoAgent bool `json:"no_agent,omitempty"`
	// Proposal is for a thread's first attempt in a repository without a setup.
	Proposal policy.Proposal `json:"proposal,omitzero"`
	Plan     string          `json:"plan,omitempty"` // to carry out
	Began    time.Time       `json:"-"`              // start time, for this process only; the event has it, too
	Repo     config.Repo     `json:"repo,omitzero"`  // the repository's configuration of the attempt
}

// Unfinished is what an attempt left when its server ended, for the next one. A killed attempt has ended with its
// own receipt. One that was handed over (Times > 0) continues under its number or, if it has its Receipt here, only
// lacks its push.
type Unfinished struct {
	N int `json:"n"`
	// Orderly says that the server handed it over: it counts as not begun.
	Orderly bool   `json:"orderly,omitempty"`
	Backend string `json:"backend"`
	// Base is its start commit. Commit has its files; empty if it had changed none.
	Base   string `json:"base"`
	Commit string `json:"commit,omitempty"`
	// Session is the agent's session, which can be continued at Place; empty for none.
	Session string `json:"session,omitempty"`
	Place   string `json:"place"`
	// Times is how often in a row it was handed over, Used its use so far.
	Times int          `json:"times,omitempty"`
	Used  policy.Spent `json:"used,omitzero"`
	// Receipt is complete if only the push is missing, which is done before anything else; else nil.
	Receipt *policy.Receipt `json:"receipt,omitempty"`
	At      time.Time       `json:"-"` // when it ended, for this process only; the event has it, too
}

// Changed reports whether there are files to continue from.
func (u *Unfinished) Changed() bool { return u != nil && u.Commit != "" }

// interrupted reports whether the attempt was handed over and lacks more than its push.
func (u *Unfinished) interrupted() bool { return u.Times > 0 && u.Receipt == nil }

// Authored is part of what an attempt's agent wrote, or Pawl itself (N is 0), in the form of feedback.Authored.
// State keeps Pawl's part.
type Authored struct {
	N    int    `json:"n"`
	Runs []byte `json:"runs"`
}

// Act is a change of the outside world, logged before and after. ID and URL come from GitHub; Hash is the content's
// hash, so that an unchanged rendering is not sent again.
type Act struct {
	Key  string `json:"key"`
	ID   int64  `json:"id,omitempty"`
	URL  string `json:"url,omitempty"`
	Hash string `json:"hash,omitempty"`
	SHA  string `json:"sha,omitempty"`
	Note string `json:"note,omitempty"`
	// Page is the question that the act answers, and where.
	Page string `json:"page,omitempty"`
	// Going says that a check run shows work in progress. It must end when the commit is no longer the head.
	Going bool `json:"going,omitempty"`
	// Node is the GraphQL id of a pull request or a review thread.
	Node string `json:"node,omitempty"`
	// Title is the title that Pawl gave a pull request, or would have given if users had not changed it.
	Title string `json:"title,omitempty"`
}

const Label = "pawl"

// BranchPrefix begins the name of Pawl's branch for an issue; the number follows.
const BranchPrefix = "pawl/issue-"

// Keys of acts. A key happens once.
const (
	ActPull       = "pull_request"
	ActUnfinished = "unfinished" // done without SHA: the reference is deleted
)

// UnfinishedRef is GitHub's reference to a thread's unfinished commit.
func UnfinishedRef(t ID) string { return fmt.Sprintf("refs/pawl/unfinished/%d", t.Number) }

func PushKey(branch, sha string) string { return "push:" + branch + ":" + sha }
func CheckKey(name, sha string) string  { return "check:" + name + ":" + sha }
func AnswerKey(seq int64) string        { return fmt.Sprint(commentKey, seq) }
func ReactKey(seq int64) string         { return fmt.Sprintf("reaction:%d", seq) }
func SaidKey(n int) string              { return fmt.Sprint(commentKey, "attempt:", n) }
func RerunKey(run int64) string         { return fmt.Sprint(rerunKey, run) }
func GradeKey(n int) string             { return fmt.Sprintf("grade:%d", n) }

const (
	commentKey = "comment:"
	rerunKey   = "rerun:" // of a workflow run; SHA is its commit
	remarkKey  = "remark:%d:%d"
)

const ActStatus = commentKey + "status"

// The keys of acts on Pawl's pull request: its description, the end of draft, and the review request.
func PullBodyKey(number int) string   { return fmt.Sprintf("pull_body:%d", number) }
func PullReadyKey(number int) string  { return fmt.Sprintf("pull_ready:%d", number) }
func PullReviewKey(number int) string { return fmt.Sprintf("pull_review:%d", number) }

// RemarkKey is the key of an attempt's answer to a review comment; the act has the thread's Node if the remark was
// done. resolveKey is the key of resolving the thread, ReviewAgainKey of requesting another review.
func RemarkKey(n int, id int64) string          { return fmt.Sprintf(remarkKey, n, id) }
func resolveKey(n int, id int64) string         { return fmt.Sprintf("resolve:%d:%d", n, id) }
func ReviewAgainKey(n int, login string) string { return fmt.Sprintf("review_again:%d:%s", n, login) }

// marker begins Pawl's HTML comments.
const marker = "<!-- pawl:"

func Marked(text string) bool { return strings.Contains(text, marker) }

// Hash identifies a rendering, so that an unchanged one is not sent again.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
