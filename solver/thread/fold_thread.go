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

// steer returns what becomes of a steer command's text; empty for other feedback.
func (s *State) steer(f Feedback) policy.Steer {
	if !policy.CommandNamed(f.Command).Joins {
		return ""
	}
	a, running := s.Running()
	running = running && !a.NoAgent
	steer := policy.Steering{Running: running, Before: a.Steers}.Decide()
	if running {
		s.Attempts[len(s.Attempts)-1].Steers++
	}
	s.requestReply(f, steer)
	return steer
}

// replaceSteer withdraws an earlier version of an edited steer command that the agent has not received.
func (s *State) replaceSteer(f Feedback) {
	if f.Target.ID == 0 || !policy.CommandNamed(f.Command).Joins {
		return
	}
	for i := range s.Feedback {
		r := &s.Feedback[i]
		waits := r.takenBy(0) && r.Steer != ""
		if waits && r.Target == f.Target {
			r.Withdrawn = "a newer version replaced it"
		}
	}
}

// requestReply asks for an answer to a steer command whose text the agent does not receive.
func (s *State) requestReply(f Feedback, steer policy.Steer) {
	if steer.NeedsReply() {
		f.Word = string(steer)
		s.Questions = append(s.Questions, f)
	}
}

// Steers returns the texts for the running attempt's agent, including those that the attempt took.
func (s State) Steers() []Request {
	a, running := s.Running()
	if !running {
		return nil
	}
	return slices.DeleteFunc(append(s.takenBy(a.N), s.Pending()...), func(r Request) bool { return !r.steers(a) })
}

// steers reports whether the text came during the attempt. Its prompt has earlier texts.
func (r Request) steers(a Attempt) bool {
	if r.Steer != policy.SteerAgent || r.Purpose != a.Decision.Purpose {
		return false
	}
	return r.Seq > a.Seen
}

func (s *State) steered(_ Event, d Steered) {
	a, running := s.Running()
	if !running || a.N != d.N {
		return
	}
	for i := range s.Feedback {
		r := &s.Feedback[i]
		if slices.Contains(d.Seqs, r.Seq) && r.takenBy(0) {
			r.Taken = d.N
			a.Steered = append(a.Steered, r.By.Login)
		}
	}
	s.Attempts[len(s.Attempts)-1] = a
}

// missed marks the texts that the agent of the ended attempt did not receive.
func (s *State) missed() {
	for i := range s.Feedback {
		if r := &s.Feedback[i]; r.takenBy(0) && r.Steer == policy.SteerAgent {
			r.Steer = policy.SteerMissed
			s.requestReply(r.Feedback, r.Steer)
		}
	}
}

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

// controls maps commands to effects. Other versions' commands have none.
var controls = map[string]func(*State, Feedback){
	"stop": func(s *State, c Feedback) {
		s.Stopped, s.Stop = fmt.Sprintf("%s asked to stop", c.By.Login), c
		s.endWatch(s.Stopped)
	},
	"use":     func(s *State, c Feedback) { s.Pinned, s.PinnedBy = c.Backend, c },
	"watch":   (*State).watch,
	"unwatch": func(s *State, c Feedback) { s.endWatch(c.By.Login + " ended the watch") },
}

// replaces lists the commands that a later command replaces.
var replaces = map[string][]string{"watch": {"watch", "unwatch"}, "unwatch": {"watch", "unwatch"}}

// overtaken reports whether a later request, or a later command of the same kind, replaced the command.
func (s *State) overtaken(c Feedback) bool {
	same, watches := replaces[c.Command]
	anew := func(f Feedback) bool {
		return (f.Command == c.Command || slices.Contains(same, f.Command)) && madeBefore(c, f)
	}
	if slices.ContainsFunc(s.Controls, anew) {
		return true
	}
	if watches { // requests for work do not replace it
		return false
	}
	return slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.isRequest() && madeBefore(c, r.Feedback) })
}

func (r Request) isRequest() bool { return r.Withdrawn == "" && r.Source != policy.FromCheckRun }

func (s *State) change(e Event, c Change) {
	s.see(c.Snapshot, c.Delivery)
	if kind := s.meaning(c); kind != "" {
		s.People = append(s.People, PeopleVerdict{Kind: kind, By: c.By, At: e.At, Number: c.Number})
	}
	s.closedBecause(c)
	s.watchChange(e, c)
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

// closes says why the change makes work impossible, or nothing.
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

// lostAccess says why the App cannot access the repository.
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
	// Commits pushed so far need no pull request.
	s.Head = ""
}

func (s *State) moved(e Event, c Change) {
	if s.ownPush(c) {
		return
	}
	s.foreignAt = e.At
	if c.byBot() {
		return
	}
	s.movedAt = e.At
	if len(s.Moves) >= maxMoves {
		return
	}
	if !slices.ContainsFunc(s.Moves, func(m Move) bool { return m.SHA == c.Detail }) {
		s.Moves = append(s.Moves, Move{c.Detail, e.At})
	}
}

