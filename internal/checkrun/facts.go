package checkrun

import (
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// State is where a thread stands.
type State string

// The states. Failed: Pawl could not do its own job, whatever became of an attempt. ConfigError: the
// repository's configuration has problems and nothing runs.
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
	Thread               string // owner/repo#n
	Number               int    // the issue's or pull request's own number
	IsPull               bool
	Title                string
	RequestedBy, Request string // the login of whoever caused the run, Request the text that the agent got of it
	State                State
	thread.Decided       // the last decision, or that of the attempt that runs
	Now                  time.Time
	// Run is the number of the current run. Attempts are all attempts of the
	// thread, oldest first; those of other runs are only counted.
	Run      int
	Attempts []Attempt
	// Severity is the verdict on the last attempt that ended, CooldownUntil when its
	// backend has rested. An unknown class means that nothing was judged.
	Severity      policy.Severity
	CooldownUntil time.Time
	Stagnation    policy.Stagnant
	Limit         *AccountLimit
	// Feedback was judged lately, oldest first; Withdrawn says why something was not acted on.
	Feedback []thread.Request
	// The links are left out where they are empty or no plain web address.
	PullURL, IssueURL, DetailsURL string
	Branch                        string
}

// Attempt is one attempt with its receipt, which is empty while it runs.
type Attempt struct {
	policy.Attempt
	Effort string
	// Similarity with the attempt before, 0..1, and of what: failure, revision, or empty.
	Similarity       float64
	SimilarKind      string
	Waited, Duration time.Duration // the wait before the attempt, and how long it ran
	// Continues says whether a session was continued and why; Chosen how the backend was chosen.
	Continues, Chosen string
	Grade             string // the reward that is learned from, or why there is none; empty while unknown
}

// AccountLimit is the last limit of a backend account. ResetsAt is zero when nobody said.
type AccountLimit struct {
	Account, Message string
	ResetsAt         time.Time
	Consecutive      int
}

func (a Attempt) ended() bool { return a.Ending != "" || a.Outcome != "" }

func (f Facts) run() []Attempt {
	return slices.DeleteFunc(slices.Clone(f.Attempts), func(a Attempt) bool { return a.Run != f.Run })
}

// last returns the newest attempt of the current run that has ended.
func (f Facts) last() (Attempt, bool) {
	for _, a := range slices.Backward(f.run()) {
		if a.ended() {
			return a, true
		}
	}
	return Attempt{}, false
}

func (f Facts) over() bool { return f.State != Running && f.State != Waiting }

// reasons are those of the decision, with their times as people write them.
func (f Facts) reasons() []string {
	return f.Reasons.Write(func(t time.Time) string { return text.Instant(f.Now, t) })
}
