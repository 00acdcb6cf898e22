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

// Tokens counts the use of a session or an attempt. Input includes cached input; Output includes reasoning. The zero
// value means unknown and is null in JSON.
type Tokens struct {
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached_input"`
	Output      int64 `json:"output"`
	// Estimated is the part that no provider reported, at four bytes per token.
	Estimated int64 `json:"estimated,omitempty"`
}

// MarshalJSON writes an unknown count as null.
func (t Tokens) MarshalJSON() ([]byte, error) {
	if t == (Tokens{}) {
		return []byte("null"), nil
	}
	type fields Tokens // avoids recursion
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

// Minus returns the use since an earlier count, at least zero.
func (t Tokens) Minus(before Tokens) Tokens {
	return Tokens{
		Input:       max(0, t.Input-before.Input),
		CachedInput: max(0, t.CachedInput-before.CachedInput),
		Output:      max(0, t.Output-before.Output),
		Estimated:   max(0, t.Estimated-before.Estimated),
	}
}

// Sources of a reset time.
const (
	SourceStructured = "structured" // a field of the stream, session file or provider's answer
	SourceText       = "text"       // parsed from the message; whole minutes
	SourceNone       = "none"       // unknown
)

// Limit describes a provider's refusal.
type Limit struct {
	Kind     Ending    `json:"kind"` // usage_limit, rate_limited, overloaded or auth
	Message  string    `json:"message"`
	ResetsAt time.Time `json:"resets_at,omitzero"` // zero if unknown
	// Source of ResetsAt: structured, text or none.
	Source string `json:"source"`
	// Certainty is certain if a status, type or field names the kind, and likely if only the wording does.
	Certainty string `json:"certainty,omitempty"`
}

const (
	Certain = "certain"
	Likely  = "likely"
)

// Usable returns when the account should work again; zero if unknown. Messages give whole minutes, so Usable adds a
// minute to their times.
func (l *Limit) Usable() time.Time {
	if l == nil || l.ResetsAt.IsZero() {
		return time.Time{}
	}
	if l.Source == SourceText {
		return l.ResetsAt.Add(time.Minute)
	}
	return l.ResetsAt
}

// Words formats the ending for a sentence.
func (e Ending) Words() string { return Outcome(e).Words() }

// IsLimit reports whether the ending is a provider's refusal, described by a Limit.
func (e Ending) IsLimit() bool {
	return slices.Contains([]Ending{UsageLimit, RateLimited, Overloaded, Auth}, e)
}

type Receipt struct {
	N         int        `json:"n"`
	Ending    Ending     `json:"ending,omitempty"`
	Outcome   Outcome    `json:"outcome"`
	Reasons   []string   `json:"reasons,omitempty"`
	Detail    string     `json:"detail,omitempty"`
	Limit     *Limit     `json:"limit,omitempty"`
	Base      string     `json:"base,omitempty"`
	Layer     Layer      `json:"layer,omitzero"`
	Manifest  []Manifest `json:"manifest,omitempty"` // the agent's context
	StartTree string     `json:"start_tree,omitempty"`
	EndTree   string     `json:"end_tree,omitempty"`
	Commit    string     `json:"commit,omitempty"`
	Pushed    bool       `json:"pushed,omitempty"`
	// Updated is the base commit merged into the work; empty without an update. Conflicts lists files with conflict
	// markers left by the agent; that merge is not pushed.
	Updated   string   `json:"updated,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	// Leaks look like secrets and prevent the commit.
	Leaks []Leak `json:"leaks,omitempty"`
	// Merged means that the commit includes others' pushes.
	Merged  bool     `json:"merged,omitempty"`
	Kept    string   `json:"kept,omitempty"` // the branch of a commit that was not pushed to the thread's branch
	LeftOut []string `json:"left_out,omitempty"`
	// Inherited lists the commits on Pawl's branch before the thread's first push.
	Inherited []string `json:"inherited,omitempty"`
	// Steered names the users whose texts the agent received while it worked.
	Steered  []Steerer     `json:"steered,omitempty"`
	Edits    Edits         `json:"edits"`
	Evidence simhash.Print `json:"evidence"`
	// Frames are fingerprints of the stack frames nearest to the failure.
	Frames []simhash.Print `json:"frames,omitempty"`
	Change simhash.Print   `json:"change"`
	// Whole is the fingerprint of the branch's whole change up to EndTree.
	Whole simhash.Print `json:"whole,omitempty"`
	// ChangeWords counts Change's words; 0 is unknown.
	ChangeWords int `json:"change_words,omitempty"`
	// Put and Took are hashes of added and removed lines (ChangedLines).
	Put   []uint32 `json:"put,omitempty"`
	Took  []uint32 `json:"took,omitempty"`
	Added int      `json:"added,omitempty"` // added lines
	Final string   `json:"final,omitempty"`
	// Declined is the agent's reason for declining the task. It counts only if Outcome is Declined.
	Declined string `json:"declined,omitempty"`
	// Parsed from the agent's last message (Answer).
	Question string   `json:"question,omitempty"`
	Title    string   `json:"title,omitempty"`
	NotDone  []string `json:"not_done,omitempty"`
	// Conventional means that the repository's titles follow Conventional Commits.
	Conventional bool           `json:"conventional,omitempty"`
	Remarks      []RemarkAnswer `json:"remarks,omitempty"`
	// Open lists the attempt's review comments whose lines are unchanged.
	Open []int64 `json:"open_remarks,omitempty"`
	// Instructs lists files for agents (such as AGENTS.md) that the work changes or deletes.
	Instructs []string `json:"instructs,omitempty"`
	// Folders counts the work's changes since its branch's first commit.
	Folders      []Folder      `json:"folders,omitempty"`
	Verify       []Verified    `json:"verify,omitempty"`
	Tests        []string      `json:"failing_tests,omitempty"`
	TestEvidence *TestEvidence `json:"test_evidence,omitempty"`
	Tokens       Tokens        `json:"tokens"` // null if unknown
	CostUSD      *float64      `json:"cost_usd,omitempty"`
	Session      string        `json:"session,omitempty"`
	ToolCalls    int           `json:"tool_calls,omitempty"`
	Turns        int           `json:"turns,omitempty"`
	// Context is the largest request in tokens; an estimate unless the model was reached through the gateway
	// (Gateway).
	Context int64  `json:"context,omitempty"`
	Gateway bool   `json:"gateway,omitempty"`
	Silent  string `json:"silent,omitempty"` // the silence after which Pawl ended the agent
	// Budget explains how the attempt used up its own budget; else empty.
	Budget string `json:"budget,omitempty"`
	// Moved means that a user pushed to the branch during a round of a watch. Nothing was pushed.
	Moved bool `json:"moved,omitempty"`
	// Paused means that a daily budget ended the attempt. It continues when the budget allows.
	Paused bool `json:"paused,omitempty"`
	// Rambled means that the gateway ended the attempt for prose without a tool call. Another effort may help.
	Rambled    bool       `json:"rambled,omitempty"`
	Trajectory Trajectory `json:"trajectory,omitzero"`
	Judge      *Judged    `json:"judge,omitempty"` // the judge's answer; nil if no judge was asked
	Rungs      []Rung     `json:"rungs,omitempty"` // recoveries in this attempt
	Mentions   int        `json:"mentions,omitempty"`
	// RefusedHosts lists HOST:PORT that the network policy refused. The agent's entries may add a reason in
	// parentheses; verify commands' entries add their list's key (RefusedIn). Sent and Received count the agent's
	// traffic in bytes, except to its model.
	RefusedHosts []string `json:"refused_hosts,omitempty"`
	Sent         int64    `json:"sent,omitempty"`
	Received     int64    `json:"received,omitempty"`
	Exit         int      `json:"exit"`
	AgentMS      int64    `json:"agent_ms"`
	Transcript   string   `json:"transcript,omitempty"`
}

// Layer is the setup's output for an attempt, in addition to the repository's files.
type Layer struct {
	Key    string `json:"key"`
	Commit string `json:"commit"` // the default branch's commit at build time
}

// Folder counts a change in one folder; "." is the root.
type Folder struct {
	Path    string `json:"path"`
	Files   int    `json:"files"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
}

// Folders counts a git diff's changes by folder, in file order.
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
		case strings.HasPrefix(line, "+"):
			now.Added++
		case strings.HasPrefix(line, "-"):
			now.Removed++
		}
	}
	return all
}

