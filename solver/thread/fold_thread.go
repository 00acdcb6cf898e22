package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

func (s *State) control(e Event, c Feedback) {
	s.see(c.Snapshot, c.Delivery)
	c.Seq, c.At = e.Seq, e.At
	s.Controls = append(s.Controls, c)
	if s.overtaken(c) {
		return
	}
	if carryOut, known := controls[c.Command]; known {
		carryOut(s, c)
	}
}

// controls carry out the commands of policy.Commands that control a thread. A log may also hold a command of another
// version, which changes nothing here.
var controls = map[string]func(*State, Feedback){
	"stop": func(s *State, c Feedback) { s.Stopped, s.Stop = fmt.Sprintf("%s asked to stop", c.By.Login), c },
	"use":  func(s *State, c Feedback) { s.Pinned, s.PinnedBy = c.Backend, c },
}

// overtaken reports whether an order came so late that somebody asked for work, or
// gave the same order anew, after it was given.
func (s *State) overtaken(c Feedback) bool {
	anew := func(f Feedback) bool { return f.Command == c.Command && madeBefore(c, f) }
	if slices.ContainsFunc(s.Controls, anew) {
		return true
	}
	return slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.asked() && madeBefore(c, r.Feedback) })
}

// asked reports whether the feedback is no result of checks and nobody withdrew it.
func (r Request) asked() bool { return r.Withdrawn == "" && r.Source != policy.FromCheckRun }

func (s *State) change(e Event, c Change) {
	s.see(c.Snapshot, c.Delivery)
	if kind := s.meaning(c); kind != "" {
		s.People = append(s.People, PeopleVerdict{Kind: kind, By: c.By, At: e.At, Number: c.Number})
	}
	s.closedBecause(c)
	if slices.Contains(undoes[c.What], s.closedBy) {
		s.Closed, s.closedBy = "", ""
	}
	switch c.What {
	case "head_moved":
		s.moved(e, c)
	case "base_moved":
		s.BaseMoved = e.At
	case "pull_reopened":
		s.Pull = c.Number
		s.Acts[ActPull] = ActState{Act: Act{Key: ActPull, ID: int64(c.Number), URL: c.URL}, Done: true, At: s.At}
	case "pull_closed", "pull_merged":
		// The next run on the issue opens a pull request of its own.
		s.Pull = 0
		delete(s.Acts, ActPull)
	}
}

// undoes names, for a change, the closings that it takes back.
var undoes = map[string][]string{
	"reopened":      {"closed", "merged"},
	"pull_reopened": {"pull_closed"},
	"installed":     {"uninstalled", "repository_deleted"},
}

func (c Change) byBot() bool { return strings.HasSuffix(c.By, "[bot]") }

// closes says why the thread cannot be worked on after the change; empty if it can.
func (c Change) closes() string {
	switch c.What {
	case "closed":
		return fmt.Sprintf("the thread was %s by %s", cmp.Or(c.Detail, "closed"), c.By) // transferred, deleted
	case "merged":
		return "the pull request was merged by " + c.By
	case "pull_closed":
		return "Pawl's pull request was closed by " + c.By
	case "pull_merged":
		return "Pawl's pull request was merged by " + c.By
	case "uninstalled":
		return c.lostAccess()
	case "renamed":
		return "the repository was renamed to " + c.Detail + "; ask again there"
	case "repository_deleted":
		return "the repository was " + cmp.Or(c.Detail, "deleted or archived")
	case "branch_deleted":
		return fmt.Sprintf("branch %s was deleted by %s", c.Detail, c.By)
	}
	return ""
}

// lostAccess says why the App does not reach the repository: by the webhook's word, or as GitHub's answer told.
func (c Change) lostAccess() string {
	switch c.Detail {
	case "":
		return "the App was uninstalled or lost access to the repository"
	case "deleted":
		return "the App was uninstalled"
	case "suspend":
		return "the App's installation was suspended"
	case "removed":
		return "the repository was removed from the App's installation"
	}
	return c.Detail
}

func (s *State) closedBecause(c Change) {
	why := c.closes()
	if why == "" {
		return
	}
	if absent(c.What) && s.Closed != "" {
		return
	}
	s.Closed, s.closedBy, s.closedAt, s.renamedTo = why, c.What, c.MadeAt, ""
	if c.What == "renamed" {
		s.renamedTo = c.Detail
	}
	// What was pushed so far asks for no pull request any more.
	s.Head = ""
}

// moved records a commit that a person pushed.
func (s *State) moved(e Event, c Change) {
	if c.byBot() || len(s.Moves) >= maxMoves {
		return
	}
	if !slices.ContainsFunc(s.Moves, func(m Move) bool { return m.SHA == c.Detail }) {
		s.Moves = append(s.Moves, Move{c.Detail, e.At})
	}
}

