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

// The kinds of events. The first five come from webhooks and people, the others from the solver.
const (
	KindFeedback       Kind = "feedback"        // Feedback, accepted
	KindIgnored        Kind = "ignored"         // Feedback, with the reason why it is none
	KindControl        Kind = "control"         // Feedback: a command that Controls
	KindQuestion       Kind = "question"        // Feedback: to be answered in a comment, as status, why and a word that is no command are
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
	KindOperated       Kind = "operated"        // Operated, in the log of a repository or the server
)

// Details are what a webhook said of its thread. Empty fields are unknown, not
// empty at GitHub; later details replace only what they know.
type Details struct {
	Installation  int64  `json:"installation,omitempty"`
	RepoID        int64  `json:"repo_id,omitempty"`
	Title         string `json:"title,omitempty"`
	Body          string `json:"body,omitempty"`
	Author        string `json:"author,omitempty"`
	Labels        string `json:"labels,omitempty"` // the names of the thread's labels, one a line
	Pull          bool   `json:"pull,omitempty"`
	HeadRef       string `json:"head_ref,omitempty"`
	HeadSHA       string `json:"head_sha,omitempty"`
	HeadRepoID    int64  `json:"head_repo_id,omitempty"`
	BaseRef       string `json:"base_ref,omitempty"`
	DefaultBranch string `json:"default_branch,omitempty"`
	URL           string `json:"url,omitempty"`
}

// Target is what a reaction answers: issue, issue_comment, review_comment or review, and its id (for an issue its
// number). A review has its Node as well, since the REST API takes no reactions to it. The zero value cannot be reacted to.
type Target struct {
	Kind string `json:"kind,omitempty"`
	ID   int64  `json:"id,omitempty"`
	Node string `json:"node,omitempty"`
}

// Bare is the target without its node, as what is read by GraphQL names it.
func (t Target) Bare() Target { return Target{Kind: t.Kind, ID: t.ID} }

// Feedback is a remark with what was decided about it. Text is frozen as it was in the payload.
type Feedback struct {
	Source policy.Source  `json:"source"`
	By     feedback.Actor `json:"by"`
	Reason string         `json:"reason"`
	// Own says that Pawl did it itself, which nobody needs to be told.
	Own     bool   `json:"own,omitempty"`
	Command string `json:"command,omitempty"`
	Mention bool   `json:"mention,omitempty"`
	// Pin is the backend that an order to solve names, as a label pawl:BACKEND does.
	Pin string `json:"pin,omitempty"`
	// Severity is that of a reviewer's remark (feedback.Severity); 0 for everything else.
	Severity int    `json:"severity,omitempty"`
	Text     string `json:"text,omitempty"`
	Raw      string `json:"raw,omitempty"`
	// Description is the content of an edited description, Baseline that before the edit.
	Description string `json:"description,omitempty"`
	Baseline    string `json:"baseline,omitempty"`
	Target      Target `json:"target,omitzero"`
	// First says that it is a comment as it was written, not an edit of it.
	First bool `json:"first,omitempty"`
	// Check and Conclusion are those of a finished check run of others.
	Check      string `json:"check,omitempty"`
	Conclusion string `json:"conclusion,omitempty"`
	Outside    string `json:"outside,omitempty"` // why its failure is not the work's; empty when it may be
	// Generation counts the pieces of Pawl's own work that led here without a person
	// who asked in a comment, and Cause says what the last of them was.
	Generation int       `json:"generation,omitempty"`
	Cause      string    `json:"cause,omitempty"`
	Number     int       `json:"number,omitempty"` // the issue or pull request where it was made
	URL        string    `json:"url,omitempty"`
	SHA        string    `json:"sha,omitempty"` // the commit that it is about
	MadeAt     time.Time `json:"made_at,omitzero"`
	Delivery   string    `json:"delivery,omitempty"`
	Snapshot   *Details  `json:"snapshot,omitempty"`

	// Backend is chosen by the control "use". Word is what a question asks about, such as a backend or an unknown command.
	Backend string `json:"backend,omitempty"`
	Word    string `json:"word,omitempty"`
	// Private is set for questions in a repository that GitHub reports as private.
	Private bool `json:"private,omitempty"`

	Seq int64     `json:"-"` // of its event
	At  time.Time `json:"-"`
}

// Made is when it was made, as far as GitHub told, else when it came.
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
	MadeAt time.Time `json:"made_at,omitzero"` // when something was closed, as far as GitHub told
	// Number and URL are those of a pull request of the thread.
	Number   int      `json:"number,omitempty"`
	URL      string   `json:"url,omitempty"`
	Delivery string   `json:"delivery,omitempty"`
	Snapshot *Details `json:"snapshot,omitempty"`
}

// Withdrawn takes back feedback that turned out to be none.
type Withdrawn struct {
	Seqs   []int64 `json:"seqs"`
	Reason string  `json:"reason"`
}

// Decided is a decision as it was taken. Seen is the last event that it took
// into account; feedback after that is still fresh.
type Decided struct {
	policy.Decision
	Seen     int64     `json:"seen"`
	Problems []Problem `json:"problems,omitempty"` // errors in the repository's configuration
	On       string    `json:"on,omitempty"`       // the commit that a decision before the first attempt is about
	Output   string    `json:"output,omitempty"`   // the end of what a command printed that the decision is about
	// Failed says that Pawl itself could not go on.
	Failed bool `json:"failed,omitempty"`
	// Like names, of a stop, another thread that stopped on the same task, and why.
	Like string `json:"like,omitempty"`
}

