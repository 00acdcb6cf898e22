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

// Tokens counts the use of a session or an attempt. Input includes the cached part, Output the reasoning. The zero
// value is unknown, null in JSON: every answer of a model takes tokens.
type Tokens struct {
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached_input"`
	Output      int64 `json:"output"`
	// Estimated is the part of Input and Output that no provider reported, at four bytes per token.
	Estimated int64 `json:"estimated,omitempty"`
}

// MarshalJSON writes an unknown count as null, which unmarshals to the zero value.
func (t Tokens) MarshalJSON() ([]byte, error) {
	if t == (Tokens{}) {
		return []byte("null"), nil
	}
	type fields Tokens // to avoid recursion
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

// Minus returns the use since an earlier count, never below zero.
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
	SourceStructured = "structured" // a field of the stream, the session file or the provider's answer
	SourceText       = "text"       // parsed from the message; whole minutes
	SourceNone       = "none"       // unknown
)

// Limit says what a provider refused.
type Limit struct {
	Kind     Ending    `json:"kind"` // usage_limit, rate_limited, overloaded or auth
	Message  string    `json:"message"`
	ResetsAt time.Time `json:"resets_at,omitzero"` // zero if unknown
	// Source is where ResetsAt comes from: structured, text or none.
	Source string `json:"source"`
	// Certainty is certain if a status, a type or a field names the kind, and likely if only the wording does.
	Certainty string `json:"certainty,omitempty"`
}

// The certainties of a limit.
const (
	Certain = "certain"
	Likely  = "likely"
)

// Usable is when the account should work again; zero if unknown. A time from a message has whole minutes, so the
// true one may be up to a minute later.
func (l *Limit) Usable() time.Time {
	if l == nil || l.ResetsAt.IsZero() {
		return time.Time{}
	}
	if l.Source == SourceText {
		return l.ResetsAt.Add(time.Minute)
	}
	return l.ResetsAt
}

// Words is the ending in a sentence.
func (e Ending) Words() string { return Outcome(e).Words() }

