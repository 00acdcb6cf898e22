package thread

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/policy/learning"
)

// CheckResult is a finished check run of others on a commit.
type CheckResult struct {
	learning.CheckResult
	SHA string
	At  time.Time
}

// Checked is what the red checks of a commit were found to be, looked at once, when they were over.
type Checked struct {
	SHA    string     `json:"sha"`
	Checks []RedCheck `json:"checks"`
}

// RedCheck is a check of others that failed on a commit.
type RedCheck struct {
	Name   string         `json:"name"`
	Class  feedback.Class `json:"class"`
	Reason string         `json:"reason"`
	URL    string         `json:"url,omitempty"`
	// Update says that the base has mended it, and that the branch lacks what did.
	Update bool `json:"update,omitempty"`
}

// Findings are what the red checks of commits were found to be, oldest first.
type Findings []Checked

// maxChecks bounds the checks that are remembered, the newest of them.
const maxChecks = 200

func (s *State) checked(f Feedback) {
	if f.Check == "" || f.SHA == "" || f.Own {
		return
	}
	c := learning.CheckResult{Name: f.Check, Conclusion: f.Conclusion, Outside: f.Outside}
	for _, red := range s.Checked.On(f.SHA) {
		if red.Name == f.Check && red.Class == feedback.Before && feedback.Failing(f.Conclusion) {
			c.Outside = red.says()
		}
	}
	s.Checks = append(s.Checks, CheckResult{CheckResult: c, SHA: f.SHA, At: f.At})
	s.Checks = s.Checks[max(0, len(s.Checks)-maxChecks):]
}

// found takes over what red checks were found to be. What is not the work's says nothing of an attempt, and people who
// ask why nothing was done are told.
func found(s *State, c Checked) {
	s.Checked = append(s.Checked, c)
	for _, red := range c.Checks {
		for i, r := range s.Checks {
			if r.SHA == c.SHA && r.Name == red.Name && feedback.Failing(r.Conclusion) && red.Class != feedback.Ours {
				s.Checks[i].Outside = red.says()
			}
		}
		for i, f := range s.Ignored {
			if f.SHA == c.SHA && f.Check == red.Name && feedback.Failing(f.Conclusion) {
				s.Ignored[i].Reason = fmt.Sprintf("check run %q failed; %s", red.Name, red.says())
			}
		}
	}
}

func (r RedCheck) says() string { return fmt.Sprintf("%s: %s", r.Class, r.Reason) }

// Red are the checks of others that failed on the last commit that Pawl pushed, as long as that is the head and nobody
// has looked at them. First is when the first of them failed, or Pawl had some run again, and Last when something was
// told of that commit's checks.
type Red struct {
	Names       []string
	First, Last time.Time
}

func RedOf(s State) (red Red) {
	if s.Head == "" || s.Snapshot.HeadSHA != "" && s.Snapshot.HeadSHA != s.Head {
		return Red{}
	}
	for _, c := range s.Checks {
		if c.SHA != s.Head {
			continue
		}
		red.Last = c.At
		if !feedback.Failing(c.Conclusion) || known(s, c) || slices.Contains(red.Names, c.Name) {
			continue
		}
		if red.Names = append(red.Names, c.Name); red.First.IsZero() {
			red.First = c.At
		}
	}
	for key, act := range s.Acts {
		if strings.HasPrefix(key, rerunKey) && act.SHA == s.Head && act.Note == "" && len(red.Names) > 0 && act.At.After(red.First) {
			red.First = act.At
			red.Last = policy.Later(red.Last, act.At)
		}
	}
	return red
}

// known reports whether it is known what a failure is: what the commit or the base causes stays so, and what was found
// otherwise may fail for another reason later.
func known(s State, c CheckResult) bool {
	return c.Outside != "" ||
		slices.ContainsFunc(s.Checked.On(c.SHA), func(r RedCheck) bool { return r.Name == c.Name && r.Class == feedback.Ours })
}

// Before reports whether a check was found to be something on an earlier commit.
func (all Findings) Before(name string, what func(RedCheck) bool) bool {
	return slices.ContainsFunc(all, func(k Checked) bool {
		return slices.ContainsFunc(k.Checks, func(r RedCheck) bool { return r.Name == name && what(r) })
	})
}

// Unresolved are the threads of remarks that were done, declined by no later attempt, and not resolved yet: their nodes
// by the key of resolving them.
func Unresolved(s State) map[string]string {
	open := map[string]string{}
	for key, act := range s.Acts {
		var n int
		var id int64
		if _, err := fmt.Sscanf(key, remarkKey, &n, &id); err != nil || act.Node == "" || s.Acts[resolveKey(n, id)].Done {
			continue
		}
		declined := slices.ContainsFunc(s.Attempts, func(a Attempt) bool {
			return a.N > n && slices.ContainsFunc(a.Receipt.Remarks, func(r policy.RemarkAnswer) bool { return r.ID == id && r.Declined })
		})
		if !declined {
			open[resolveKey(n, id)] = act.Node
		}
	}
	return open
}

// LastChange is the last attempt that was to change something, else the last one; there must be one.
func LastChange(s State) Attempt {
	for _, a := range slices.Backward(s.Attempts) {
		if a.Decision.Purpose == policy.ToChange {
			return a
		}
	}
	return s.Attempts[len(s.Attempts)-1]
}

// WorkBegan is the commit that the first attempt began at whose work is in the pull request; empty for none.
func WorkBegan(s State) string {
	for _, a := range s.Attempts {
		if a.Receipt.Pushed && (a.Pull == 0 || s.Pull == 0 || a.Pull == s.Pull) {
			return a.Receipt.Base
		}
	}
	return ""
}

// On is what was found of the red checks of a commit, the newest of each name.
func (all Findings) On(sha string) (found []RedCheck) {
	for _, k := range all {
		if k.SHA != sha {
			continue
		}
		for _, r := range k.Checks {
			found = append(slices.DeleteFunc(found, func(old RedCheck) bool { return old.Name == r.Name }), r)
		}
	}
	return found
}

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
