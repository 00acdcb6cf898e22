package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy/simhash"
)

// Tokens counts what a session or an attempt used. Input includes the cached part, Output the reasoning. The zero value
// is an unknown count, null in JSON: whatever a model answered took tokens.
type Tokens struct {
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached_input"`
	Output      int64 `json:"output"`
	// Estimated is the part of Input and Output that no provider told: four bytes are counted as a token.
	Estimated int64 `json:"estimated,omitempty"`
}

// MarshalJSON writes an unknown count as null, which reads as the zero value.
func (t Tokens) MarshalJSON() ([]byte, error) {
	if t == (Tokens{}) {
		return []byte("null"), nil
	}
	type fields Tokens // without this method
	return json.Marshal(fields(t))
}

func (t Tokens) Plus(more Tokens) Tokens {
	return Tokens{
		Input:       t.Input + more.Input,
		CachedInput: t.CachedInput + more.CachedInput,
		Output:      t.Output + more.Output,
		Estimated:   t.Estimated + more.Estimated,
	}
}

// Minus returns what was used since an earlier count, never below zero.
func (t Tokens) Minus(before Tokens) Tokens {
	return Tokens{
		Input:       max(0, t.Input-before.Input),
		CachedInput: max(0, t.CachedInput-before.CachedInput),
		Output:      max(0, t.Output-before.Output),
		Estimated:   max(0, t.Estimated-before.Estimated),
	}
}

// The sources of a reset time.
const (
	SourceStructured = "structured" // a field of the stream, of the session file or of the provider's answer
	SourceText       = "text"       // read from the message; whole minutes
	SourceNone       = "none"       // unknown
)

// Limit says what a provider refused.
type Limit struct {
	Kind     Ending    `json:"kind"` // usage_limit, rate_limited, overloaded or auth
	Message  string    `json:"message"`
	ResetsAt time.Time `json:"resets_at,omitzero"` // zero where the time is unknown
	// Source says where ResetsAt comes from: structured, text or none.
	Source string `json:"source"`
	// Certainty is certain where a status, a type or a field names the kind, likely where only a wording does.
	Certainty string `json:"certainty,omitempty"`
}

// The certainties of a limit.
const (
	Certain = "certain"
	Likely  = "likely"
)

// Usable is when the account can be expected to work again; zero when unknown. A time that was read from a
// message has whole minutes, so the true one may be up to a minute later.
func (l *Limit) Usable() time.Time {
	if l == nil || l.ResetsAt.IsZero() {
		return time.Time{}
	}
	if l.Source == SourceText {
		return l.ResetsAt.Add(time.Minute)
	}
	return l.ResetsAt
}

// IsLimit reports whether an ending is one of those that a Limit describes: the
// provider refused, and waiting or a person may help.
func (e Ending) IsLimit() bool {
	return slices.Contains([]Ending{UsageLimit, RateLimited, Overloaded, Auth}, e)
}

