package thread

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/policy/learning"
)

// Changes are users' requests and their own pushes.
func TestMergeIsWorthLessAfterMoreChanges(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	hour := func(h int) time.Time { return at.Add(time.Duration(h) * time.Hour) }
	attempt := func(n int) Attempt {
		a := Attempt{EndedAt: hour(2 * n), Pull: 7}
		a.Started.N, a.At, a.Receipt = n, hour(2*n-1), policy.Receipt{Pushed: true, Commit: string(rune('a' + n))}
		return a
	}
	remark := func(n int, by string) Request {
		return Request{Feedback: Feedback{By: feedback.Actor{Login: by, Type: map[bool]string{true: "Bot", false: "User"}[by == "ci[bot]"]}}, Taken: n}
	}
	merged := PeopleVerdict{Kind: learning.Merged, By: "ada", At: hour(20), Number: 7}
	state := State{Attempts: []Attempt{attempt(1), attempt(2), attempt(3), attempt(4)},
		Feedback: []Request{remark(1, "ada"), remark(3, "ada"), remark(4, "ci[bot]")}, People: []PeopleVerdict{merged}}
	value := func(s State, i int) float64 {
		all := s.people(i)
		if len(all) == 0 {
			return -1
		}
		return all[0].Value
	}
	pushed := state
	pushed.Moves = []Move{{"x", hour(10)}, {"y", hour(11)}, {"e", hour(8)}, {"z", hour(30)}}
	many := pushed
	many.Moves = append(many.Moves, Move{"v", hour(12)}, Move{"w", hour(13)})
	reverted := state
	reverted.People = []PeopleVerdict{merged, {Kind: learning.Reverted, By: "ada", At: hour(30), Number: 7}}
	for _, c := range []struct {
		what  string
		state State
		i     int
		want  float64
	}{
		{"the last round, merged unchanged", state, 3, 1},
		{"a round that the ladder retried has no grade", state, 0, -1},
		{"a round before a user's request", state, 1, 0.8},
		{"a round before failing checks has no grade", state, 2, -1},
		{"two commits by a user on top", pushed, 3, 0.6},
		{"two commits and a request by users", pushed, 1, 0.4},
		{"the lowest value", many, 3, 0.4},
		{"a revert cancels the merge of earlier rounds", reverted, 1, -1},
	} {
		if got := value(c.state, c.i); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// Each run's first attempt at a change is its first try, unless it is itself a recovery.
func TestFirstTryOfEachRun(t *testing.T) {
	attempt := func(run int, p policy.Purpose, rung int) (a Attempt) {
		a.Run, a.Decision.Purpose, a.Decision.Rung = run, p, rung
		a.Receipt = policy.Receipt{Outcome: policy.WorkVerified, Ending: policy.Completed, Verify: []policy.Verified{{Passed: true, Runner: "go"}}}
		return a
	}
	s := State{Attempts: []Attempt{
		attempt(1, policy.ToAnswer, 0), attempt(1, policy.ToChange, 0), attempt(1, policy.ToChange, policy.RungVerify),
		attempt(2, policy.ToChange, policy.RungEffort), attempt(2, policy.ToChange, 0), attempt(3, policy.ToChange, 0),
	}}
	s.Attempts[5].Receipt.Verify = nil     // the repository has no verify commands
	for i := 1; i < len(s.Attempts); i++ { // the answer has no grade
		g := s.Grade(ID{}, i, policy.Defaults().Severity)
		if first := g.FirstTry != nil; first != (i == 1) {
			t.Errorf("attempt %d of run %d is a first try: %t", i, s.Attempts[i].Run, first)
		}
	}
}
