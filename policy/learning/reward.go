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
	JournalSource    SignalSource = "journal"    // what the agent said that it did
)

// sources are all sources with their weights, in order of trust; one without a weight decides alone. Each level
// weighs more than all below it together, so that the more trusted side wins. That rule and the numbers are our
// choice.
var sources = [...]source{{PeopleSource, 0}, {SeveritySource, 0}, {VerifierSource, 8}, {CISource, 8}, {JudgeSource, 4}, {TrajectorySource, 2}, {JournalSource, 1}}

type source struct {
	name   SignalSource
	weight float64
}

const sourceCount = len(sources)

// The places of those that are asked for by name.
const (
	severityPlace = 1
	verifierPlace = 2
	ciPlace       = 3
)

// place gives the index of a source in sources, or -1 for a word that is none.
func (s SignalSource) place() int {
	for i := range sources {
		if sources[i].name == s {
			return i
		}
	}
	return -1
}

// Signal is what one source says of one attempt: a value, or why there is none. Zero moves nothing.
type Signal struct {
	Source  SignalSource `json:"source"`
	Kind    PeopleKind   `json:"kind,omitempty"` // the event that a signal of people comes from; empty for the others
	Value   float64      `json:"value"`          // 0 (bad) to 1 (good), and means something only where Known is set
	Known   bool         `json:"known"`
	Missing string       `json:"missing,omitempty"` // why there is no value; empty where there is one
	// Failed says that the source was asked and failed, not that it was not asked or cannot speak of this
	// attempt. A value beside it is what it falls back to, and is not believed.
	Failed bool `json:"failed,omitempty"`
	// Basis names what the value was computed from: the same from different evidence is no source that is
	// stuck. Empty where unknown.
	Basis string `json:"basis,omitempty"`
	// Weight is how many rewards the value counts like where severity decides; 0 and all others count once.
	Weight float64 `json:"weight,omitempty"`
	// Detail says in a few words what the source saw.
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// usable reports whether the value may be part of a grade; one outside 0 to 1 is as good as missing.
func (s *Signal) usable() bool {
	if s == nil || !s.Known {
		return false
	}
	if s.Failed {
		return false
	}
	return s.Value >= 0 && s.Value <= 1
}

// failed reports whether the source was asked in vain.
func (s *Signal) failed() bool { return s != nil && s.Failed }

// why says why a source that was asked failed.
func (s *Signal) why() string { return cmp.Or(s.Missing, "the source failed") }

// Graded is one attempt that has ended with all that is known about its grade. Late signals make a new version
// of the row.
type Graded struct {
	ID      string    `json:"id"` // owner/repo#n/attempt, unique
	At      time.Time `json:"at"` // when the attempt ended; it never changes
	Backend string    `json:"backend"`
	// Model and Effort are what ran, Escalated that it was the effort of the last recovery.
	Model     string  `json:"model,omitempty"`
	Effort    string  `json:"effort,omitempty"`
	Escalated bool    `json:"escalated,omitempty"`
	CostUSD   float64 `json:"cost_usd,omitempty"` // 0 where it is not known
	Seconds   float64 `json:"seconds,omitempty"`  // how long its agent ran
	Chosen    string  `json:"chosen,omitempty"`   // why the backend was chosen; empty where there was no choice
	// Fired are the recoveries of the attempt. FirstTry is AttemptFacts.FirstTry of the first attempt of a run. Similarity
	// is the one with the attempt before it in the same run. Both are nil where there is none.
	Fired      []Fired        `json:"fired,omitempty"`
	FirstTry   *bool          `json:"first_try,omitempty"`
	Similarity *float64       `json:"similarity,omitempty"`
	Context    policy.Context `json:"context"`
	Signals    []Signal       `json:"signals"`
	Facts      AttemptFacts   `json:"facts"`
}

// AttemptFacts are what Pawl itself knows of an attempt, by which signals are checked; zero knows nothing.
type AttemptFacts struct {
	Outcome    policy.Outcome `json:"outcome"`
	OwnFailure string         `json:"own_failure,omitempty"` // what failed in Pawl itself; empty when nothing did
	// Changed says that the tree differs from the one at the start.
	Changed    bool        `json:"changed"`
	Commits    int         `json:"commits"`              // how many commits of the attempt reached the thread's branch
	Transcript *Transcript `json:"transcript,omitempty"` // nil for a CLI without a stream of events, such as a plain command
}

// Transcript describes the record from which trajectory and journal are read.
type Transcript struct {
	Bytes int64 `json:"bytes"`
}

// Grade is the grade of one attempt, or the reason why there is none.
type Grade struct {
	Value   float64 `json:"value"`
	Known   bool    `json:"known"`
	Missing string  `json:"missing,omitempty"` // why there is no grade; empty where there is one
	// From are the sources that it rests on, in order of trust: one that decides alone, or those of a weighted mean.
	From []SignalSource `json:"from,omitempty"`
}

// Grade grades an attempt by all of its signals, plausible or not; Learn asks that.
func (g Graded) Grade() Grade {
	set := g.signals()
	r, _ := g.grade(&set, &aside{}, &fullTrust)
	return r
}

// unrewarded says why an attempt is neither the merit nor the fault of its backend, whatever else is known;
// empty when it can be graded.
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
		return fmt.Sprintf("the attempt ended %s, which says nothing of the work", f.Outcome)
	default:
		return ""
	}
}

// signalSet holds the one signal of each source that counts, by its place; nil where it said nothing.
type signalSet [sourceCount]*Signal

// aside says of each source, by its place, why it is not believed; empty where it is.
type aside [sourceCount]string

// signals picks the signal of each source that counts: of people the one that decides, of others the newest, of
// two at once the later. So a second signal of a kind replaces, and never adds.
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

// fullTrust is that of sources of which nothing is known yet.
var fullTrust = trust{1, 1, 1, 1, 1, 1, 1}

// written reports whether a source rests on what the agent wrote itself. That nothing changed, which the trajectory says
// then, Pawl knows from the files.
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

// grade is the weighted mean of what is believed, and how far the sources that it rests on are trusted. What an agent can
// write itself, its transcript and its summary, may lower that of the others, never raise it, and is no grade by itself:
// so no words of an agent earn anything.
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
		case t[p] == 0: // it adds nothing, and the grade is trusted the less for it
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
