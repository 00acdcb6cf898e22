package thread

import (
	"slices"

	"github.com/pawlbot/pawl/policy"
)

// changing is what asks for a change, and not only for an answer.
func changing(all []Request) []Request {
	return slices.DeleteFunc(all, func(r Request) bool { return r.Purpose != policy.ToChange })
}

// purposeOf is the purpose of the attempt which a piece of feedback asks for: of what it goes on with, where it only goes on.
func purposeOf(s *State, f Feedback) policy.Purpose {
	switch f.Command {
	case "ask", "plan":
		return policy.Purpose(f.Command)
	case "retry", "resume", "raise", "escalate":
		if fresh := s.Fresh(); len(fresh) > 0 {
			return fresh[len(fresh)-1].Purpose
		}
		return s.Purpose()
	}
	return policy.ToChange
}

// Purpose is that of the attempt which runs, of what was asked for where nothing was decided of that yet, or of the
// last decision.
func (s State) Purpose() policy.Purpose {
	a, running := s.Running()
	d, fresh := s.Decision, s.Fresh()
	switch {
	case running:
		return a.Decision.Purpose
	case s.Open() && (d == nil || ending(d.Action)) && len(fresh) > 0:
		return fresh[0].Purpose
	case d != nil:
		return d.Purpose
	}
	return policy.ToChange
}

// Before is the thread as the work on it stood before the run, where that only asks something; ok is false where it
// does more, or nothing was before.
func Before(s State) (_ State, ok bool) {
	if s.worked == nil || s.Run == s.workedRun || s.Purpose() == policy.ToChange ||
		slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Run == s.Run && a.Decision.Purpose == policy.ToChange }) {
		return s, false
	}
	s.Decision, s.Run, s.Ended = s.worked, s.workedRun, true
	s.Attempts = slices.DeleteFunc(slices.Clone(s.Attempts), func(a Attempt) bool { return a.Run > s.Run })
	s.Feedback = slices.DeleteFunc(slices.Clone(s.Feedback), func(r Request) bool { return r.Seq > s.worked.Seen })
	return s, true
}

// Plan is the last plan that an agent made, and the order to work by it that an attempt for a change is to follow; each
// is nil for none.
func Plan(s State) (made *Attempt, order *Request) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Decision.Purpose == policy.ToPlan && a.Receipt.Outcome == policy.Answered {
			made = a
		}
	}
	for _, r := range s.Work(s.Seq, policy.ToChange) {
		if r.Command == "go" {
			order = &r
		}
	}
	return made, order
}
