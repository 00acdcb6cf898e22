package learning

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/policy"
)

type SignalSource string

// The sources, in order of trust.
const (
	PeopleSource     SignalSource = "people"     // merged, closed, reverted, reviewed
	SeveritySource   SignalSource = "severity"   // the verdict that the edits went in circles
	VerifierSource   SignalSource = "verifier"   // the repository's own verify commands
	CISource         SignalSource = "ci"         // checks of others on the pushed commit
	JudgeSource      SignalSource = "judge"      // the optional judge command
	TrajectorySource SignalSource = "trajectory" // edits, tests, errors and retries of the transcript
	JournalSource    SignalSource = "journal"    // the agent's own summary
)

// sources are all sources with their weights, in order of trust; one without a weight decides alone. Each weighs
// more than all below it together, so that the more trusted side wins. That rule and the numbers are our choice.
var sources = [...]source{{PeopleSource, 0}, {SeveritySource, 0}, {VerifierSource, 8}, {CISource, 8}, {JudgeSource, 4}, {TrajectorySource, 2}, {JournalSource, 1}}

type source struct {
	name   SignalSource
	weight float64
}

const sourceCount = len(sources)

// The positions of the sources that code names.
const (
	severityPlace = 1
	verifierPlace = 2
	ciPlace       = 3
)

// place is a source's index in sources; -1 for an unknown word.
func (s SignalSource) place() int {
	for i := range sources {
		if sources[i].name == s {
			return i
		}
	}
	return -1
}

