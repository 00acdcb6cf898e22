package thread

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/policy/learning"
)

func (s State) Running() (Attempt, bool) {
	if n := len(s.Attempts); n > 0 && s.Attempts[n-1].EndedAt.IsZero() {
		return s.Attempts[n-1], true
	}
	return Attempt{}, false
}

// takenBy is the feedback that an attempt has taken; 0 is that which none has.
func (s State) takenBy(n int) []Request {
	var out []Request
	for i := range s.Feedback { // by index, for a log may hold thousands of them
		if f := &s.Feedback[i]; f.Taken == n && f.Withdrawn == "" {
			out = append(out, *f)
		}
	}
	return out
}

// Pending is feedback that no attempt has taken.
func (s State) Pending() []Request { return s.takenBy(0) }

// Fresh is pending feedback that came after the run's last ending decision.
func (s State) Fresh() []Request {
	d := s.Decision
	return slices.DeleteFunc(s.Pending(), func(f Request) bool { return f.Held || d != nil && ending(d.Action) && f.Seq <= d.Seen })
}

func ending(a policy.Action) bool {
	return a == policy.DoStop || a == policy.DoDone || a == policy.DoAsk
}

// Open reports whether there is something to decide.
func (s State) Open() bool { return s.Run > 0 && !s.Ended }

// Tracked reports whether Pawl has worked, or is asked to work, on the thread.
func (s State) Tracked() bool { return s.Run > 0 }

// Facts are what policy decides by, as far as the log knows; the caller adds
// the limits, the backends and whether there is something to verify with.
func (s State) Facts(now time.Time) policy.Facts {
	f := policy.Facts{Now: now, Closed: s.Closed, Stopped: s.Stopped, Run: s.Run, Pinned: s.Pinned}
	typed := typed(s)
	raised := int64(0) // by its place in the log, for the clocks of nodes differ
	for _, r := range s.Feedback {
		if r.Command == "raise" && r.Withdrawn == "" && !r.By.Bot() {
			raised = r.Seq
		}
	}
	for _, a := range s.Attempts {
		if a.EndedAt.IsZero() {
			continue
		}
		fact, taken := s.Fact(a), s.takenBy(a.N)
		fact.Typed = slices.ContainsFunc(taken, func(r Request) bool { return typed[r.Seq] })
		fact.Review = review(taken, typed)
		f.Attempts = append(f.Attempts, fact)
		if a.Seen < raised {
			f.Raised++
		}
	}
	f.Review = review(changing(s.Pending()), typed)
	f.SaidAgain = s.saidAgain(changing(s.Fresh()), len(s.Attempts)+1)
	if u := s.Unfinished; u != nil {
		f.Handed = policy.HandOver{Times: u.Times, At: u.At}
		if now.Sub(u.At) < policy.Day && s.handed.Seen >= raised { // as of attempts that have ended
			f.Handed.Used = u.Used
		}
	}
	for _, r := range s.Fresh() {
		f.Fresh = append(f.Fresh, policy.Trigger{Seq: r.Seq, At: r.At, Command: r.Command, By: r.By.Login, Source: r.Source, Generation: r.Generation, Cause: r.Cause, Typed: typed[r.Seq], Bot: r.By.Bot(), Purpose: r.Purpose})
	}
	return f
}

// Fact is one attempt as policy sees it.
func (s State) Fact(a Attempt) policy.Attempt {
	r, taken := a.Receipt, s.takenBy(a.N)
	r.N = a.N
	return policy.Attempt{
		Receipt: r, Decision: a.Decision, Run: a.Run, Backend: a.Backend, Account: a.Account, StartedAt: a.At, EndedAt: a.EndedAt,
		// No command is told to continue a session, and none has seen what others did.
		Resumable: a.Kind != config.Command && !r.Merged,
		NewInput:  len(taken) > 0,
		GoesOn:    len(taken) > 0 && !slices.ContainsFunc(taken, asksMore),
		SaidAgain: s.saidAgain(taken, a.N),
		ByChecks:  len(taken) > 0 && !slices.ContainsFunc(taken, func(f Request) bool { return f.Source != policy.FromCheckRun && !f.Held }),
	}
}

// wordless are the sources that ask for work without saying anything.
var wordless = []policy.Source{policy.FromLabel, policy.FromAssignment, policy.FromBase}