// ownPush reports whether Pawl pushed the new head. It did if a bot reports a commit that Pawl pushed, or if the head
// is Pawl's last commit. A user may move the branch back to an earlier one.
func (s *State) ownPush(c Change) bool {
	var last ActState
	own := false
	for key, act := range s.Acts {
		if !strings.HasPrefix(key, pushKey) {
			continue
		}
		own = own || act.SHA == c.Detail
		if !act.At.Before(last.At) {
			last = act
		}
	}
	return own && (c.byBot() || last.SHA == c.Detail)
}

// Absent reports whether Pawl cannot access the repository.
func (s State) Absent() bool { return absent(s.closedBy) }

// absent reports whether a change removes access to the repository, perhaps temporarily.
func absent(what string) bool {
	switch what {
	case "uninstalled", "renamed", "repository_deleted":
		return true
	}
	return false
}

// Move holds a commit that a user pushed.
type Move struct {
	SHA string
	At  time.Time
}

// maxMoves limits stored moves: five changes count like any larger number.
const maxMoves = 50

// PeopleVerdict holds an act on the work: merged, reverted, approved and so on.
type PeopleVerdict struct {
	Kind   learning.PeopleKind
	By     string
	At     time.Time
	Number int // 0 if unknown
}

// meaning returns what a change says about the work, or empty.
func (s *State) meaning(c Change) learning.PeopleKind {
	kind := meanings[c.What]
	if c.byBot() && kind != learning.Merged {
		return "" // bots close and approve by rule
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

// maxIgnored limits stored ignored remarks, which anyone can add.
const maxIgnored = 100

func (s *State) ignored(e Event, f Feedback) {
	s.see(f.Snapshot, "")
	f.Seq, f.At = e.Seq, e.At
	s.checked(f)
	s.Ignored = append(s.Ignored, f)
	if len(s.Ignored) > maxIgnored {
		// Keep reverts of edits longer, because they decide about late edits.
		oldest := max(0, slices.IndexFunc(s.Ignored, func(f Feedback) bool { return f.Description == "" }))
		s.Ignored = slices.Delete(s.Ignored, oldest, oldest+1)
	}
	if f.Description != "" {
		s.read(f)
		s.editedBack(f)
	}
}

// ClosedAtGitHub says that the issue or pull request is closed, or nothing.
func (s *State) ClosedAtGitHub() string {
	switch s.closedBy {
	case "closed", "merged":
		return s.Closed
	}
	return ""
}

// Webhooks arrive in any order. Remarks are ordered by GitHub's whole seconds, then by the log.

// read stores texts of a snapshot. A permitted user's request freezes them: later texts of others do not reach the
// agent.
func (s *State) read(f Feedback) {
	n := f.Snapshot
	if n == nil || n.Title == "" {
		return
	}
	if !f.MadeAt.Before(s.readMade) {
		s.Snapshot.Title, s.Snapshot.Body, s.readMade = n.Title, n.Body, f.MadeAt
	}
}

// editedBack withdraws untaken description edits after a revert to a known text.
func (s *State) editedBack(back Feedback) {
	for i := range s.Feedback {
		if f := &s.Feedback[i]; f.endsBy(back) {
			f.Withdrawn = editedBack
			// Nobody worked on the text, so it may be requested again.
			s.Known = slices.DeleteFunc(s.Known, func(k string) bool { return k == f.Description })
		}
	}
}

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

// TakenBack reports whether a description edit reverts a request. Users must see that.
func (s State) TakenBack(back Feedback) bool {
	return slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.endsBy(back) })
}

const editedBack = "the description was edited back"

// late says why feedback arrived too late, or nothing.
func (s *State) late(f Feedback) string {
	if s.Outdated(f) {
		return "a newer version of it was accepted before"
	}
	if why := s.ClosedSince(f.MadeAt); why != "" {
		return why + " after it was made"
	}
	return s.takenBack(f)
}

// ClosedSince says why a request from a given time is void: the thread was closed later.
func (s State) ClosedSince(at time.Time) string {
	if at.IsZero() || !at.Before(s.closedAt) {
		return ""
	}
	return s.Closed
}

// takenBack says that a revert arrived before the edit it reverts, or nothing.
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

// Outdated reports whether the same or a newer version of a comment was accepted. Ignored versions and descriptions
// do not count. The fold repeats the judge's check, since two versions may be judged at once.
func (s State) Outdated(f Feedback) bool {
	switch f.Target.Kind {
	case "issue_comment", "review_comment":
	default:
		return false
	}
	for i := range s.Feedback { // by index: logs may have thousands of entries
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

// madeBefore reports whether remark a is older than b. Ids break ties within a second; edits follow their comment. A
// remark without a time is never older.
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