// Signal is one source's grade of one attempt, or why there is none. The zero value has no effect.
type Signal struct {
	Source  SignalSource `json:"source"`
	Kind    PeopleKind   `json:"kind,omitempty"` // the event behind a signal of people; empty for others
	Value   float64      `json:"value"`          // 0 (bad) to 1 (good); only if Known is set
	Known   bool         `json:"known"`
	Missing string       `json:"missing,omitempty"` // why there is no value; else empty
	// Failed says that the source was asked and failed. A value with it is a fallback and not believed.
	Failed bool `json:"failed,omitempty"`
	// Basis names the evidence behind the value: a source that gives equal values for different evidence is not
	// stuck. Empty if unknown.
	Basis string `json:"basis,omitempty"`
	// Weight is how many rewards the value counts as if severity decides; 0 and all others count once.
	Weight float64 `json:"weight,omitempty"`
	// Detail says briefly what the source saw.
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// usable reports whether the value may be part of a grade: one outside 0 to 1 is as good as missing.
func (s *Signal) usable() bool {
	if s == nil || !s.Known {
		return false
	}
	if s.Failed {
		return false
	}
	return s.Value >= 0 && s.Value <= 1
}

func (s *Signal) failed() bool { return s != nil && s.Failed }

func (s *Signal) why() string { return cmp.Or(s.Missing, "the source failed") }

// Graded is one finished attempt with all that is known about its grade. Late signals make a new version of the
// row.
type Graded struct {
	ID      string    `json:"id"` // owner/repo#n/attempt, unique
	At      time.Time `json:"at"` // when the attempt ended; it never changes
	Backend string    `json:"backend"`
	// Model and Effort are what ran; Escalated says that it was the effort of rung 3.
	Model     string  `json:"model,omitempty"`
	Effort    string  `json:"effort,omitempty"`
	Escalated bool    `json:"escalated,omitempty"`
	CostUSD   float64 `json:"cost_usd,omitempty"` // 0 if unknown
	Seconds   float64 `json:"seconds,omitempty"`  // agent run time
	Chosen    string  `json:"chosen,omitempty"`   // why the backend was chosen; empty if there was no choice
	// Fired are the attempt's recoveries. FirstTry is AttemptFacts.FirstTry of a run's first attempt. Similarity
	// compares it with the attempt before it in the same run. Both are nil if not applicable.
	Fired      []Fired        `json:"fired,omitempty"`
	FirstTry   *bool          `json:"first_try,omitempty"`
	Similarity *float64       `json:"similarity,omitempty"`
	Context    policy.Context `json:"context"`
	Signals    []Signal       `json:"signals"`
	Facts      AttemptFacts   `json:"facts"`
}

// AttemptFacts are Pawl's own facts about an attempt, which check the signals; zero knows nothing.
type AttemptFacts struct {
	Outcome    policy.Outcome `json:"outcome"`
	OwnFailure string         `json:"own_failure,omitempty"` // a failure of Pawl itself; empty for none
	// Changed says that the tree changed.
	Changed    bool        `json:"changed"`
	Commits    int         `json:"commits"`              // the attempt's commits that reached the thread's branch
	Transcript *Transcript `json:"transcript,omitempty"` // nil for a CLI without an event stream, such as a plain command
}

// Transcript describes the source of trajectory and journal.
type Transcript struct {
	Bytes int64 `json:"bytes"`
}

// Grade is one attempt's grade, or why there is none.
type Grade struct {
	Value   float64 `json:"value"`
	Known   bool    `json:"known"`
	Missing string  `json:"missing,omitempty"` // why there is no grade; else empty
	// From are the sources of the grade, in order of trust: one that decides alone, or the sources of a weighted mean.
	From []SignalSource `json:"from,omitempty"`
}

// Grade grades an attempt by all its signals, plausible or not; see Learn for validation.
func (g Graded) Grade() Grade {
	set := g.signals()
	r, _ := g.grade(&set, &aside{}, &fullTrust)
	return r
}

// unrewarded says why an attempt is neither the merit nor the fault of its backend; empty if it can be graded.
func (f AttemptFacts) unrewarded() string {
	if f.OwnFailure != "" {
		return "Pawl itself failed: " + f.OwnFailure
	}
	switch f.Outcome {
	case policy.Cancelled, policy.NotPermitted:
		return "the attempt was cancelled"
	case policy.Asked:
		return "the agent asked a question"
	case policy.Answered, policy.Planned:
		return "the attempt was asked for words, not for work"
	case policy.Declined:
		return "the agent declined the task"
	case policy.Interrupted:
		return "the attempt was interrupted"
	case policy.FellSilent:
		return "the agent fell silent, which says nothing of the work"
	case policy.WasUsageLimit, policy.WasRate, policy.WasOverload, policy.WasLost, policy.WasAuth, policy.WasConfig:
		return fmt.Sprintf("the attempt ended %s, which says nothing of the work", f.Outcome.Words())
	default:
		return ""
	}
}

// signalSet has the deciding signal of each source by its place; nil for none.
type signalSet [sourceCount]*Signal

// aside has the reason why each source is not believed; empty if it is.
type aside [sourceCount]string

// signals picks each source's deciding signal: for people by rank, for others the newest, and of two at once the
// later one in the list. So a second signal of a kind replaces the first.
func (g *Graded) signals() signalSet {
	set := signalSet{people(g.Signals)}
	for i := range g.Signals {
		s := &g.Signals[i]
		p := s.Source.place()
		if p <= 0 {
			continue // an unknown source, or people
		}
		if set[p] == nil || !s.At.Before(set[p].At) {
			set[p] = s
		}
	}
	return set
}

// trust is how far each source is believed, by its place: from 0 to 1, times its weight.
type trust [sourceCount]float64

// fullTrust is for sources without a history.
var fullTrust = trust{1, 1, 1, 1, 1, 1, 1}

// written reports whether a source depends on the agent's own writing. The trajectory of an attempt without a
// change does not: Pawl knows that from the files.
func (g *Graded) written(p int) bool {
	switch sources[p].name {
	case JournalSource:
		return true
	case TrajectorySource:
		return g.Facts.Changed
	default:
		return false
	}
}

// grade is the weighted mean of the believed signals, and the trust in its sources. What an agent can write itself,
// its transcript and its summary, may lower the others' grade, never raise it, and is no grade alone: an agent's
// words earn nothing.
func (g *Graded) grade(set *signalSet, not *aside, t *trust) (r Grade, trusted float64) {
	if r.Missing = g.Facts.unrewarded(); r.Missing != "" {
		return r, 0
	}
	var outside, own, sum, weight, full float64
	var others, agents []SignalSource
	for p, source := range sources {
		switch w := source.weight * t[p]; {
		case !set[p].usable() || not[p] != "":
		case source.weight == 0:
			return Grade{Value: set[p].Value, Known: true, From: []SignalSource{source.name}}, 1
		case t[p] == 0: // it adds nothing, and lowers the trust in the grade
			if !g.written(p) {
				full += source.weight
			}
		case g.written(p):
			own, weight, agents = own+w*set[p].Value, weight+w, append(agents, source.name)
		default:
			outside, sum, full, others = outside+w*set[p].Value, sum+w, full+source.weight, append(others, source.name)
		}
	}
	switch weight += sum; {
	case sum > 0:
		r.Value, r.Known, r.From, trusted = outside/sum, true, others, sum/full
		if all := (outside + own) / weight; all < r.Value {
			r.Value, r.From = all, append(others, agents...)
		}
	case own > 0:
		r.Missing = "there is only what the agent wrote itself"
	default:
		r.Missing = "no source gave a value that is believed"
	}
	return r, trusted
}