// typed are the pieces of feedback, by their events, that a person typed in words that
// nothing before them on the thread said, and not at a program's pace.
func typed(s State) map[int64]bool {
	typed, before, said := map[int64]bool{}, map[string]bool{}, map[string][]feedback.Moment{}
	for i := range s.Feedback {
		r := &s.Feedback[i]
		words := r.Command + " " + feedback.Gist(r.Text)
		person := r.Withdrawn == "" && feedback.Typed(r.By, r.Source, r.Target.Kind)
		typed[r.Seq] = person && !before[words]
		before[words] = before[words] || !slices.Contains(wordless, r.Source)
		if !person {
			continue
		}
		m, all := feedback.Moment{At: r.Made(), After: sinceEnd(s.Attempts, r.At), Seqs: []int64{r.Seq}}, said[r.By.Login]
		if n := len(all); n > 0 && m.At.Sub(all[n-1].At) <= time.Second { // as the parts of a review come
			all[n-1].Seqs = append(all[n-1].Seqs, r.Seq)
		} else {
			said[r.By.Login] = append(all, m)
		}
	}
	for _, all := range said {
		for _, seq := range feedback.Mechanical(all) {
			typed[seq] = false
		}
	}
	return typed
}

// review is what of some feedback is of reviewers. What waits since an earlier decision
// does not count where it only goes along with other feedback.
func review(taken []Request, typed map[int64]bool) (v policy.Review) {
	commanded := slices.ContainsFunc(taken, func(r Request) bool { return r.Command != "" && !r.Held })
	for _, r := range taken {
		order := typed[r.Seq] && (r.Command != "" || r.Severity == 0) || r.Source == policy.FromButton
		v.Ordered = v.Ordered || order
		if r.Severity == 0 || r.Held && !commanded {
			continue
		}
		v.Findings, v.Weight = v.Findings+1, v.Weight+r.Severity
		if r.Severity == feedback.Blocking {
			v.Blocking++
		}
	}
	return v
}

// asksMore reports whether feedback asks for more than to go on.
func asksMore(r Request) bool {
	return !slices.Contains([]string{"resume", "retry", "raise"}, r.Command) || feedback.Visible(r.Text) != ""
}

// sinceEnd is how long before a time the last attempt had ended; negative before the
// first, and while one ran.
func sinceEnd(all []Attempt, at time.Time) time.Duration {
	for _, a := range slices.Backward(all) {
		switch {
		case a.At.After(at):
		case a.EndedAt.IsZero():
			return -1
		default:
			return at.Sub(a.EndedAt)
		}
	}
	return -1
}

// saidAgain reports whether the feedback of an attempt says what that of the last one
// before it said that had any. A command is always new.
func (s State) saidAgain(taken []Request, n int) bool {
	for n--; n > 0 && len(taken) > 0; n-- {
		if before := changing(s.takenBy(n)); len(before) > 0 {
			return !slices.ContainsFunc(taken, func(r Request) bool { return r.Command != "" }) && policy.SaysAgain(said(taken), said(before))
		}
	}
	return false
}

func said(all []Request) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, feedback.Visible(r.Text))
	}
	return strings.Join(parts, "\n")
}

// IsOwn reports whether the log holds the comment as one that Pawl wrote: under an issue or a pull request,
// for it writes none on lines. GitHub counts comments, check runs, reactions and pull requests each by
// themselves, so only the id of an act of the same kind tells.
func (s State) IsOwn(t Target) bool {
	if t.Kind != "issue_comment" || t.ID == 0 {
		return false
	}
	for key, a := range s.Acts {
		if a.ID == t.ID && strings.HasPrefix(key, commentKey) {
			return true
		}
	}
	return false
}

// NewName is the name of the repository after a renaming that ended the work. It is
// not known where GitHub gave only an address.
func (s *State) NewName() (owner, name string, ok bool) {
	owner, name, ok = strings.Cut(s.renamedTo, "/")
	return owner, name, ok && s.closedBy == "renamed" && !strings.Contains(name, "/")
}

// ChecksOn is the commit that check runs are put on: the head of the pull request or of the thread's branch.
// Where nothing was pushed there yet, it is the work of a loop that was kept, or what a decision before an
// attempt was about; empty for none.
func (s State) ChecksOn() string {
	if d := s.Decision; d != nil && len(d.Problems) > 0 && !s.Open() && d.Problems[0].SHA != "" {
		// Errors in a file are shown on the commit that holds the file.
		return d.Problems[0].SHA
	}
	if s.Snapshot.HeadSHA != "" {
		return s.Snapshot.HeadSHA
	}
	for i := len(s.Attempts) - 1; i >= 0; i-- {
		if r := s.Attempts[i].Receipt; r.Kept != "" {
			return r.Commit
		}
	}
	return s.On
}

