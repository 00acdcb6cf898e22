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

// controls are the effects of the commands that control a thread. Commands of another version have none.
var controls = map[string]func(*State, Feedback){
	"stop": func(s *State, c Feedback) { s.Stopped, s.Stop = fmt.Sprintf("%s asked to stop", c.By.Login), c },
	"use":  func(s *State, c Feedback) { s.Pinned, s.PinnedBy = c.Backend, c },
}

// overtaken reports whether a command arrived after a later request for work, or a later equal command.
func (s *State) overtaken(c Feedback) bool {
	anew := func(f Feedback) bool { return f.Command == c.Command && madeBefore(c, f) }
	if slices.ContainsFunc(s.Controls, anew) {
		return true
	}
	return slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.asked() && madeBefore(c, r.Feedback) })
}

// asked reports whether the feedback is not a check's result and was not withdrawn.
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
		// The next run on the issue opens its own pull request.
		s.Pull = 0
		delete(s.Acts, ActPull)
	}
}

// undoes maps a change to the closings that it reverses.
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
	// Commits pushed so far need no pull request any more.
	s.Head = ""
}

func (s *State) moved(e Event, c Change) {
	if c.byBot() || len(s.Moves) >= maxMoves {
		return
	}
	if !slices.ContainsFunc(s.Moves, func(m Move) bool { return m.SHA == c.Detail }) {
		s.Moves = append(s.Moves, Move{c.Detail, e.At})
	}
}

// Absent reports whether Pawl has no access to the repository under the thread's name.
func (s State) Absent() bool { return absent(s.closedBy) }

// absent reports whether a change takes Pawl's access to the repository, at least under its name. It may be
// temporary, and says nothing about the thread.
func absent(what string) bool {
	switch what {
	case "uninstalled", "renamed", "repository_deleted":
		return true
	}
	return false
}

// Move is a commit that a user pushed.
type Move struct {
	SHA string
	At  time.Time
}

// maxMoves limits the remembered ones: five changes count like any larger number.
const maxMoves = 50

// PeopleVerdict is an act of people on the work: merged, reverted, approved and so on.
type PeopleVerdict struct {
	Kind   learning.PeopleKind
	By     string
	At     time.Time
	Number int // the pull request; 0 if unknown
}

// meaning is what a change says about the work; empty for nothing.
func (s *State) meaning(c Change) learning.PeopleKind {
	kind := meanings[c.What]
	if c.byBot() && kind != learning.Merged {
		return "" // bots close old pull requests and approve by lists
	}
	if c.What == "closed" && !s.Snapshot.Pull {
		return ""
	}
	return kind
}

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

// maxIgnored limits the remembered ignored remarks: the newest ones answer why, and everyone can add to them.
const maxIgnored = 100

func (s *State) ignored(e Event, f Feedback) {
	s.see(f.Snapshot, "")
	f.Seq, f.At = e.Seq, e.At
	s.checked(f)
	s.Ignored = append(s.Ignored, f)
	if len(s.Ignored) > maxIgnored {
		// Reverted edits still decide about late edits, so others are dropped first.
		oldest := max(0, slices.IndexFunc(s.Ignored, func(f Feedback) bool { return f.Description == "" }))
		s.Ignored = slices.Delete(s.Ignored, oldest, oldest+1)
	}
	if f.Description != "" {
		s.read(f)
		s.editedBack(f)
	}
}

// ClosedAtGitHub says that the issue or pull request itself is closed, which only reopening changes; empty if
// requested work may begin.
func (s *State) ClosedAtGitHub() string {
	switch s.closedBy {
	case "closed", "merged":
		return s.Closed
	}
	return ""
}

// Webhooks come in any order, so a remark's effect on others depends on when it was made, in GitHub's whole
// seconds; the log's order decides between equal times.

// read stores the texts of a remark's snapshot. The agent's texts are frozen when a permitted user asks for work:
// later texts of others that ask for nothing do not reach a later attempt.
func (s *State) read(f Feedback) {
	n := f.Snapshot
	if n == nil || n.Title == "" {
		return
	}
	if !f.MadeAt.Before(s.readMade) {
		s.Snapshot.Title, s.Snapshot.Body, s.readMade = n.Title, n.Body, f.MadeAt
	}
}

// editedBack withdraws untaken description edits when the text returns to a known one.
func (s *State) editedBack(back Feedback) {
	for i := range s.Feedback {
		if f := &s.Feedback[i]; f.endsBy(back) {
			f.Withdrawn = editedBack
			// Nobody worked on that text, so it may be requested again.
			s.Known = slices.DeleteFunc(s.Known, func(k string) bool { return k == f.Description })
		}
	}
}

// endsBy reports whether feedback is an untaken description edit that another text of the description takes back.
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

// TakenBack reports whether a description that asks for nothing takes back a request, which users must see.
func (s State) TakenBack(back Feedback) bool {
	return slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.endsBy(back) })
}

const editedBack = "the description was edited back"

// late says why feedback does not count when it arrives; empty if it does.
func (s *State) late(f Feedback) string {
	if s.Outdated(f) {
		return "a newer version of it was accepted before"
	}
	if why := s.ClosedSince(f.MadeAt); why != "" {
		return why + " after it was made"
	}
	return s.takenBack(f)
}

// ClosedSince says why the thread cannot be worked on, if that began after a time: requests from before are void,
// as if they had arrived in time.
func (s State) ClosedSince(at time.Time) string {
	if at.IsZero() || !at.Before(s.closedAt) {
		return ""
	}
	return s.Closed
}

// takenBack says why a description edit does not count when it arrives: the revert, which begins where this edit
// ends, was faster.
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

// Outdated reports whether a comment is accepted already, as it is or in a newer version. Ignored versions do not
// block, since their text may not have been judged. Nor do descriptions, whose edits count by their additions.
//
// The judge of a comment calls it before, and the fold calls it again: two versions may be judged at the same time
// against the same log.
func (s State) Outdated(f Feedback) bool {
	switch f.Target.Kind {
	case "issue_comment", "review_comment":
	default:
		return false
	}
	for i := range s.Feedback { // by index: a log may have thousands
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

// madeBefore reports whether a remark is older than another one. GitHub's times are whole seconds; ids of one kind
// grow, and a comment precedes its edits. A remark without a time is older than nothing.
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
