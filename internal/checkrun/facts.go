// Package checkrun renders everything that Pawl writes on GitHub: the three
// check runs, the status comment, the block in a pull request's description
// and the answers to commands.
//
// Every function is pure: the same facts give the same bytes. All strings in
// the facts are taken as hostile, whoever wrote them. They appear only as inline
// code, in fenced blocks, or as words that Markdown and GitHub take for nothing
// but words, so none of them can mention a person, refer to an issue, link,
// load a picture, close a block or forge one of Pawl's markers.
package checkrun

import "time"

// State is where a thread stands.
type State string

// The states. Failed means that Pawl could not do its own job; an attempt that
// failed is no such failure. ConfigError means that the repository's
// configuration has problems and nothing runs.
const (
	Running     State = "running"
	Waiting     State = "waiting"
	Stopped     State = "stopped"
	Done        State = "done"
	Failed      State = "failed"
	ConfigError State = "config_error"
)

// Facts is what is known of one thread at one moment.
type Facts struct {
	Thread string // owner/repo#n
	// Number is the issue's or pull request's own number.
	Number int
	IsPull bool
	Title  string
	// RequestedBy is the login of whoever caused the run, Request the text that
	// the agent was given of it.
	RequestedBy, Request string
	State                State
	// Rule and Reasons are the last decision's; Hint is what a person can do.
	Rule    string
	Reasons []string
	Hint    string
	// Until is when a wait ends; zero when nothing is waited for.
	Until time.Time
	Now   time.Time
	// Run is the number of the current run. Attempts are all attempts of the
	// thread, oldest first; those of other runs are only counted.
	Run        int
	Attempts   []Attempt
	Severity   Severity
	Stagnation Stagnation
	Limit      *Limit
	// Feedback is what was judged lately, oldest first.
	Feedback []Feedback
	// The links are left out where they are empty or no plain web address.
	PullURL, IssueURL, DetailsURL string
	Branch                        string
	// Problems are the errors in the repository's configuration.
	Problems []Problem
}

// Attempt is the receipt of one attempt as far as people read it.
type Attempt struct {
	N, Run  int
	Backend string
	Effort  string
	// Ending and Outcome are both empty while the attempt runs.
	Ending, Outcome string
	Progress        bool
	Edits           Edits
	// Similarity with the attempt before, 0..1, and what was similar: failure,
	// revision, or empty where nothing was or could be compared.
	Similarity  float64
	SimilarKind string
	// Waited is the wait before the attempt, Duration how long it ran.
	Waited, Duration time.Duration
	// Commit is what was pushed; empty when nothing was.
	Commit string
	// Detail is the failure in a few words.
	Detail       string
	FinalMessage string
	Verify       *Verify
	// Rung is the recovery that the attempt was, 0 for none.
	Rung                 int
	Escalated, Different bool
	Tokens               Tokens
	CostUSD              *float64 // nil when unknown
	// LeftOut are protected paths whose changes were not committed.
	LeftOut []string
	// ToolCalls and Turns are those of the agent; 0 where it tells none.
	ToolCalls, Turns int
	// Rungs are the recoveries that fired.
	Rungs []Rung
	// Session says whether an earlier session was continued and why; Chosen how
	// the backend was chosen.
	Session, Chosen string
	// Failing are the failing tests, Known those that failed before Pawl began.
	Failing, Known []string
	// Grade is the reward that is learned from, or why there is none; empty while
	// nothing is known.
	Grade string
}

// Rung is one recovery with what it cost.
type Rung struct {
	Rung, Times       int
	Trigger, Response string
	Recovered         bool
	Tokens            int64
	CostUSD           *float64 // nil when unknown
	Took              time.Duration
}

// Edits counts edit operations, distinct files and the operations on the path
// that was edited most often.
type Edits struct {
	Operations, Files, MaxRepeat int
	MaxRepeatPath                string
}

// Verify is the first verify command that failed, or the last that passed.
type Verify struct {
	Command, Output string
	ExitCode        int
	Passed          bool
}

// Tokens counts what an attempt used. CachedInput is part of Input.
type Tokens struct{ Input, CachedInput, Output int64 }

// Severity is the edit-loop verdict on the last attempt that ended. Class is
// none, mild, moderate or severe; any other means that nothing was judged.
type Severity struct {
	Class         string
	Cooldown      time.Duration
	CooldownUntil time.Time
	// Grade counts only where there was a loop.
	Grade   float64
	Reasons []string
	Backend string
}

// Stagnation is the verdict on attempts that come to the same point again.
type Stagnation struct {
	Kind       string // failure, revision, or empty
	Similar    int
	Similarity float64
	Escalated  bool
	Reasons    []string
}

// Limit is the last limit that a backend account hit. ResetsAt is zero when
// nobody said when it resets.
type Limit struct {
	Account, Message string
	ResetsAt         time.Time
	Consecutive      int
}

// Feedback is one event that was judged, with the reason.
type Feedback struct {
	When                        time.Time
	By, Source, Reason, Excerpt string
	Accepted                    bool
}

// Problem is one error in a configuration file of the repository. Line counts
// from 1; 0 means the whole file.
type Problem struct {
	Path    string
	Line    int
	Message string
}

// ended reports whether the attempt is over.
func (a Attempt) ended() bool { return a.Ending != "" || a.Outcome != "" }

// run returns the attempts of the current run, oldest first.
func (f Facts) run() []Attempt {
	var run []Attempt
	for _, a := range f.Attempts {
		if a.Run == f.Run {
			run = append(run, a)
		}
	}
	return run
}

// last returns the newest attempt of the current run that has ended.
func (f Facts) last() (Attempt, bool) {
	run := f.run()
	for i := len(run) - 1; i >= 0; i-- {
		if run[i].ended() {
			return run[i], true
		}
	}
	return Attempt{}, false
}

// current returns the attempt that runs now.
func (f Facts) current() (Attempt, bool) {
	run := f.run()
	if len(run) == 0 || run[len(run)-1].ended() {
		return Attempt{}, false
	}
	return run[len(run)-1], true
}

// over reports whether the run goes on by itself no further.
func (f Facts) over() bool { return f.State != Running && f.State != Waiting }