// Refuse is a decision to stop before anything runs, with what a person can do.
func Refuse(rule policy.Rule, hint, reason string) *Decided {
	return &Decided{Decision: policy.Decision{
		Action:  policy.DoStop,
		Rule:    rule,
		Hint:    hint,
		Reasons: policy.Because(rule, reason),
	}}
}

// Problem is an error in the repository's configuration at a line, which counts from
// 1; 0 means the whole file.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	SHA     string `json:"sha"` // the commit that was read
}

// Started is the beginning of an attempt, written before anything is done.
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
	// Session is the agent's session that is continued; Continues says why it is or is not.
	Session   string `json:"session,omitempty"`
	Continues string `json:"continues,omitempty"`
	// Base is the commit that it starts from, Place the folder that it works in.
	Base    string         `json:"base,omitempty"`
	Place   string         `json:"place,omitempty"`
	Context policy.Context `json:"context,omitzero"` // the kind of work that it is, for learning
	// Updates says that the base is merged into the files first, NoAgent that this is all and no agent is asked.
	Updates bool `json:"updates,omitempty"`
	NoAgent bool `json:"no_agent,omitempty"`
	// Proposal is for the first attempt of a thread whose repository has no setup.
	Proposal policy.Proposal `json:"proposal,omitzero"`
	Plan     string          `json:"plan,omitempty"` // that it is to work by
	Began    time.Time       `json:"-"`              // when the attempt began, for this process only; the event has it, too
	Repo     config.Repo     `json:"repo,omitzero"`  // the repository's configuration that the attempt runs under
}

// Unfinished is what an attempt left whose server was ended, for the next one to go on from. One that was killed has
// ended with its own receipt; one that was handed over (Times > 0) goes on under its number, or, where it has its
// Receipt here, lacks its push alone.
type Unfinished struct {
	N int `json:"n"`
	// Orderly says that the server handed it over: it is as if it had not begun.
	Orderly bool   `json:"orderly,omitempty"`
	Backend string `json:"backend"`
	// Base is the commit that it started from. Commit has its files; empty where it had changed none.
	Base   string `json:"base"`
	Commit string `json:"commit,omitempty"`
	// Session is the agent's, which can be continued at Place; empty for none.
	Session string `json:"session,omitempty"`
	Place   string `json:"place"`
	// Times is how often in a row it was handed over, and Used what it has used so far.
	Times int          `json:"times,omitempty"`
	Used  policy.Spent `json:"used,omitzero"`
	// Receipt is that of an attempt of which only the push was missing, which is made
	// before anything else; nil for others.
	Receipt *policy.Receipt `json:"receipt,omitempty"`
	At      time.Time       `json:"-"` // when it was left, for this process only; the event has it, too
}

// Changed reports whether there are files to go on from.
func (u *Unfinished) Changed() bool { return u != nil && u.Commit != "" }

// interrupted reports whether the attempt was handed over and lacks more than its push.
func (u *Unfinished) interrupted() bool { return u.Times > 0 && u.Receipt == nil }

// Authored is a part of what the agent of an attempt wrote, or Pawl itself (N is 0), as
// feedback.Authored has it. State keeps what is Pawl's.
type Authored struct {
	N    int    `json:"n"`
	Runs []byte `json:"runs"`
}

// Act is something done to the outside world, logged before and after. ID and URL are what GitHub gave; Hash
// is that of the content, so that an unchanged rendering is not sent again.
type Act struct {
	Key  string `json:"key"`
	ID   int64  `json:"id,omitempty"`
	URL  string `json:"url,omitempty"`
	Hash string `json:"hash,omitempty"`
	SHA  string `json:"sha,omitempty"`
	Note string `json:"note,omitempty"`
	// Page says of an answer to which question it is, and where.
	Page string `json:"page,omitempty"`
	// Going says that a check run shows something that goes on. It must not be
	// left so on a commit that is no longer the head.
	Going bool `json:"going,omitempty"`
	// Node is the id of a pull request or of a thread of remarks in GraphQL.
	Node string `json:"node,omitempty"`
	// Title is the one that Pawl gave to a pull request, or would have given where people changed it.
	Title string `json:"title,omitempty"`
}

// Label on an issue means solve.
const Label = "pawl"

// BranchPrefix begins the name of the branch that Pawl works on for an issue; its number follows.
const BranchPrefix = "pawl/issue-"

// Keys of acts. A key happens once.
const (
	ActPull       = "pull_request"
	ActUnfinished = "unfinished" // done without SHA: the reference is gone
)

// UnfinishedRef is where GitHub keeps the commit of a thread's Unfinished.
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

// The keys of what is done with a pull request that Pawl opened: its description is kept current, it stops being a
// draft, and a review is asked for.
func PullBodyKey(number int) string   { return fmt.Sprintf("pull_body:%d", number) }
func PullReadyKey(number int) string  { return fmt.Sprintf("pull_ready:%d", number) }
func PullReviewKey(number int) string { return fmt.Sprintf("pull_review:%d", number) }

// RemarkKey is the key of an attempt's answer to a remark on a line, whose act has the thread's Node where the remark was
// done; resolveKey that of resolving the thread, and ReviewAgainKey that of asking somebody for another review.
func RemarkKey(n int, id int64) string          { return fmt.Sprintf(remarkKey, n, id) }
func resolveKey(n int, id int64) string         { return fmt.Sprintf("resolve:%d:%d", n, id) }
func ReviewAgainKey(n int, login string) string { return fmt.Sprintf("review_again:%d:%s", n, login) }

// marker begins every HTML comment that Pawl leaves in its texts.
const marker = "<!-- pawl:"

func Marked(text string) bool { return strings.Contains(text, marker) }

// Hash names a rendering, so that an unchanged one is not sent again.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
