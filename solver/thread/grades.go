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

// Grade is one attempt with everything that is known of its worth. It is a
// function of the log, so writing it again changes nothing.
func Grade(s State, t ID, i int, severity policy.SeverityLimits) learning.Graded {
	a := s.Attempts[i]
	r, at := a.Receipt, a.EndedAt
	g := learning.Graded{
		ID: fmt.Sprintf("%s/%d", t, a.N), At: at, Context: s.Task(t).Context(),
		Backend: a.Backend, Model: a.Model, Effort: a.Effort, Escalated: a.Decision.Escalated, Seconds: float64(r.AgentMS) / 1000,
		Facts: learning.AttemptFacts{
			Ending: r.Ending, Outcome: r.Outcome, Changed: r.Progress(), Silent: r.WentSilent(),
		},
	}
	if r.Session != "" || r.ToolCalls > 0 {
		// A program that prints plain text leaves no record of what it did.
		g.Facts.Transcript = &learning.Transcript{Bytes: r.Trajectory.Bytes}
	}
	if a.Context != (policy.Context{}) {
		// Labels and texts may have changed since.
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
	if i > 0 && s.Attempts[i-1].Run == a.Run && !s.Attempts[i-1].NoAgent {
		pair := []policy.Attempt{s.Fact(s.Attempts[i-1]), s.Fact(a)}
		similar := policy.Stagnation(pair, a.Run, policy.Limits{Severity: severity, Stagnation: policy.Defaults().Stagnation}).Similarity
		g.Similarity = &similar
	}
	if r.Outcome == policy.Interrupted {
		g.Facts.OwnFailure = r.Detail
	}
	verifier := learning.VerifierSignal(len(a.Repo.Verify) > 0 || len(r.Verify) > 0, r, at)
	trajectory := learning.TrajectorySignal(r, at)
	if a.Kind == config.Command && r.ToolCalls == 0 {
		trajectory = learning.Signal{Source: learning.TrajectorySource, At: at, Missing: "the command prints no calls of tools"}
	}
	g.Signals = append(people(s, i), learning.SeveritySignal(severity.Loop(r), at), verifier, ci(s, i),
		learning.JudgeSignal(r.Judge, at), trajectory, learning.JournalSignal(r, verifier, at))
	return g
}

// ci is the signal of the checks of others on the commit that an attempt pushed.
func ci(s State, i int) learning.Signal {
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

// people are the signals of what people did with the work of an attempt. They belong to the last attempt that had pushed
// to their pull request by then, a merge also to those before on which people asked for more.
func people(s State, i int) []learning.Signal {
	var out []learning.Signal
	for _, d := range s.People {
		last := judgedBy(s, d)
		switch undone := func(r PeopleVerdict) bool { return r.Kind == learning.Reverted && r.Number == d.Number }; {
		case d.Kind == learning.Merged && i == last,
			d.Kind == learning.Merged && i < last && s.Attempts[i].Receipt.Pushed && asked(s, i+1) && !slices.ContainsFunc(s.People, undone):
			out = append(out, learning.MergedSignal(changes(s, i, last, d.At), d.By, d.At))
		case i == last:
			out = append(out, learning.PeopleSignal(d.Kind, d.By, d.At))
		}
	}
	return out
}

// changes are those that came between an attempt and the merge: what people asked of later attempts, and pushed themselves.
func changes(s State, i, last int, merged time.Time) (n int) {
	for j := i + 1; j <= last; j++ {
		if asked(s, j) {
			n++
		}
	}
	for _, m := range s.Moves {
		theirs := func(a Attempt) bool { return a.Receipt.Commit == m.SHA }
		if m.At.After(s.Attempts[i].EndedAt) && m.At.Before(merged) && !slices.ContainsFunc(s.Attempts, theirs) {
			n++
		}
	}
	return n
}

// asked reports whether an attempt began with what a person said.
func asked(s State, i int) bool {
	return slices.ContainsFunc(s.takenBy(s.Attempts[i].N), func(r Request) bool {
		return !r.By.Bot() && r.Source != policy.FromCheckRun && r.Source != policy.FromBase
	})
}

// judgedBy is the index of the attempt that people judged; -1 for none. The
// receipt may come after the word: an attempt has pushed before its end.
func judgedBy(s State, d PeopleVerdict) int {
	last := -1
	for i, a := range s.Attempts {
		same := d.Number == 0 || a.Pull == 0 || a.Pull == d.Number
		if a.Receipt.Pushed && same && a.At.Before(d.At) {
			last = i
		}
	}
	return last
}
