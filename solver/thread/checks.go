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

// CheckResult holds another App's finished check run.
type CheckResult struct {
	learning.CheckResult
	SHA string
	At  time.Time
}

// Checked classifies a commit's failed checks once all checks have finished.
type Checked struct {
	SHA    string     `json:"sha"`
	Checks []RedCheck `json:"checks"`
}

// RedCheck holds another App's failed check.
type RedCheck struct {
	Name   string         `json:"name"`
	Class  feedback.Class `json:"class"`
	Reason string         `json:"reason"`
	URL    string         `json:"url,omitempty"`
	Tests  []string       `json:"-"` // failing tests
	// Update means that the base fixed the failure and the branch lacks the fix.
	Update bool `json:"update,omitempty"`
}

// Findings holds classified failures by commit, oldest first.
type Findings []Checked

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
	if f.SHA != s.CheckedHead() {
		return
	}
	s.Watch.changed = f.Seq
	if s.red.SHA != f.SHA {
		s.firstRed(result)
	}
}

// firstRed records the head's first unclassified failure, because Checks forgets it after maxChecks others.
func (s *State) firstRed(c CheckResult) {
	if feedback.Failing(c.Conclusion) && !s.known(c) {
		s.red = c
	}
}

// onBase says that the same check failed on the base, or nothing.
func (all Findings) onBase(f Feedback) (why string) {
	for _, red := range all.On(f.SHA) {
		if red.Name == f.Check && red.Class == feedback.Before {
			why = red.describe()
		}
	}
	return why
}

// found stores a classification. Failures that the work did not cause do not grade an attempt.
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
				s.Ignored[i].Reason = fmt.Sprintf("check run %q failed; %s", red.Name, red.describe())
			}
		}
	}
}

// excuse records why a check's failures on a commit are not the work's fault.
func (s *State) excuse(sha string, red RedCheck) {
	for i, r := range s.Checks {
		if r.SHA == sha && red.is(r.Name, r.Conclusion) {
			s.Checks[i].Outside = red.describe()
		}
	}
}

func (r RedCheck) is(name, conclusion string) bool {
	return r.Name == name && feedback.Failing(conclusion)
}

func (r RedCheck) describe() string { return fmt.Sprintf("%s: %s", r.Class, r.Reason) }

// Red lists unclassified failures on CheckedHead. First is the time of the first failure or of Pawl's last rerun, Last
// the time of the latest report.
type Red struct {
	Names       []string
	First, Last time.Time
}

func (s State) Red() (red Red) {
	head := s.CheckedHead()
	if head == "" {
		return Red{}
	}
	for _, c := range s.Checks {
		if c.SHA != head {
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
	if s.red.SHA == head {
		red.First = s.red.At
	}
	s.reran(head, &red)
	return red
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

func (s State) reran(head string, red *Red) {
	if at := s.RerunAt(head); at.After(red.First) {
		red.First = at
		red.Last = policy.Later(red.Last, at)
	}
}

// RerunAt returns when Pawl last reran a commit's failed jobs; zero for never.
func (s State) RerunAt(head string) (at time.Time) {
	for key, act := range s.Acts {
		if strings.HasPrefix(key, rerunKey) && act.SHA == head && act.Note == "" {
			at = policy.Later(at, act.At)
		}
	}
	return at
}

// known reports whether a failure is classified. If the commit or the base caused it, so are later failures of the
// check. Otherwise the classification applies to one result.
func (s State) known(c CheckResult) bool {
	if c.Outside != "" {
		return true
	}
	return slices.ContainsFunc(s.Checked.On(c.SHA), func(r RedCheck) bool {
		return r.Name == c.Name && r.Class == feedback.Ours
	})
}

// Before reports whether a classified check of this name matches, on any commit.
func (all Findings) Before(name string, what func(RedCheck) bool) bool {
	return slices.ContainsFunc(all, func(k Checked) bool {
		return slices.ContainsFunc(k.Checks, func(r RedCheck) bool { return r.Name == name && what(r) })
	})
}

// Unresolved maps act keys to nodes of unresolved review threads whose remarks are done and not declined.
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

// LastChange returns the last attempt at a change, or else the last attempt. The thread must have one.
func (s State) LastChange() Attempt {
	for _, a := range slices.Backward(s.Attempts) {
		if a.Decision.Purpose == policy.ToChange {
			return a
		}
	}
	return s.Attempts[len(s.Attempts)-1]
}

// WorkBegan returns the start commit of the pull request's first attempt, or empty.
func (s State) WorkBegan() string {
	for _, a := range s.Attempts {
		if a.pushedTo(s.Pull) {
			return a.Receipt.Base
		}
	}
	return ""
}

// pushedTo reports whether the attempt pushed to the pull request. Unknown numbers match.
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

// On returns a commit's failed checks, the newest of each name.
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

// unfinished returns the findings without a commit's failures that the work caused. If that work ended without a push,
// another look must find them again.
func (all Findings) unfinished(sha string) (kept Findings) {
	for _, k := range all {
		if k.SHA == sha {
			k.Checks = slices.DeleteFunc(slices.Clone(k.Checks), func(r RedCheck) bool { return r.Class == feedback.Ours })
		}
		kept = append(kept, k)
	}
	return kept
}

// Pin is a commit that the branch must still contain before an attempt begins. What describes it, after a comma.
type Pin struct{ SHA, What string }

// Pins returns the commits of the requests and, without new words from users, the last attempt's commit. After the
// notice of a force-push (RuleRewritten) and a user's answer, older requests refer to the head in the notice.
func (s State) Pins() (pins []Pin) {
	add := func(p Pin) {
		if p.SHA == "" || slices.ContainsFunc(pins, func(q Pin) bool { return q.SHA == p.SHA }) {
			return
		}
		pins = append(pins, p)
	}
	if s.BeginsRound() { // a round may begin on any head that contains the unfinished work's start
		if u := s.Unfinished; u != nil {
			add(Pin{u.Base, "on which the round began"})
		}
		return pins
	}
	told := s.answeredRewrite()
	for _, r := range changing(s.Pending()) {
		add(r.pin(told))
	}
	add(s.pinOfLastChange())
	return pins
}

// BeginsRound reports whether the next attempt is a round of a watch, or repeats one.
func (s State) BeginsRound() bool {
	pending := changing(s.Pending())
	switch {
	case !s.Watched(), slices.ContainsFunc(pending, func(r Request) bool { return !r.Watched }):
		return false
	case len(pending) > 0:
		return true
	}
	return len(s.Attempts) > 0 && s.LastChange().Decision.Round > 0
}

// answeredRewrite returns the notice of a force-push that a user answered, or nil.
func (s State) answeredRewrite() *Decided {
	told := s.rewritten
	if told == nil {
		return nil
	}
	if !slices.ContainsFunc(s.Feedback, func(r Request) bool { return r.Seq > told.Seen && r.typed() }) {
		return nil
	}
	return told
}

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

// pinOfLastChange returns the commit that the last change pushed or started from. It is zero after a user's new
// words.
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
