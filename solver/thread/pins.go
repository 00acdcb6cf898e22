package thread

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// Pin is a commit that the branch must still hold for an attempt to begin without another word of a person. What says
// what it is, behind a comma.
type Pin struct{ SHA, What string }

// Pins are the commits that what is asked for was said of, and, where nobody typed anything since, the one that the
// last attempt pushed or began from. Where people were told that the branch was force-pushed (RuleRewritten) and a
// person typed something since, what was said before is said of the head that they were told of.
func Pins(s State) (pins []Pin) {
	add := func(sha, what string) {
		if sha != "" && !slices.ContainsFunc(pins, func(p Pin) bool { return p.SHA == sha }) {
			pins = append(pins, Pin{sha, what})
		}
	}
	typed := func(r Request) bool { return r.Withdrawn == "" && feedback.Typed(r.By, r.Source, r.Target.Kind) }
	told := s.rewritten
	if told != nil && !slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.Seq > told.Seen && typed(r) }) {
		told = nil
	}
	for _, r := range changing(s.Pending()) {
		switch {
		case told != nil && r.Seq <= told.Seen:
			add(told.On, "of which people were told last")
		case r.Source == policy.FromCheckRun:
			add(r.SHA, "whose checks failed")
		case r.SHA != "":
			add(r.SHA, fmt.Sprintf("on which %s's %s was given", r.By.Login, strings.ReplaceAll(string(r.Source), "_", " ")))
		default:
			add(r.Head, "which was its head when this was asked for")
		}
	}
	for _, a := range slices.Backward(s.Attempts) {
		if a.Decision.Purpose != policy.ToChange {
			continue
		}
		if slices.ContainsFunc(s.Feedback, func(r Request) bool { return typed(r) && !a.EndedAt.IsZero() && r.At.After(a.EndedAt) }) {
			break
		}
		if a.Receipt.Pushed {
			add(a.Receipt.Commit, fmt.Sprintf("which attempt %d pushed", a.N))
		} else {
			add(a.Base, fmt.Sprintf("from which attempt %d began", a.N))
		}
		break
	}
	return pins
}