// Receipt is the record of an attempt.
type Receipt struct {
	N         int        `json:"n"`
	Ending    Ending     `json:"ending,omitempty"`
	Outcome   Outcome    `json:"outcome"`
	Reasons   []string   `json:"reasons,omitempty"`
	Detail    string     `json:"detail,omitempty"`
	Limit     *Limit     `json:"limit,omitempty"`
	Base      string     `json:"base,omitempty"`
	Layer     Layer      `json:"layer,omitzero"`
	Manifest  []Manifest `json:"manifest,omitempty"` // what the agent was told beside its task
	StartTree string     `json:"start_tree,omitempty"`
	EndTree   string     `json:"end_tree,omitempty"`
	Commit    string     `json:"commit,omitempty"`
	Pushed    bool       `json:"pushed,omitempty"`
	// Updated is the commit of the base that was merged into the work; empty where that was not asked for. Conflicts
	// are the files in which the agent left markers of such a merge, which was not pushed then.
	Updated   string   `json:"updated,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	// Leaks are what looks like secrets in what the attempt made, which was not committed then.
	Leaks []Leak `json:"leaks,omitempty"`
	// Merged says that what others pushed meanwhile was merged into the commit.
	Merged   bool          `json:"merged,omitempty"`
	Kept     string        `json:"kept,omitempty"` // the branch of a commit that did not reach the thread's
	LeftOut  []string      `json:"left_out,omitempty"`
	Edits    Edits         `json:"edits"`
	Evidence simhash.Print `json:"evidence"`
	// Frames stand for the first frames of the stack traces in it.
	Frames []simhash.Print `json:"frames,omitempty"`
	Change simhash.Print   `json:"change"`
	// Whole is the fingerprint of all that the thread's branch changes, from the commit
	// that it began at to EndTree.
	Whole simhash.Print `json:"whole,omitempty"`
	// ChangeWords counts the words that Change is made of; 0 is unknown.
	ChangeWords int `json:"change_words,omitempty"`
	// Put and Took are keys of lines that the change put in and took out (ChangedLines).
	Put   []uint32 `json:"put,omitempty"`
	Took  []uint32 `json:"took,omitempty"`
	Added int      `json:"added,omitempty"` // lines, by the same change
	Final string   `json:"final,omitempty"`
	// Declined is why the agent said that the task cannot be done. It counts where Outcome is Declined.
	Declined string `json:"declined,omitempty"`
	// Question, Title, NotDone and Remarks are what the agent's last message says by the form of Answer.
	Question string         `json:"question,omitempty"`
	Title    string         `json:"title,omitempty"`
	NotDone  []string       `json:"not_done,omitempty"`
	Remarks  []RemarkAnswer `json:"remarks,omitempty"`
	// Open are the remarks on lines that the attempt was told of and whose lines were then as they are in the remark.
	Open []int64 `json:"open_remarks,omitempty"`
	// Instructs are the files for agents (AGENTS.md and the like) that the work changes so far, deletions included.
	Instructs []string `json:"instructs,omitempty"`
	// Folders are what the work changes so far, from the commit that its branch began at.
	Folders []Folder   `json:"folders,omitempty"`
	Verify  []Verified `json:"verify,omitempty"`
	Tests   []string   `json:"failing_tests,omitempty"`
	// TestEvidence is what the tests say of work that passed; nil where none was asked.
	TestEvidence *TestEvidence `json:"test_evidence,omitempty"`
	Tokens       Tokens        `json:"tokens"` // null where nothing told them
	CostUSD      *float64      `json:"cost_usd,omitempty"`
	Session      string        `json:"session,omitempty"`
	ToolCalls    int           `json:"tool_calls,omitempty"`
	Turns        int           `json:"turns,omitempty"`
	// Context is the largest request, in tokens; an estimate where the model was
	// not reached through the gateway, which Gateway tells.
	Context int64  `json:"context,omitempty"`
	Gateway bool   `json:"gateway,omitempty"`
	Silent  string `json:"silent,omitempty"` // how long the agent had shown no sign of life when it was ended for that
	// Budget says how the attempt used up its own budget, which ended it; empty when it did not.
	Budget string `json:"budget,omitempty"`
	// Paused says that a budget of a day ended the attempt, the thread's or one above it:
	// it is gone on with when there is room.
	Paused bool `json:"paused,omitempty"`
	// Rambled says that the gateway ended it for prose without a call of a tool, which another effort may change.
	Rambled    bool       `json:"rambled,omitempty"`
	Trajectory Trajectory `json:"trajectory,omitzero"`
	Judge      *Judged    `json:"judge,omitempty"` // what the operator's judge said; nil where it was not asked
	Rungs      []Rung     `json:"rungs,omitempty"` // the recoveries that fired in this attempt
	Mentions   int        `json:"mentions,omitempty"`
	// RefusedHosts are what the agent asked for in vain, as HOST:PORT, with the reason in parentheses where that is
	// not the list, and what verify commands did, followed by the key of their list (see RefusedIn); Sent and Received count the bytes of what it reached beside its model.
	RefusedHosts []string `json:"refused_hosts,omitempty"`
	Sent         int64    `json:"sent,omitempty"`
	Received     int64    `json:"received,omitempty"`
	Exit         int      `json:"exit"`
	AgentMS      int64    `json:"agent_ms"`
	Transcript   string   `json:"transcript,omitempty"`
}

// Layer is what an attempt begins with beside the repository's files: what its setup left.
type Layer struct {
	Key    string `json:"key"`
	Commit string `json:"commit"` // of the default branch, that it was built from
}

// Folder is what a change does to the files of one folder; Path is "." for the root.
type Folder struct {
	Path    string `json:"path"`
	Files   int    `json:"files"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
}

// Folders counts what a diff in git's format changes, by the folders of its files in their order.
func Folders(diff string) (all []Folder) {
	at := map[string]int{}
	var now *Folder
	body := false
	for line := range strings.Lines(diff) {
		names, ok := strings.CutPrefix(line, "diff --git ")
		if ok {
			_, file, _ := strings.Cut(strings.TrimSpace(names), " b/")
			dir := path.Dir(strings.Trim(file, `"`))
			i, known := at[dir]
			if !known {
				i = len(all)
				at[dir] = i
				all = append(all, Folder{Path: dir})
			}
			all[i].Files++
			now = &all[i]
			body = false
			continue
		}
		if now == nil {
			continue
		}
		switch {
		case strings.HasPrefix(line, "@@"):
			body = true
		case !body:
			// Lines before the first hunk name files.
		case strings.HasPrefix(line, "+"):
			now.Added++
		case strings.HasPrefix(line, "-"):
			now.Removed++
		}
	}
	return all
}

