package solver

import (
	"fmt"
	"slices"

	"github.com/pawlbot/pawl/policy"
)

func (s *State) control(e Event, c Control) {
	s.see(c.Snapshot)
	c.Seq, c.At = e.Seq, e.At
	s.controls = append(s.controls, c.Feedback)
	if s.overtaken(c) {
		return
	}
	switch c.Command {
	case "stop":
		s.Stopped, s.StoppedAt, s.stop = fmt.Sprintf("%s asked to stop", c.By.Login), e.Seq, c.Feedback
	case "use":
		s.Pinned = c.Backend
	}
}

// overtaken reports whether an order came so late that somebody asked for work, or
// gave the same order anew, after it was given.
func (s *State) overtaken(c Control) bool {
	anew := func(f Feedback) bool { return f.Command == c.Command && madeBefore(c.Feedback, f) }
	return slices.ContainsFunc(s.controls, anew) || slices.ContainsFunc(s.Feedback, func(f Remark) bool {
		return f.Withdrawn == "" && f.Source != policy.FromCheckRun && madeBefore(c.Feedback, f.Feedback)
	})
}

func (s *State) change(e Event, c Change) {
	s.see(c.Snapshot)
	if kind := s.meaning(c); kind != "" {
		s.People = append(s.People, Verdict{Kind: kind, By: c.By, At: e.At, Number: c.Number})
	}
	closed := map[string]string{
		"closed":             "the thread was closed by " + c.By,
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
	if c.What == "pull_reopened" {
		s.Pull = c.Number
		s.Acts[actPull] = ActState{Act: Act{Key: actPull, ID: int64(c.Number), URL: c.URL}, Done: true, At: s.At}
	}
	if c.What == "pull_closed" || c.What == "pull_merged" {
		// The next run on the issue opens a pull request of its own.
		s.Pull = 0
		delete(s.Acts, actPull)
	}
}

// absent says that a change keeps Pawl from the repository, under its name at least.
// It may be for a while, and is no word about the thread.
func absent(what string) bool {
	return what == "uninstalled" || what == "renamed" || what == "repository_deleted"
}