// Absent reports whether Pawl is kept from the repository now, under the name that the thread has.
func (s State) Absent() bool { return absent(s.closedBy) }

// absent says that a change keeps Pawl from the repository, under its name at least.
// It may be for a while, and is no word about the thread.
func absent(what string) bool {
	switch what {
	case "uninstalled", "renamed", "repository_deleted":
		return true
	}
	return false
}

// Move is a commit that a person pushed.
type Move struct {
	SHA string
	At  time.Time
}

// maxMoves bounds those that are remembered: five changes weigh like any number of them.
const maxMoves = 50

// PeopleVerdict is what somebody did with the work: merged, reverted, approved and so on.
type PeopleVerdict struct {
	Kind   learning.PeopleKind
	By     string
	At     time.Time
	Number int // the pull request; 0 where it is not known
}

// meaning is what a change says of the work; empty for nothing.
func (s *State) meaning(c Change) learning.PeopleKind {
	kind := meanings[c.What]
	if c.byBot() && kind != learning.Merged {
		return "" // bots close what is old and approve what is in their list
	}
	if c.What == "closed" && !s.Snapshot.Pull {
		return ""
	}
	return kind
}

// meanings are what changes say of the work.
var meanings = map[string]learning.PeopleKind{
	"merged":            learning.Merged,
	"pull_merged":       learning.Merged,
	"closed":            learning.ClosedUnmerged,
	"pull_closed":       learning.ClosedUnmerged,
	"approved":          learning.Approved,
	"changes_requested": learning.ChangesRequested,
	"reverted":          learning.Reverted,
	"thumbs_up":         learning.ThumbsUp,
	"thumbs_down":       learning.ThumbsDown,
}

// maxIgnored bounds the ignored remarks that a state remembers: the newest tell
// why something was not acted on, and anybody can add to them.
const maxIgnored = 100

func (s *State) ignored(e Event, f Feedback) {
	s.see(f.Snapshot, "")
	f.Seq, f.At = e.Seq, e.At
	s.checked(f)
	s.Ignored = append(s.Ignored, f)
	if len(s.Ignored) > maxIgnored {
		// Edits back still decide over edits that come late, so others go first.
		oldest := max(0, slices.IndexFunc(s.Ignored, func(f Feedback) bool { return f.Description == "" }))
		s.Ignored = slices.Delete(s.Ignored, oldest, oldest+1)
	}
	if f.Description != "" {
		s.read(f)
		s.editedBack(f)
	}
}

// ClosedAtGitHub says that the issue or pull request itself is closed, which no order but reopening it changes; empty
// where work that is asked for may begin.
func (s *State) ClosedAtGitHub() string {
	switch s.closedBy {
	case "closed", "merged":
		return s.Closed
	}
	return ""
}

// Webhooks come in any order, so what a remark does to others goes by when it was
// made, in GitHub's whole seconds; the order of the log decides between equal times.

// read takes over the texts of a remark's snapshot. Those that the agent reads are frozen
// as they were when somebody who may ask for work did so: what others write into
// the thread afterwards, asking for nothing, does not reach a later attempt.
func (s *State) read(f Feedback) {
	n := f.Snapshot
	if n == nil || n.Title == "" {
		return
	}
	if !f.MadeAt.Before(s.readMade) {
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
	if r.Source != policy.FromDescription || !r.takenBy(0) {
		return false
	}
	switch back.Description {
	case "", r.Description:
		return false
	}
	return !r.MadeAt.After(back.MadeAt)
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
	if f.Source != policy.FromDescription {
		return ""
	}
	for _, back := range s.Ignored {
		if back.Description == "" || back.Baseline != f.Description {
			continue
		}
		if !back.MadeAt.Before(f.MadeAt) {
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
	switch f.Target.Kind {
	case "issue_comment", "review_comment":
	default:
		return false
	}
	for i := range s.Feedback { // by index, for a log may hold thousands of them
		g := &s.Feedback[i].Feedback
		if g.Target != f.Target || g.Source != f.Source {
			continue
		}
		if f.First || madeBefore(f, *g) {
			return true
		}
	}
	return false
}

// madeBefore reports whether a remark is older than another one. GitHub's times are whole seconds; ids of one
// kind grow, and a comment comes before its edits. What has no time is older than nothing.
func madeBefore(a, b Feedback) bool {
	if a.MadeAt.IsZero() || b.MadeAt.IsZero() {
		return false
	}
	switch {
	case !a.MadeAt.Equal(b.MadeAt):
		return a.MadeAt.Before(b.MadeAt)
	case a.Target == b.Target:
		return a.First && !b.First
	case a.Target.Kind == "":
		return false
	}
	return a.Target.Kind == b.Target.Kind && a.Target.ID < b.Target.ID
}