// Work is what an attempt for a purpose is to do: everything taken or pending since the last attempt for it that
// answered. An attempt that ended otherwise has answered nothing. Who asks to answer anew means the last question.
func (s State) Work(p policy.Purpose) []Request {
	answered := 0
	for _, a := range s.Attempts {
		if a.Decision.Purpose == p && a.Receipt.Ending == policy.Completed && len(a.Receipt.Conflicts)+len(a.Receipt.Leaks) == 0 && !slices.Contains([]policy.Outcome{policy.VerifyFailed, policy.Interrupted, policy.Declined, policy.Asked}, a.Receipt.Outcome) {
			answered = a.N
		}
	}
	var out, last []Request
	for _, r := range s.Feedback {
		if r.Withdrawn != "" || r.Purpose != p {
			continue
		}
		if r.Taken == 0 || r.Taken > answered {
			out = append(out, r)
		} else if r.Command == string(p) {
			last = []Request{r}
		}
	}
	if p == policy.ToChange || slices.ContainsFunc(out, func(r Request) bool { return r.Command == string(p) }) {
		return out
	}
	return append(last, out...)
}

// Updates reports whether it is asked for that the base is merged.
func (s State) Updates() bool {
	return slices.ContainsFunc(s.Work(policy.ToChange), func(r Request) bool { return r.Command == "update" })
}

// Begun is what the thread was begun for, in people's own words.
func Begun(s State) string {
	return strings.Join([]string{feedback.Title(s.Snapshot.Title), feedback.Content(s.Snapshot.Body), said(s.Feedback[:min(len(s.Feedback), 1)])}, "\n")
}

func (s State) Task(t ID) learning.Task {
	task := learning.Task{Repo: t.Repo(), Title: s.Snapshot.Title, Body: feedback.Content(s.Snapshot.Body)}
	if s.Snapshot.Labels != "" {
		task.Labels = strings.Split(s.Snapshot.Labels, "\n")
	}
	task.Paths = learning.MentionedPaths(task.Title + "\n" + task.Body)
	return task
}

// Branch is the branch that Pawl works on: its own for an issue, the head of a pull request.
func (s State) Branch(t ID) string {
	if s.Snapshot.Pull {
		return s.Snapshot.HeadRef
	}
	return fmt.Sprintf("%s%d", BranchPrefix, t.Number)
}

// changing is what asks for a change, and not only for an answer.
func changing(all []Request) []Request {
	return slices.DeleteFunc(all, func(r Request) bool { return r.Purpose != policy.ToChange })
}

// purposeOf is the purpose of the attempt which a piece of feedback asks for: of what it goes on with, where it only goes on.
func purposeOf(s *State, f Feedback) policy.Purpose {
	switch f.Command {
	case "ask", "plan":
		return policy.Purpose(f.Command)
	case "retry", "resume", "raise", "escalate":
		if fresh := s.Fresh(); len(fresh) > 0 {
			return fresh[len(fresh)-1].Purpose
		}
		return s.Purpose()
	}
	return policy.ToChange
}

// Purpose is that of the attempt which runs, of what was asked for where nothing was decided of that yet, or of the
// last decision.
func (s State) Purpose() policy.Purpose {
	a, running := s.Running()
	d, fresh := s.Decision, s.Fresh()
	switch {
	case running:
		return a.Decision.Purpose
	case s.Open() && (d == nil || ending(d.Action)) && len(fresh) > 0:
		return fresh[0].Purpose
	case d != nil:
		return d.Purpose
	}
	return policy.ToChange
}

// Before is the thread as the work on it stood before the run, where that only asks something; the thread as it is, and
// ok is false, where the run does more, or nothing was before.
func Before(s State) (_ State, ok bool) {
	if s.worked == nil || s.Run == s.workedRun || s.Purpose() == policy.ToChange ||
		slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Run == s.Run && a.Decision.Purpose == policy.ToChange }) {
		return s, false
	}
	s.Decision, s.Run, s.Ended = s.worked, s.workedRun, true
	s.Attempts = slices.DeleteFunc(slices.Clone(s.Attempts), func(a Attempt) bool { return a.Run > s.Run })
	s.Feedback = slices.DeleteFunc(slices.Clone(s.Feedback), func(r Request) bool { return r.Seq > s.worked.Seen })
	return s, true
}

// Plan is the last plan that an agent made, and the order to work by it that an attempt for a change is to follow; each
// is nil for none.
func Plan(s State) (made *Attempt, order *Request) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Decision.Purpose == policy.ToPlan && a.Receipt.Outcome == policy.Answered {
			made = a
		}
	}
	for _, r := range s.Work(policy.ToChange) {
		if r.Command == "go" {
			order = &r
		}
	}
	return made, order
}
