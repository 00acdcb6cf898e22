package learning

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
)

type ValidityRule string

const (
	// FloorWithWork: a floor grade for work that verified, passed checks or was merged, by a source whose floor
	// grades are more often contradicted than confirmed.
	FloorWithWork ValidityRule = "floor_with_work"
	// TopWithoutChange: a top grade without a change.
	TopWithoutChange ValidityRule = "top_without_change"
	// StubTranscript: a transcript too small for an attempt with a change.
	StubTranscript ValidityRule = "stub_transcript"
	// Stuck: one value repeated more often than the source's usual distribution explains.
	Stuck ValidityRule = "stuck"
	// Unavailable: too many failures within a day.
	Unavailable ValidityRule = "unavailable"
)

// Violation is a source's broken rule at one attempt.
type Violation struct {
	Source  SignalSource `json:"source"`
	Check   ValidityRule `json:"check"`
	Attempt string       `json:"attempt"`
	Reason  string       `json:"reason"`
	At      time.Time    `json:"at"` // when it became visible: at the attempt's end, or with a late signal
}

type Judged struct {
	ID         string         `json:"id"`
	At         time.Time      `json:"at"`
	Backend    string         `json:"backend"`
	Context    policy.Context `json:"context"`
	Grade      Grade          `json:"grade"`                // without disbelieved sources
	Quarantine []string       `json:"quarantine,omitempty"` // why a source's grade did not count; empty for none
}

// Learned is the result of all rows.
type Learned struct {
	rows  []checkedRow
	of    map[armKey][]int // row positions, oldest first
	found []Violation      // in order of time
	agree [sourceCount]Agreement
	trust trust
	now   time.Time
}

type checkedRow struct {
	*Graded
	set signalSet
	aside
	broken []string // implausible values
	reward float64  // reward and weight are valid only if learnt
	weight float64  // the number of rewards it counts as
	learnt bool
}

// Why a value does not count.
const (
	isStuck        = "the source gives the same value again and again"
	isUnavailable  = "the source fails too often"
	isDegraded     = "the source is degraded"
	isContradicted = "its lowest grades are more often contradicted than confirmed"
	isBlind        = "what it was shown of the attempt is incomplete"
	isUnfounded    = "it praises an attempt that changed nothing"
)

// Learn validates all rows and computes their rewards. It ignores rows and signals after now. Of rows with equal IDs
// the last counts.
func Learn(rows []Graded, now time.Time) Learned {
	l := Learned{rows: ordered(rows, now), now: now}
	c := checks{Learned: &l, streaks: map[string]*[sourceCount]streak{}}
	c.run()
	l.group()
	return l
}

func (l *Learned) group() {
	l.of = map[armKey][]int{}
	for i := range l.rows {
		key := armKey{l.rows[i].Backend, l.rows[i].Escalated}
		l.of[key] = append(l.of[key], i)
	}
}

func ordered(rows []Graded, now time.Time) []checkedRow {
	var known []*Graded
	for i := range rows {
		if !rows[i].At.After(now) {
			known = append(known, upTo(&rows[i], now))
		}
	}
	slices.SortStableFunc(known, byEnd)
	checked := make([]checkedRow, 0, len(known))
	for i, g := range known {
		if i+1 < len(known) && byEnd(g, known[i+1]) == 0 {
			continue // the last of equal rows is kept
		}
		checked = append(checked, checkedRow{Graded: g, set: g.signals()})
	}
	return checked
}

func byEnd(a, b *Graded) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
}

func upTo(g *Graded, now time.Time) *Graded {
	late := func(s Signal) bool { return s.At.After(now) }
	if !slices.ContainsFunc(g.Signals, late) {
		return g
	}
	earlier := *g
	earlier.Signals = slices.DeleteFunc(slices.Clone(g.Signals), late)
	return &earlier
}

// Judged lists all attempts by end, with their grades after validation.
func (l Learned) Judged() []Judged {
	all := make([]Judged, len(l.rows))
	for i := range l.rows {
		r := &l.rows[i]
		g, _ := r.grade(&r.set, &r.aside, &l.trust)
		all[i] = Judged{ID: r.ID, At: r.At, Backend: r.Backend, Context: r.Context, Grade: g, Quarantine: r.reasons()}
	}
	return all
}
