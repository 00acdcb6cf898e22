package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/policy/learning"
)

// CheckResult is another App's finished check run on a commit.
type CheckResult struct {
	learning.CheckResult
	SHA string
	At  time.Time
}

// Checked is the classification of a commit's red checks, made once when its checks have finished.
type Checked struct {
	SHA    string     `json:"sha"`
	Checks []RedCheck `json:"checks"`
}

// RedCheck is another App's failed check on a commit.
type RedCheck struct {
	Name   string         `json:"name"`
	Class  feedback.Class `json:"class"`
	Reason string         `json:"reason"`
	URL    string         `json:"url,omitempty"`
	// Update says that the base has fixed it and that the branch lacks the fix.
	Update bool `json:"update,omitempty"`
}

// Findings are the classified red checks of commits, oldest first.
type Findings []Checked

// maxChecks limits the remembered checks to the newest.
const maxChecks = 200

func (s *State) checked(f Feedback) {
	if f.Check == "" || f.SHA == "" {
		return
	}
	if f.Own {
		return
	}
	c := learning.CheckResult{Name: f.Check, Conclusion: f.Conclusion, Outside: f.Outside}
	if feedback.Failing(f.Conclusion) {
		c.Outside = cmp.Or(s.Checked.onBase(f), c.Outside)
	}
	result := CheckResult{CheckResult: c, SHA: f.SHA, At: f.At}
	s.Checks = append(s.Checks, result)
	s.Checks = s.Checks[max(0, len(s.Checks)-maxChecks):]
	if f.SHA == s.Head && s.red.SHA != s.Head {
		s.firstRed(result)
	}
}

// firstRed notes the head's first unclassified failure, since Checks forgets it after maxChecks others.
func (s *State) firstRed(c CheckResult) {
	if feedback.Failing(c.Conclusion) && !s.known(c) {
		s.red = c
	}
}

// onBase says that a commit's check also failed on the base; empty if unknown.
func (all Findings) onBase(f Feedback) (why string) {
	for _, red := range all.On(f.SHA) {
		if red.Name == f.Check && red.Class == feedback.Before {
			why = red.says()
		}
	}
	return why
}

// found stores a classification. Failures outside of the work do not grade an attempt, and appear in the answer to
// why.
func (s *State) found(_ Event, c Checked) {
	s.Checked = append(s.Checked, c)
	if s.red.SHA == c.SHA {
		s.red = CheckResult{}
	}
	for _, red := range c.Checks {
		if red.Class != feedback.Ours {
			s.excuse(c.SHA, red)
		}
		for i, f := range s.Ignored {
			if f.SHA == c.SHA && red.is(f.Check, f.Conclusion) {
				s.Ignored[i].Reason = fmt.Sprintf("check run %q failed; %s", red.Name, red.says())
			}
		}
	}
}

// excuse notes why failures of a check on a commit are not the work's.
func (s *State) excuse(sha string, red RedCheck) {
	for i, r := range s.Checks {
		if r.SHA == sha && red.is(r.Name, r.Conclusion) {
			s.Checks[i].Outside = red.says()
		}
	}
}

func (r RedCheck) is(name, conclusion string) bool {
	return r.Name == name && feedback.Failing(conclusion)
}

func (r RedCheck) says() string { return fmt.Sprintf("%s: %s", r.Class, r.Reason) }

// Red are the failed checks on Pawl's last pushed commit, while it is the head and unclassified. First is when the
// first one failed, or Pawl reran some, and Last when the commit's last report came.
type Red struct {
	Names       []string
	First, Last time.Time
}

func (s State) Red() (red Red) {
	if !s.headIsOurs() {
		return Red{}
	}
	for _, c := range s.Checks {
		if c.SHA != s.Head {
			continue
		}
		red.Last = c.At
		if feedback.Failing(c.Conclusion) && !s.known(c) {
			red.add(c)
		}
	}
	if len(red.Names) == 0 {
		return red
	}
	if s.red.SHA == s.Head {
		red.First = s.red.At
	}
	s.reran(&red)
	return red
}

// headIsOurs reports whether Pawl's last pushed commit is the head, as far as the log knows.
func (s State) headIsOurs() bool {
	if s.Head == "" {
		return false
	}
	return s.Snapshot.HeadSHA == "" || s.Snapshot.HeadSHA == s.Head
}

func (red *Red) add(c CheckResult) {
	if slices.Contains(red.Names, c.Name) {
		return
	}
	red.Names = append(red.Names, c.Name)
	if red.First.IsZero() {
		red.First = c.At
	}
}

// reran moves the times of red checks to Pawl's rerun.
func (s State) reran(red *Red) {
	for key, act := range s.Acts {
		if !strings.HasPrefix(key, rerunKey) || act.SHA != s.Head {
			continue
		}
		if act.Note == "" && act.At.After(red.First) {
			red.First = act.At
			red.Last = policy.Later(red.Last, act.At)
		}
	}
}