// Manifest counts one kind of context that the agent got.
type Manifest struct {
	What string `json:"what"` // a plural noun: comments
	Kept int    `json:"kept"`
	Of   int    `json:"of"`
	Cut  int    `json:"cut,omitempty"` // lines removed from the kept ones
	// Notes explain other omissions.
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

// ManifestText describes the agent's context for users; empty for none.
func (r Receipt) ManifestText() string {
	return strings.Join(each(r.Manifest, Manifest.String), "; ")
}

// Proposal is the usual setup for a repository without one, and the file that suggests it.
type Proposal struct {
	Command string `json:"command"`
	File    string `json:"file"`
}

// SetEvidence sets the failure's fingerprint and frames from its text.
func (r *Receipt) SetEvidence(text string) {
	r.Evidence, r.Frames = simhash.Failure(text), simhash.Frames(text)
}

// Progress reports whether the attempt changed the tree or merged the base. An unknown tree is not progress.
func (r Receipt) Progress() bool {
	if r.Updated != "" {
		return true
	}
	if r.StartTree == "" || r.EndTree == "" {
		return false
	}
	return r.StartTree != r.EndTree
}

// Unreported reports whether files changed without an edit in the agent's output, such as by a shell command. Loops of
// such changes are invisible.
func (r Receipt) Unreported() bool {
	if r.Edits.Operations > 0 || r.Updated != "" {
		return false
	}
	return r.Progress()
}

// LastMessage returns the agent's last message without a reason to decline, which is shown elsewhere.
func (r Receipt) LastMessage() string {
	first, rest, _ := strings.Cut(r.Final, "\n")
	if r.Outcome == Declined && Declining(first) != "" {
		return strings.TrimSpace(rest)
	}
	return r.Final
}

// cut reports whether the provider, a daily budget or a silence ended the attempt.
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

// blameless reports whether something outside the agent ended the attempt.
func (r Receipt) blameless() bool { return r.Outcome == Interrupted || r.cut() }

func (r Receipt) Failing() bool {
	return slices.ContainsFunc(r.Verify, func(v Verified) bool { return !v.Passed })
}

// Deciding returns the command to show: the first failed one, else the first doubtful one, else the last; nil if none
// ran.
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

// Known lists the failing tests that failed in the same way on the base.
func (r Receipt) Known() []string { return r.tests(func(v Verified) []string { return v.Known }) }

// Flaky lists the tests that failed, and passed in a second run on the same commit.
func (r Receipt) Flaky() []string { return r.tests(func(v Verified) []string { return v.Flaky }) }

// Fixed lists the tests that failed on the base and now pass.
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
	Cannot string  `json:"cannot,omitempty"` // why it refuses to grade, which is not an error
	// Tokens and CostUSD are the built-in judge's use.
	Tokens  Tokens   `json:"tokens,omitzero"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// Trajectory counts an agent's actions for its grade.
type Trajectory struct {
	TestRuns int   `json:"test_runs"`
	Errors   int   `json:"errors"`  // failed calls
	Retries  int   `json:"retries"` // repeated model requests
	Bytes    int64 `json:"bytes"`   // of the agent's output
	// FilesAfterTests counts files edited after the last test run; 0 if no tests ran.
	FilesAfterTests int `json:"files_after_tests,omitempty"`
}
