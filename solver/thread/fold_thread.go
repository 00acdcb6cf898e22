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

func (s *State) control(e Event, c Control) {
	s.see(c.Snapshot, c.Delivery)
	c.Seq, c.At = e.Seq, e.At
	s.Controls = append(s.Controls, c.Feedback)
	if s.overtaken(c) {
		return
	}
	switch c.Command {
	case "stop":
		s.Stopped, s.StoppedAt, s.stop = fmt.Sprintf("%s asked to stop", c.By.Login), e.Seq, c.Feedback
	case "use":
		s.Pinned, s.PinnedBy = c.Backend, c.Feedback
	}
}

// overtaken reports whether an order came so late that somebody asked for work, or
// gave the same order anew, after it was given.
func (s *State) overtaken(c Control) bool {
	anew := func(f Feedback) bool { return f.Command == c.Command && madeBefore(c.Feedback, f) }
	return slices.ContainsFunc(s.Controls, anew) || slices.ContainsFunc(s.Feedback, func(f Request) bool {
		return f.Withdrawn == "" && f.Source != policy.FromCheckRun && madeBefore(c.Feedback, f.Feedback)
	})
}

func (s *State) change(e Event, c Change) {
	s.see(c.Snapshot, c.Delivery)
	if kind := s.meaning(c); kind != "" {
		s.People = append(s.People, PeopleVerdict{Kind: kind, By: c.By, At: e.At, Number: c.Number})
	}
	known := func(m Move) bool { return m.SHA == c.Detail }
	if c.What == "head_moved" && !strings.HasSuffix(c.By, "[bot]") && len(s.Moves) < maxMoves && !slices.ContainsFunc(s.Moves, known) {
		s.Moves = append(s.Moves, Move{c.Detail, e.At})
	}
	closed := map[string]string{
		"closed":             fmt.Sprintf("the thread was %s by %s", cmp.Or(c.Detail, "closed"), c.By), // transferred, deleted
		"merged":             "the pull request was merged by " + c.By,
		"pull_closed":        "Pawl's pull request was closed by " + c.By,
		"pull_merged":        "Pawl's pull request was merged by " + c.By,
		"uninstalled":        "the App was uninstalled or lost access to the repository",
		"renamed":            "the repository was renamed to " + c.Detail + "; ask again there",
		"repository_deleted": "the repository was deleted or archived",
		"branch_deleted":     fmt.Sprintf("branch %s was deleted by %s", c.Detail, c.By),
	}
	if why, ok := closed[c.What]; ok && !(absent(c.What) && s.Closed != "") {
		s.Closed, s.closedBy, s.closedAt, s.renamedTo = why, c.What, c.MadeAt, ""
		if c.What == "renamed" {
			s.renamedTo = c.Detail
		}
		// What was pushed so far asks for no pull request any more.
		s.Head = ""
	}
	undoes := map[string][]string{
		"reopened":      {"closed", "merged"},
		"pull_reopened": {"pull_closed"},
		"installed":     {"uninstalled", "repository_deleted"},
	}
	if slices.Contains(undoes[c.What], s.closedBy) {
		s.Closed, s.closedBy = "", ""
	}
	if c.What == "base_moved" {
		s.BaseMoved = e.At
	}
	if c.What == "pull_reopened" {
		s.Pull = c.Number
		s.Acts[ActPull] = ActState{Act: Act{Key: ActPull, ID: int64(c.Number), URL: c.URL}, Done: true, At: s.At}
	}
	if c.What == "pull_closed" || c.What == "pull_merged" {
		// The next run on the issue opens a pull request of its own.
		s.Pull = 0
		delete(s.Acts, ActPull)
	}
}

// Absent reports whether Pawl is kept from the repository now, under the name that the thread has.
func (s State) Absent() bool { return absent(s.closedBy) }

// absent says that a change keeps Pawl from the repository, under its name at least.
// It may be for a while, and is no word about the thread.
func absent(what string) bool {
	return what == "uninstalled" || what == "renamed" || what == "repository_deleted"
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
	if c.What != "merged" && c.What != "pull_merged" && strings.HasSuffix(c.By, "[bot]") {
		return "" // bots close what is old and approve what is in their list
	}
	if c.What == "closed" && !s.Snapshot.Pull {
		return ""
	}
	return map[string]learning.PeopleKind{
		"merged": learning.Merged, "pull_merged": learning.Merged, "closed": learning.ClosedUnmerged, "pull_closed": learning.ClosedUnmerged,
		"approved": learning.Approved, "changes_requested": learning.ChangesRequested, "reverted": learning.Reverted,
		"thumbs_up": learning.ThumbsUp, "thumbs_down": learning.ThumbsDown,
	}[c.What]
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