// known reports whether a failure is classified. A failure that the commit or the base causes stays so; another one
// may fail for another reason later.
func (s State) known(c CheckResult) bool {
	if c.Outside != "" {
		return true
	}
	return slices.ContainsFunc(s.Checked.On(c.SHA), func(r RedCheck) bool {
		return r.Name == c.Name && r.Class == feedback.Ours
	})
}

// Before reports whether an earlier commit has a classified check that matches.
func (all Findings) Before(name string, what func(RedCheck) bool) bool {
	return slices.ContainsFunc(all, func(k Checked) bool {
		return slices.ContainsFunc(k.Checks, func(r RedCheck) bool { return r.Name == name && what(r) })
	})
}

// Unresolved are the review threads of done remarks that no later attempt declined and that are not resolved yet:
// their nodes by the key of the act.
func (s State) Unresolved() map[string]string {
	open := map[string]string{}
	for key, act := range s.Acts {
		var n int
		var id int64
		if _, err := fmt.Sscanf(key, remarkKey, &n, &id); err != nil || act.Node == "" {
			continue
		}
		resolve := resolveKey(n, id)
		if !s.Acts[resolve].Done && !s.declined(id, n) {
			open[resolve] = act.Node
		}
	}
	return open
}

func (s State) declined(remark int64, n int) bool {
	for _, a := range s.Attempts {
		if a.N <= n {
			continue
		}
		if slices.ContainsFunc(a.Receipt.Remarks, func(r policy.RemarkAnswer) bool { return r.ID == remark && r.Declined }) {
			return true
		}
	}
	return false
}

// LastChange is the last attempt at a change, else the last attempt; there must be one.
func (s State) LastChange() Attempt {
	for _, a := range slices.Backward(s.Attempts) {
		if a.Decision.Purpose == policy.ToChange {
			return a
		}
	}
	return s.Attempts[len(s.Attempts)-1]
}

// WorkBegan is the start commit of the first attempt whose work is in the pull request; empty for none.
func (s State) WorkBegan() string {
	for _, a := range s.Attempts {
		if a.pushedTo(s.Pull) {
			return a.Receipt.Base
		}
	}
	return ""
}

// pushedTo reports whether the attempt pushed to that pull request, as far as both are known.
func (a Attempt) pushedTo(pull int) bool {
	if !a.Receipt.Pushed {
		return false
	}
	switch a.Pull {
	case 0, pull:
		return true
	}
	return pull == 0
}

// On is the classification of a commit's red checks, the newest of each name.
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

// Pin is a commit that the branch must still contain for an attempt to begin without a user's new words. What
// describes it, after a comma.
type Pin struct{ SHA, What string }

// Pins are the commits that the requests were about and, unless a user typed something since, the one that the last
// attempt pushed or began from. After the notice of a force-push (RuleRewritten) and a user's new words, older
// requests count as about the head that the notice named.
func (s State) Pins() (pins []Pin) {
	add := func(p Pin) {
		if p.SHA == "" || slices.ContainsFunc(pins, func(q Pin) bool { return q.SHA == p.SHA }) {
			return
		}
		pins = append(pins, p)
	}
	told := s.toldOfRewriting()
	for _, r := range changing(s.Pending()) {
		add(r.pin(told))
	}
	add(s.pinOfLastChange())
	return pins
}

// toldOfRewriting is the notice of a force-push; nil unless a user typed something since.
func (s State) toldOfRewriting() *Decided {
	told := s.rewritten
	if told == nil {
		return nil
	}
	if !slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.Seq > told.Seen && r.typed() }) {
		return nil
	}
	return told
}

// pin is the commit that the feedback was about.
func (r Request) pin(told *Decided) Pin {
	switch {
	case told != nil && r.Seq <= told.Seen:
		return Pin{told.On, "which the last notice named"}
	case r.Source == policy.FromCheckRun:
		return Pin{r.SHA, "whose checks failed"}
	case r.SHA != "":
		return Pin{r.SHA, fmt.Sprintf("on which %s's %s was given", r.By.Login, strings.ReplaceAll(string(r.Source), "_", " "))}
	}
	return Pin{r.Head, "which was its head when this was asked for"}
}

// pinOfLastChange is the commit that the last attempt at a change pushed or began from; zero for none, or after a
// user's new words.
func (s State) pinOfLastChange() Pin {
	for _, a := range slices.Backward(s.Attempts) {
		if a.Decision.Purpose != policy.ToChange {
			continue
		}
		if s.typedSince(a) {
			return Pin{}
		}
		if a.Receipt.Pushed {
			return Pin{a.Receipt.Commit, fmt.Sprintf("which attempt %d pushed", a.N)}
		}
		return Pin{a.Base, fmt.Sprintf("from which attempt %d began", a.N)}
	}
	return Pin{}
}

// typedSince reports whether a user typed something after an attempt ended.
func (s State) typedSince(a Attempt) bool {
	if a.EndedAt.IsZero() {
		return false
	}
	return slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.typed() && r.At.After(a.EndedAt) })
}