// Manifest is how much of one kind of context an agent was told.
type Manifest struct {
	What string `json:"what"` // in the plural: comments
	Kept int    `json:"kept"`
	Of   int    `json:"of"`
	Cut  int    `json:"cut,omitempty"` // lines of those that were kept
	// Notes say what else was left out, and why.
	Notes []string `json:"notes,omitempty"`
}

func (m Manifest) String() string {
	s := fmt.Sprintf("%d of %d %s", m.Kept, m.Of, m.What)
	if m.Cut > 0 {
		s += ", " + Plural(m.Cut, "line") + " cut"
	}
	for _, n := range m.Notes {
		s += ", " + n
	}
	return s
}

// Heard is how much the agent was told beside its task, in words; empty for nothing.
func (r Receipt) Heard() string {
	return strings.Join(each(r.Manifest, Manifest.String), "; ")
}

// Proposal is the setup that is usual for a repository which has none, and the file that tells.
type Proposal struct {
	Command string `json:"command"`
	File    string `json:"file"`
}

// Told takes what the attempt's failure is known again by from its text.
func (r *Receipt) Told(text string) {
	r.Evidence, r.Frames = simhash.Failure(text), simhash.Frames(text)
}

// Progress reports whether the attempt moved the work forward: the tree at its end differs from the tree at
// its start, whoever committed, or the base was merged. A tree that is unknown is no progress.
func (r Receipt) Progress() bool {
	if r.Updated != "" {
		return true
	}
	if r.StartTree == "" || r.EndTree == "" {
		return false
	}
	return r.StartTree != r.EndTree
}

// Untold reports whether files changed although the agent's output told no edit, as that of a command that prints
// plain text, or of a shell that names no file. Such an attempt may have gone in circles unseen.
func (r Receipt) Untold() bool {
	if r.Edits.Operations > 0 || r.Updated != "" {
		return false
	}
	return r.Progress()
}

// Says is the agent's last message without what is shown of it elsewhere.
func (r Receipt) Says() string {
	first, rest, _ := strings.Cut(r.Final, "\n")
	if r.Outcome == Declined && Declining(first) != "" {
		return strings.TrimSpace(rest)
	}
	return r.Final
}

// cut reports whether something other than a failure of the agent ended its work: its provider, a
// daily budget, or a silence.
func (r Receipt) cut() bool {
	switch r.Outcome {
	case WasUsageLimit, FellSilent:
		return true
	case OutOfBudget:
		return r.Paused
	default:
		return r.Outcome.Passes()
	}
}

// blameless reports whether the attempt did not come to its own end, which is no failure of the agent.
func (r Receipt) blameless() bool { return r.Outcome == Interrupted || r.cut() }

// Failing reports whether a verify command failed; the outcome may name something worse.
func (r Receipt) Failing() bool {
	return slices.ContainsFunc(r.Verify, func(v Verified) bool { return !v.Passed })
}

// Deciding is the command that a user wants to see: the first that failed, else the first
// that leaves a doubt, else the last. It is nil where none was run.
func (r Receipt) Deciding() *Verified {
	at := len(r.Verify) - 1
	for i, v := range slices.Backward(r.Verify) {
		switch {
		case !v.Passed:
			return &r.Verify[i] // the commands after it did not run
		case v.doubtful():
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	return &r.Verify[at]
}

// Known are the failing tests that failed in the same way before Pawl began.
func (r Receipt) Known() []string { return r.tests(func(v Verified) []string { return v.Known }) }

// Flaky are the tests that failed, and passed when they were run again on the same commit.
func (r Receipt) Flaky() []string { return r.tests(func(v Verified) []string { return v.Flaky }) }

// Fixed are the tests that failed before Pawl began, and no longer do.
func (r Receipt) Fixed() []string { return r.tests(func(v Verified) []string { return v.Fixed }) }

func (r Receipt) tests(of func(Verified) []string) (all []string) {
	for _, v := range r.Verify {
		all = append(all, of(v)...)
	}
	return all
}

// Judged is the answer of a judge: a grade, or why there is none.
type Judged struct {
	Grade  float64 `json:"grade"`
	Detail string  `json:"detail,omitempty"`
	Error  string  `json:"error,omitempty"`
	Cannot string  `json:"cannot,omitempty"` // why it will not grade what it was shown, which is no failure
	// Tokens and CostUSD are what the built-in judge used; nil where the cost is not known.
	Tokens  Tokens   `json:"tokens,omitzero"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// Trajectory counts how an agent worked, for its grade.
type Trajectory struct {
	TestRuns int   `json:"test_runs"`
	Errors   int   `json:"errors"`  // calls that failed
	Retries  int   `json:"retries"` // of requests to the model
	Bytes    int64 `json:"bytes"`   // the size of what the agent printed
	// FilesAfterTests are the files that the agent edited after its last test run; 0 also where it ran none.
	FilesAfterTests int `json:"files_after_tests,omitempty"`
}