// IsLimit reports whether the ending is a provider's refusal, which a Limit describes.
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
	Manifest  []Manifest `json:"manifest,omitempty"` // the context that the agent got with its task
	StartTree string     `json:"start_tree,omitempty"`
	EndTree   string     `json:"end_tree,omitempty"`
	Commit    string     `json:"commit,omitempty"`
	Pushed    bool       `json:"pushed,omitempty"`
	// Updated is the base commit that was merged into the work; empty if no update was asked for. Conflicts are the
	// files in which the agent left conflict markers; such a merge is not pushed.
	Updated   string   `json:"updated,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	// Leaks look like secrets. Work that has some is not committed.
	Leaks []Leak `json:"leaks,omitempty"`
	// Merged says that others' pushes were merged into the commit.
	Merged  bool     `json:"merged,omitempty"`
	Kept    string   `json:"kept,omitempty"` // the branch of a commit that was not pushed to the thread's branch
	LeftOut []string `json:"left_out,omitempty"`
	// Inherited are the commits that Pawl's branch held before the thread's first push.
	Inherited []string      `json:"inherited,omitempty"`
	Edits     Edits         `json:"edits"`
	Evidence  simhash.Print `json:"evidence"`
	// Frames are the fingerprints of the first frames of its stack traces.
	Frames []simhash.Print `json:"frames,omitempty"`
	Change simhash.Print   `json:"change"`
	// Whole is the fingerprint of the thread branch's whole change, from its first commit to EndTree.
	Whole simhash.Print `json:"whole,omitempty"`
	// ChangeWords counts the words behind Change; 0 is unknown.
	ChangeWords int `json:"change_words,omitempty"`
	// Put and Took are keys of added and removed lines (ChangedLines).
	Put   []uint32 `json:"put,omitempty"`
	Took  []uint32 `json:"took,omitempty"`
	Added int      `json:"added,omitempty"` // lines of the same change
	Final string   `json:"final,omitempty"`
	// Declined is why the agent said that the task cannot be done. It counts if Outcome is Declined.
	Declined string `json:"declined,omitempty"`
	// Question, Title, NotDone and Remarks come from the agent's last message (Answer).
	Question string   `json:"question,omitempty"`
	Title    string   `json:"title,omitempty"`
	NotDone  []string `json:"not_done,omitempty"`
	// Conventional says that titles in the repository follow Conventional Commits.
	Conventional bool           `json:"conventional,omitempty"`
	Remarks      []RemarkAnswer `json:"remarks,omitempty"`
	// Open are the review comments that the attempt got and whose lines had not changed by then.
	Open []int64 `json:"open_remarks,omitempty"`
	// Instructs are the files for agents (AGENTS.md and the like) that the work changes or deletes.
	Instructs []string `json:"instructs,omitempty"`
	// Folders are the changes of the work, from its branch's first commit.
	Folders []Folder   `json:"folders,omitempty"`
	Verify  []Verified `json:"verify,omitempty"`
	Tests   []string   `json:"failing_tests,omitempty"`
	// TestEvidence is nil if it was not needed.
	TestEvidence *TestEvidence `json:"test_evidence,omitempty"`
	Tokens       Tokens        `json:"tokens"` // null if unknown
	CostUSD      *float64      `json:"cost_usd,omitempty"`
	Session      string        `json:"session,omitempty"`
	ToolCalls    int           `json:"tool_calls,omitempty"`
	Turns        int           `json:"turns,omitempty"`
	// Context is the largest request, in tokens. It is an estimate if the model was not reached through the gateway
	// (Gateway).
	Context int64  `json:"context,omitempty"`
	Gateway bool   `json:"gateway,omitempty"`
	Silent  string `json:"silent,omitempty"` // how long the agent had been silent when Pawl ended it
	// Budget says how the attempt used up its own budget; empty if it did not.
	Budget string `json:"budget,omitempty"`
	// Paused says that a daily budget ended the attempt, the thread's or a global one. It continues when there is
	// room.
	Paused bool `json:"paused,omitempty"`
	// Rambled says that the gateway ended it for prose without a tool call. Another effort may help.
	Rambled    bool       `json:"rambled,omitempty"`
	Trajectory Trajectory `json:"trajectory,omitzero"`
	Judge      *Judged    `json:"judge,omitempty"` // the operator's judge; nil if it was not asked
	Rungs      []Rung     `json:"rungs,omitempty"` // the recoveries in this attempt
	Mentions   int        `json:"mentions,omitempty"`
	// RefusedHosts are the hosts that the network policy refused, as HOST:PORT: to the agent, with the reason in
	// parentheses if it is not the list; to verify commands, with the key of their list (RefusedIn). Sent and
	// Received count the agent's bytes to other hosts than its model.
	RefusedHosts []string `json:"refused_hosts,omitempty"`
	Sent         int64    `json:"sent,omitempty"`
	Received     int64    `json:"received,omitempty"`
	Exit         int      `json:"exit"`
	AgentMS      int64    `json:"agent_ms"`
	Transcript   string   `json:"transcript,omitempty"`
}

// Layer is what the setup left for an attempt in addition to the repository's files.
type Layer struct {
	Key    string `json:"key"`
	Commit string `json:"commit"` // the default branch's commit that it was built from
}

// Folder counts a change in one folder; Path is "." for the root.
type Folder struct {
	Path    string `json:"path"`
	Files   int    `json:"files"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
}

// Folders counts the changes of a git diff by folder, in the order of its files.
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

