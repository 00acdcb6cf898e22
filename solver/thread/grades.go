package thread

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// Grade returns an attempt with everything known about its worth. It depends only on the log.
func (s State) Grade(t ID, i int, severity policy.SeverityLimits) learning.Graded {
	a := s.Attempts[i]
	r, at := a.Receipt, a.EndedAt
	g := learning.Graded{
		ID: fmt.Sprintf("%s/%d", t, a.N), At: at, Context: s.Task(t).Context(),
		Backend: a.Backend, Model: a.Model, Effort: a.Effort, Escalated: a.Decision.Escalated, Seconds: float64(r.AgentMS) / 1000,
		Facts: learning.AttemptFacts{
			Outcome: r.Outcome, Changed: r.Progress(),
		},
	}
	if r.Session != "" || r.ToolCalls > 0 {
		// Plain output records no calls.
		g.Facts.Transcript = &learning.Transcript{Bytes: r.Trajectory.Bytes}
	}
	if a.Context != (policy.Context{}) {
		// Labels and texts may have changed since the start.
		g.Context = a.Context
	}
	if c := a.Decision.Choice; c != nil {
		g.Chosen = strings.Join(c.Reasons, "; ")
	}
	if r.CostUSD != nil {
		g.CostUSD = *r.CostUSD
	}
	if r.Pushed {
		g.Facts.Commits = 1
	}
	g.Fired = learning.FiredIn(r.Rungs)
	g.Similarity = s.similarity(i, severity)
	if r.Outcome == policy.Interrupted {
		g.Facts.OwnFailure = r.Detail
	}
	verifies := len(a.Repo.Verify) > 0 || len(r.Verify) > 0
	if verifies && s.triesFirst(i) {
		g.FirstTry = g.Facts.FirstTry(r)
	}
	verifier := learning.VerifierSignal(verifies, r, at)
	trajectory := learning.TrajectorySignal(r, at)
	if a.Kind == config.Command && r.ToolCalls == 0 {
		trajectory = learning.Signal{Source: learning.TrajectorySource, At: at, Missing: "the command prints no calls of tools"}
	}
	g.Signals = append(s.people(i), learning.SeveritySignal(severity.Loop(r), at), verifier, s.ci(i),
		learning.JudgeSignal(r.Judge, at), trajectory, learning.JournalSignal(r, verifier, at))
	return g
}

// triesFirst reports whether an attempt is its run's first change and no recovery such as /pawl escalate.
func (s State) triesFirst(i int) bool {
	a := s.Attempts[i]
	if a.Decision.Rung != 0 {
		return false
	}
	return !slices.ContainsFunc(s.Attempts[:i], func(b Attempt) bool {
		return b.Run == a.Run && b.Decision.Purpose == policy.ToChange
	})
}

// similarity compares an attempt with the previous one of its run, or returns nil.
func (s State) similarity(i int, severity policy.SeverityLimits) *float64 {
	if i == 0 {
		return nil
	}
	before, a := s.Attempts[i-1], s.Attempts[i]
	if before.Run != a.Run || before.NoAgent {
		return nil
	}
	limits := policy.Limits{Severity: severity, Stagnation: policy.Defaults().Stagnation}
	similar := policy.Stagnation([]policy.Attempt{s.Fact(before), s.Fact(a)}, a.Run, limits).Similarity
	return &similar
}

// ci returns the signal of other Apps' checks on the attempt's commit.
func (s State) ci(i int) learning.Signal {
	a := s.Attempts[i]
	at, results := a.EndedAt, map[string]learning.CheckResult{}
	for _, c := range s.Checks {
		if c.SHA != "" && c.SHA == a.Receipt.Commit {
			results[c.Name] = c.CheckResult
			at = policy.Later(at, c.At)
		}
	}
	var all []learning.CheckResult
	for _, name := range slices.Sorted(maps.Keys(results)) {
		all = append(all, results[name])
	}
	return learning.CISignal(all, at)
}

// people returns signals of people's acts. An act belongs to the last attempt pushed before it. A merge also belongs to
// the earlier attempts on which people built.
func (s State) people(i int) []learning.Signal {
	var out []learning.Signal
	for _, d := range s.People {
		if signal, ok := s.signal(i, d); ok {
			out = append(out, signal)
		}
	}
	return out
}

func (s State) signal(i int, d PeopleVerdict) (_ learning.Signal, ok bool) {
	last := s.judgedBy(d)
	if d.Kind == learning.Merged {
		return learning.MergedSignal(s.changes(i, last, d.At), d.By, d.At), s.mergedWith(i, last, d)
	}
	return learning.PeopleSignal(d.Kind, d.By, d.At), i == last
}

// mergedWith reports whether merging the last attempt's work includes an earlier attempt's unreverted work.
func (s State) mergedWith(i, last int, merge PeopleVerdict) bool {
	if i >= last {
		return i == last
	}
	if !s.Attempts[i].Receipt.Pushed || !s.wasRequested(i+1) {
		return false
	}
	return !slices.ContainsFunc(s.People, func(r PeopleVerdict) bool {
		return r.Kind == learning.Reverted && r.Number == merge.Number
	})
}

// changes counts requested attempts and users' pushes between an attempt and the merge.
func (s State) changes(i, last int, merged time.Time) (n int) {
	for j := i + 1; j <= last; j++ {
		if s.wasRequested(j) {
			n++
		}
	}
	for _, m := range s.Moves {
		if !m.At.After(s.Attempts[i].EndedAt) || !m.At.Before(merged) {
			continue
		}
		if !slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Receipt.Commit == m.SHA }) {
			n++
		}
	}
	return n
}

func (s State) wasRequested(i int) bool {
	return slices.ContainsFunc(s.takenBy(s.Attempts[i].N), func(r Request) bool {
		switch r.Source {
		case policy.FromCheckRun, policy.FromBase:
			return false
		default:
			return !r.By.Bot()
		}
	})
}

// judgedBy returns the index of the judged attempt, or -1. An act may precede the receipt, since the push does.
func (s State) judgedBy(d PeopleVerdict) int {
	last := -1
	for i, a := range s.Attempts {
		if a.At.Before(d.At) && a.pushedTo(d.Number) {
			last = i
		}
	}
	return last
}
