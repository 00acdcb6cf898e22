package thread

import (
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Webhooks come in any order, so what a remark does to others goes by when it was
// made, in GitHub's whole seconds; the order of the log decides between equal times.

// read takes over the texts of a remark's snapshot. Those that the agent reads are frozen
// as they were when somebody who may ask for work did so: what others write into
// the thread afterwards, asking for nothing, does not reach a later attempt.
func (s *State) read(f Feedback) {
	if n := f.Snapshot; n != nil && n.Title != "" && !f.MadeAt.Before(s.readMade) {
		s.Snapshot.Title, s.Snapshot.Body, s.readMade = n.Title, n.Body, f.MadeAt
	}
}

// editedBack withdraws description edits that no attempt has taken when the text is again one that is known.
func (s *State) editedBack(back Feedback) {
	for i := range s.Feedback {
		if f := &s.Feedback[i]; f.endsBy(back) {
			f.Withdrawn = editedBack
			// Nobody worked on that text, so it may be asked for again.
			s.Known = slices.DeleteFunc(s.Known, func(k string) bool { return k == f.Description })
		}
	}
}

// endsBy reports whether feedback is a description edit that no attempt has taken and
// that another text of the description takes back.
func (r Request) endsBy(back Feedback) bool {
	return r.Source == policy.FromDescription && back.Description != "" && r.Taken == 0 && r.Withdrawn == "" &&
		r.Description != back.Description && !r.MadeAt.After(back.MadeAt)
}

// TakenBack reports whether a description that asks for nothing takes back what is
// asked for: then people must see that it is asked for no more.
func (s State) TakenBack(back Feedback) bool {
	return slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.endsBy(back) })
}

const editedBack = "the description was edited back"

// late says why feedback is none any more when it arrives; empty where it counts.
func (s *State) late(f Feedback) string {
	if s.Outdated(f) {
		return "a newer version of it was accepted before"
	}
	if why := s.ClosedSince(f.MadeAt); why != "" {
		return why + " after it was made"
	}
	return s.takenBack(f)
}

// ClosedSince says why the thread cannot be worked on, if that is so since after a
// time: what was asked for until then is over, as it would be had it come in time.
func (s State) ClosedSince(at time.Time) string {
	if at.IsZero() || !at.Before(s.closedAt) {
		return ""
	}
	return s.Closed
}

// takenBack says why an edit of the description is none any more when it arrives:
// the edit back, which begins where this one ends, was faster.
func (s *State) takenBack(f Feedback) string {
	for _, back := range s.Ignored {
		if f.Source == policy.FromDescription && back.Description != "" && back.Baseline == f.Description && !back.MadeAt.Before(f.MadeAt) {
			return editedBack
		}
	}
	return ""
}

// Outdated reports whether a comment is accepted already, as it is or in a newer
// version. What was ignored stands in nobody's way, since its text may not have been
// judged; nor do descriptions, of which an edit counts by what it added.
//
// Whoever judges a comment asks before, and the fold asks again: two versions may
// be judged at the same time, by the same log.
func (s State) Outdated(f Feedback) bool {
	if f.Target.Kind != "issue_comment" && f.Target.Kind != "review_comment" {
		return false
	}
	for i := range s.Feedback { // by index, for a log may hold thousands of them
		g := &s.Feedback[i].Feedback
		if g.Target.ID == f.Target.ID && g.Target == f.Target && g.Source == f.Source && (f.First || madeBefore(f, *g)) {
			return true
		}
	}
	return false
}

// madeBefore reports whether a remark is older than another one. GitHub's times are whole seconds; ids of one
// kind grow, and a comment comes before its edits. What has no time is older than nothing.
func madeBefore(a, b Feedback) bool {
	switch {
	case a.MadeAt.IsZero() || b.MadeAt.IsZero():
		return false
	case a.MadeAt.Equal(b.MadeAt) && a.Target == b.Target:
		return a.First && !b.First
	case a.MadeAt.Equal(b.MadeAt):
		return a.Target.Kind != "" && a.Target.Kind == b.Target.Kind && a.Target.ID < b.Target.ID
	}
	return a.MadeAt.Before(b.MadeAt)
}