// Manifest says how much of one kind of context the agent got.
type Manifest struct {
	What string `json:"what"` // in the plural: comments
	Kept int    `json:"kept"`
	Of   int    `json:"of"`
	Cut  int    `json:"cut,omitempty"` // lines of the kept ones
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

// Heard summarises the agent's context for users; empty for none.
func (r Receipt) Heard() string {
	return strings.Join(each(r.Manifest, Manifest.String), "; ")
}

// Proposal is the usual setup for a repository without one, and the file that shows it.
type Proposal struct {
	Command string `json:"command"`
	File    string `json:"file"`
}

// Told takes the failure's fingerprint and frames from its text.
func (r *Receipt) Told(text string) {
	r.Evidence, r.Frames = simhash.Failure(text), simhash.Frames(text)
}

// Progress reports whether the attempt changed the tree, by any committer, or merged the base. An unknown tree is
// no progress.
func (r Receipt) Progress() bool {
	if r.Updated != "" {
		return true
	}
	if r.StartTree == "" || r.EndTree == "" {
		return false
	}
	return r.StartTree != r.EndTree
}

// Untold reports whether files changed without an edit in the agent's output, as with a shell command that names no
// file. Such an attempt may have gone in circles unseen.
func (r Receipt) Untold() bool {
	if r.Edits.Operations > 0 || r.Updated != "" {
		return false
	}
	return r.Progress()
}

// Says is the agent's last message without the parts that are shown elsewhere.
func (r Receipt) Says() string {
	first, rest, _ := strings.Cut(r.Final, "\n")
	if r.Outcome == Declined && Declining(first) != "" {
		return strings.TrimSpace(rest)
	}
	return r.Final
}

// cut reports whether something outside the agent ended its work: its provider, a daily budget, or a silence.
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

// blameless reports whether the attempt did not end by itself, which is no failure of the agent.
func (r Receipt) blameless() bool { return r.Outcome == Interrupted || r.cut() }

// Failing reports whether a verify command failed; the outcome may name something worse.
func (r Receipt) Failing() bool {
	return slices.ContainsFunc(r.Verify, func(v Verified) bool { return !v.Passed })
}

// Deciding is the command to show: the first that failed, else the first with a doubt, else the last. It is nil if
// none ran.
func (r Receipt) Deciding() *Verified {
	at := len(r.Verify) - 1
	for i, v := range slices.Backward(r.Verify) {
		switch {
		case !v.Passed:
			return &r.Verify[i] // later commands did not run
		case v.doubtful():
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	return &r.Verify[at]
}

// Known are the failing tests that failed in the same way on the base.
func (r Receipt) Known() []string { return r.tests(func(v Verified) []string { return v.Known }) }

// Flaky are the tests that failed, and passed in a second run on the same commit.
func (r Receipt) Flaky() []string { return r.tests(func(v Verified) []string { return v.Flaky }) }

// Fixed are the tests that failed on the base and now pass.
func (r Receipt) Fixed() []string { return r.tests(func(v Verified) []string { return v.Fixed }) }

func (r Receipt) tests(of func(Verified) []string) (all []string) {
	for _, v := range r.Verify {
		all = append(all, of(v)...)
	}
	return all
}

// Judged is a judge's answer: a grade, or why there is none.
type Judged struct {
	Grade  float64 `json:"grade"`
	Detail string  `json:"detail,omitempty"`
	Error  string  `json:"error,omitempty"`
	Cannot string  `json:"cannot,omitempty"` // why it refuses to grade, which is no failure
	// Tokens and CostUSD are the built-in judge's use; nil if the cost is unknown.
	Tokens  Tokens   `json:"tokens,omitzero"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// Trajectory counts an agent's work, for its grade.
type Trajectory struct {
	TestRuns int   `json:"test_runs"`
	Errors   int   `json:"errors"`  // failed calls
	Retries  int   `json:"retries"` // of requests to the model
	Bytes    int64 `json:"bytes"`   // of the agent's output
	// FilesAfterTests are the files edited after the last test run; 0 also if there was none.
	FilesAfterTests int `json:"files_after_tests,omitempty"`
}
