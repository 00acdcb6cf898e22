package learning

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/policy"
)

type SignalSource string

// The sources in order of trust.
const (
	PeopleSource     SignalSource = "people"     // merged, closed, reverted, reviewed
	SeveritySource   SignalSource = "severity"   // the verdict on an edit loop
	VerifierSource   SignalSource = "verifier"   // the repository's own verify commands
	CISource         SignalSource = "ci"         // other Apps' checks on the pushed commit
	JudgeSource      SignalSource = "judge"      // the optional judge command
	TrajectorySource SignalSource = "trajectory" // edits, tests, errors and retries in the transcript
	JournalSource    SignalSource = "journal"    // the agent's own summary
)

// sources lists all sources with their weights in order of trust. A source without a weight decides alone. Each
// source outweighs all less trusted ones, except the verifier (our choice).
var sources = [...]source{{PeopleSource, 0}, {SeveritySource, 0}, {VerifierSource, 8}, {CISource, 8}, {JudgeSource, 4}, {TrajectorySource, 2}, {JournalSource, 1}}

type source struct {
	name   SignalSource
	weight float64
}

const sourceCount = len(sources)

// Positions of named sources.
const (
	severityPlace = 1
	verifierPlace = 2
	ciPlace       = 3
)

// place returns a source's index in sources; -1 if unknown.
func (s SignalSource) place() int {
	for i := range sources {
		if sources[i].name == s {
			return i
		}
	}
	return -1
}

// Signal is one source's grade of one attempt, or why there is none.
type Signal struct {
	Source  SignalSource `json:"source"`
	Kind    PeopleKind   `json:"kind,omitempty"` // the event of a people signal
	Value   float64      `json:"value"`          // 0 (bad) to 1 (good); only if Known is set
	Known   bool         `json:"known"`
	Missing string       `json:"missing,omitempty"` // why there is no value
	// Failed means that the source was asked and failed. Its value does not count.
	Failed bool `json:"failed,omitempty"`
	// Basis names the evidence. A source that gives equal values for different evidence is not stuck.
	Basis string `json:"basis,omitempty"`
	// Weight is the number of rewards that a severity signal counts as; others count once.
	Weight float64 `json:"weight,omitempty"`
	// Detail summarises the evidence.
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

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

// Graded is one finished attempt with its signals. Late signals make a new version of the row.
type Graded struct {
	ID      string    `json:"id"` // the attempt's end; it never changes
	At      time.Time `json:"at"` // when the attempt ended; it never changes
	Backend string    `json:"backend"`
	// Model and Effort are what the attempt used; Escalated means rung 3's effort.
	Model     string  `json:"model,omitempty"`
	Effort    string  `json:"effort,omitempty"`
	Escalated bool    `json:"escalated,omitempty"`
	CostUSD   float64 `json:"cost_usd,omitempty"` // 0 if unknown
	Seconds   float64 `json:"seconds,omitempty"`  // agent run time
	Chosen    string  `json:"chosen,omitempty"`   // why the backend was chosen; empty without a choice
	// Fired lists the attempt's recoveries. FirstTry is set for a run's first attempt. Similarity compares the
	// attempt with the run's previous one.
	Fired      []Fired        `json:"fired,omitempty"`
	FirstTry   *bool          `json:"first_try,omitempty"`
	Similarity *float64       `json:"similarity,omitempty"`
	Context    policy.Context `json:"context"`
	Signals    []Signal       `json:"signals"`
	Facts      AttemptFacts   `json:"facts"`
}

// AttemptFacts are Pawl's own facts, which validate the signals.
type AttemptFacts struct {
	Outcome    policy.Outcome `json:"outcome"`
	OwnFailure string         `json:"own_failure,omitempty"` // Pawl's own failure; empty for none
	Changed    bool           `json:"changed"`
	Commits    int            `json:"commits"`              // the attempt's commits on the thread's branch
	Transcript *Transcript    `json:"transcript,omitempty"` // nil for a CLI without an event stream, such as a plain command
}

// Transcript describes the input of trajectory and journal.
type Transcript struct {
	Bytes int64 `json:"bytes"`
}

// Grade is one attempt's grade, or why there is none.
type Grade struct {
	Value   float64 `json:"value"`
	Known   bool    `json:"known"`
	Missing string  `json:"missing,omitempty"` // why there is no grade
	// From lists the grade's sources in order of trust.
	From []SignalSource `json:"from,omitempty"`
}

// Grade grades an attempt by all its signals without validation.
func (g Graded) Grade() Grade {
	set := g.signals()
	r, _ := g.grade(&set, &aside{}, &fullTrust)
	return r
}

// unrewarded returns why an attempt says nothing about its backend; empty if it can be graded.
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

// signalSet has each source's deciding signal by place; nil for none.
type signalSet [sourceCount]*Signal

// aside has the reason why each source does not count; else empty.
type aside [sourceCount]string

// signals picks each source's deciding signal: for people by rank, for others the newest, then the last in the list.
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

// trust has each source's factor from 0 to 1, by place.
type trust [sourceCount]float64

var fullTrust = trust{1, 1, 1, 1, 1, 1, 1}

// written reports whether the agent can write a source's input. Without a change, Pawl computes the trajectory from
// the files.
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

// grade returns the weighted mean of the believed signals, and the trust in its sources. The agent's own writing
// (transcript, summary) may lower the grade, never raise it, and gives no grade alone.
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
		case t[p] == 0: // the source only lowers the trust in the grade
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
