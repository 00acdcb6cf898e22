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

func (s State) takenBy(n int) []Request {
	var out []Request
	for i := range s.Feedback { // by index: logs may have thousands of entries
		if f := &s.Feedback[i]; f.takenBy(n) {
			out = append(out, *f)
		}
	}
	return out
}

// takenBy reports whether attempt n took the feedback and nothing withdrew it. 0 means untaken.
func (r *Request) takenBy(n int) bool { return r.Taken == n && r.Withdrawn == "" }

// Pending returns feedback that no attempt has taken.
func (s State) Pending() []Request { return s.takenBy(0) }

// Fresh returns the pending feedback for the next decision: after the end of a run, only later feedback. Deferred
// feedback does not count.
func (s State) Fresh() []Request {
	over := s.over()
	return slices.DeleteFunc(s.Pending(), func(r Request) bool { return r.Deferred || r.Seq <= over })
}

// over returns the last event seen by the decision that ended the run, or -1.
func (s State) over() int64 {
	d := s.Decision
	if d == nil || !ending(d.Action) {
		return -1
	}
	return d.Seen
}

func ending(a policy.Action) bool {
	switch a {
	case policy.DoStop, policy.DoDone, policy.DoAsk:
		return true
	default:
		return false
	}
}

func (s State) Open() bool { return s.Run > 0 && !s.Ended }

// Tracked reports whether Pawl listens on the thread: a user asked for work there, or its pull request is watched.
func (s State) Tracked() bool { return s.Run > 0 && !s.onlyWatch || s.Watched() }

// Worked reports whether Pawl has worked on the thread, or has watched its pull request.
func (s State) Worked() bool { return s.Run > 0 || s.Watch.Rounds > 0 }

// Facts returns policy's facts from the log. The caller adds limits, backends and verify commands.
func (s State) Facts(now time.Time) policy.Facts {
	f := policy.Facts{Now: now, Closed: s.Closed, Stopped: s.Stopped, Run: s.Run, Pinned: s.Pinned}
	typed, raised := s.typed(), s.raised()
	for _, a := range s.Attempts {
		if a.EndedAt.IsZero() {
			continue
		}
		fact, taken := s.Fact(a), s.takenBy(a.N)
		fact.Typed = slices.ContainsFunc(taken, func(r Request) bool { return typed[r.Seq] })
		fact.ByUser = slices.ContainsFunc(taken, func(r Request) bool { return r.fact(typed).ByUser() })
		fact.Review = review(taken, typed)
		f.Attempts = append(f.Attempts, fact)
		if a.Seen < raised {
			f.Raised++
		}
	}
	f.Review = review(changing(s.Pending()), typed)
	f.Watch, f.RedTests = s.watchFacts(typed), failingTests(s.Fresh())
	f.SaidAgain = s.saidAgain(changing(s.Fresh()), len(s.Attempts)+1)
	if u := s.Unfinished; u != nil {
		f.Handover = policy.Handover{Times: u.Times, At: u.At}
		if u.Session != "" {
			f.Handover.Backend, f.Handover.Account = u.Backend, u.Account
		}
		if now.Sub(u.At) < policy.Day && s.handedOver.Seen >= raised { // counts like ended attempts
			f.Handover.Used = u.Used
		}
	}
	for _, r := range s.Fresh() {
		f.Fresh = append(f.Fresh, r.fact(typed))
	}
	return f
}

func (r Request) fact(typed map[int64]bool) policy.Request {
	return policy.Request{
		Seq:        r.Seq,
		At:         r.At,
		Command:    r.Command,
		By:         r.By.Login,
		Source:     r.Source,
		Generation: r.Generation,
		Cause:      r.Cause,
		Typed:      typed[r.Seq],
		Bot:        r.By.Bot(),
		Purpose:    r.Purpose,
		Watched:    r.Watched,
		Standing:   r.Standing,
	}
}

// raised returns the event of the last /pawl raise, or 0. The log's order counts, since clocks differ.
func (s State) raised() int64 {
	for _, r := range slices.Backward(s.Feedback) {
		if r.Command != "raise" || r.Withdrawn != "" {
			continue
		}
		if !r.By.Bot() {
			return r.Seq
		}
	}
	return 0
}

func (s State) Fact(a Attempt) policy.Attempt {
	r, taken := a.Receipt, s.takenBy(a.N)
	r.N, r.Steered = a.N, policy.CountSteers(a.Steered)
	return policy.Attempt{
		Receipt:   r,
		Decision:  a.Decision,
		Run:       a.Run,
		Backend:   a.Backend,
		Account:   a.Account,
		StartedAt: a.At,
		EndedAt:   a.EndedAt,
		// Plain commands continue no session; sessions have not seen others' commits.
		Resumable: a.Kind != config.Command && !r.Merged,
		NewInput:  len(taken) > 0,
		GoesOn:    all(taken, Request.goesOn),
		SaidAgain: s.saidAgain(taken, a.N),
		ByChecks:  all(taken, Request.ofChecks),
		RedTests:  failingTests(taken),
	}
}

// all reports whether there is feedback and holds is true for all of it.
func all(taken []Request, holds func(Request) bool) bool {
	for _, r := range taken {
		if !holds(r) {
			return false
		}
	}
	return len(taken) > 0
}

// ofChecks reports whether the feedback comes from a check or was deferred.
func (r Request) ofChecks() bool { return r.Source == policy.FromCheckRun || r.Deferred }

// wordless lists sources of requests without words.
var wordless = []policy.Source{policy.FromLabel, policy.FromAssignment, policy.FromBase}

// typed returns the events in which a user typed new words. Programs under a user's name do not count.
func (s State) typed() map[int64]bool {
	typed, before := map[int64]bool{}, saidBefore{texts: map[string]bool{}, words: map[string]bool{}, by: map[string][]feedback.Moment{}}
	for _, r := range s.requestsAndWatches() {
		typed[r.Seq] = before.typed(r) && r.Withdrawn == ""
	}
	return typed
}

// saidBefore holds a thread's earlier words.
type saidBefore struct {
	texts, words map[string]bool
	by           map[string][]feedback.Moment // new words of each login
}

// typed adds feedback and reports whether a user typed new words. Deleted comments stay known.
func (all saidBefore) typed(r *Request) bool {
	if slices.Contains(wordless, r.Source) {
		return false
	}
	words := append(feedback.Gist(r.Text), "/"+r.Command)
	text := strings.Join(words, " ")
	repeated := all.texts[text]
	all.texts[text] = true
	fresh := all.learn(words)
	if repeated || !feedback.Typed(r.By, r.Source, r.Target.Kind) {
		return false
	}
	moments := addMoment(all.by[r.By.Login], feedback.Moment{At: r.Made(), Fresh: fresh})
	all.by[r.By.Login] = moments
	return !feedback.Mechanical(moments)
}

func (all saidBefore) learn(words []string) (fresh bool) {
	for _, w := range words {
		if !all.words[w] && !feedback.Numbered(w) {
			fresh = true
		}
		all.words[w] = true
	}
	return fresh
}

func (r *Request) typed() bool {
	return r.Withdrawn == "" && feedback.Typed(r.By, r.Source, r.Target.Kind)
}

// addMoment adds a moment. Texts within a second count as one, like the parts of a review.
func addMoment(all []feedback.Moment, m feedback.Moment) []feedback.Moment {
	n := len(all)
	if n == 0 || m.At.Sub(all[n-1].At) > time.Second {
		return append(all, m)
	}
	all[n-1].Fresh = all[n-1].Fresh || m.Fresh
	return all
}

// review counts the reviewers' feedback. Deferred feedback counts only together with a command.
func review(taken []Request, typed map[int64]bool) (v policy.Review) {
	commanded := slices.ContainsFunc(taken, func(r Request) bool { return r.Command != "" && !r.Deferred })
	for _, r := range taken {
		if r.asksForWork(typed[r.Seq]) {
			v.Ordered = true
		}
		if r.Severity == 0 {
			continue
		}
		if r.Deferred && !commanded {
			continue
		}
		v.Findings, v.Weight = v.Findings+1, v.Weight+r.Severity
		if r.Severity == feedback.Blocking {
			v.Blocking++
		}
	}
	return v
}

// asksForWork reports whether a user asks for work by a button or in words. A reviewer's finding is not enough.
func (r Request) asksForWork(typed bool) bool {
	if r.Source == policy.FromButton {
		return true
	}
	finding := r.Command == "" && r.Severity != 0
	return typed && !finding
}

func (r Request) goesOn() bool {
	if !policy.CommandNamed(r.Command).GoesOn {
		return false
	}
	return feedback.Visible(r.Text) == ""
}

// saidAgain reports whether an attempt's feedback repeats the previous feedback. Commands are always new.
func (s State) saidAgain(taken []Request, n int) bool {
	if len(taken) == 0 || slices.ContainsFunc(taken, func(r Request) bool { return r.Command != "" }) {
		return false
	}
	for n--; n > 0; n-- {
		if before := changing(s.takenBy(n)); len(before) > 0 {
			return policy.SaysAgain(wordsOf(taken), wordsOf(before))
		}
	}
	return false
}

func wordsOf(all []Request) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, feedback.Visible(r.Text))
	}
	return strings.Join(parts, "\n")
}

// IsOwn reports whether the log records the comment as Pawl's. GitHub numbers each kind of object separately, so only
// acts of the same kind count.
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

// NewName returns the repository's name after a rename that ended the work; not ok if GitHub gave only a URL.
func (s *State) NewName() (owner, name string, ok bool) {
	owner, name, ok = strings.Cut(s.renamedTo, "/")
	if s.closedBy != "renamed" || strings.Contains(name, "/") {
		ok = false
	}
	return owner, name, ok
}

// ChecksOn returns the commit for check runs: the one with configuration errors, or the head. Without a head
// it is the newest commit kept on a separate branch, else the last decision's commit.
func (s State) ChecksOn() string {
	if on := s.problemsOn(); on != "" {
		return on
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

// problemsOn returns the commit with configuration errors that the last decision names, or empty.
func (s State) problemsOn() string {
	d := s.Decision
	if d == nil || s.Open() {
		return ""
	}
	if len(d.Problems) == 0 {
		return ""
	}
	return d.Problems[0].SHA
}

// Work returns what an attempt for a purpose must do: the purpose's requests since the last attempt that completed
// one. For an answer or a plan without a new command, Work also returns the last command.
func (s State) Work(p policy.Purpose) []Request {
	answered := s.answered(p)
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

// answered returns the last attempt that completed a purpose, or 0.
func (s State) answered(p policy.Purpose) (n int) {
	for _, a := range s.Attempts {
		if a.Decision.Purpose == p && a.answered() {
			n = a.N
		}
	}
	return n
}

func (a Attempt) answered() bool {
	r := a.Receipt
	switch r.Outcome {
	case policy.WorkVerified, policy.WorkUnverified, policy.NoChange, policy.OnlyLeftOut, policy.Answered, policy.Planned:
		return true
	default:
		return false
	}
}

// Updates reports whether a user requested a merge of the base.
func (s State) Updates() bool {
	return slices.ContainsFunc(s.Work(policy.ToChange), func(r Request) bool { return r.Command == "update" })
}

// Begun returns the text that began the thread: title, description and first request.
func (s State) Begun() string {
	first := s.Feedback[:min(len(s.Feedback), 1)]
	return strings.Join([]string{feedback.Title(s.Snapshot.Title), feedback.Content(s.Snapshot.Body), wordsOf(first)}, "\n")
}

func (s State) Task(t ID) learning.Task {
	task := learning.Task{Repo: t.Repo(), Title: s.Snapshot.Title, Body: feedback.Content(s.Snapshot.Body)}
	if s.Snapshot.Labels != "" {
		task.Labels = strings.Split(s.Snapshot.Labels, "\n")
	}
	task.Paths = learning.MentionedPaths(task.Title + "\n" + task.Body)
	return task
}

// Branch returns Pawl's branch for an issue, or a pull request's head.
func (s State) Branch(t ID) string {
	if s.Snapshot.Pull {
		return s.Snapshot.HeadRef
	}
	return fmt.Sprintf("%s%d", BranchPrefix, t.Number)
}

func changing(all []Request) []Request {
	return slices.DeleteFunc(all, func(r Request) bool { return r.Purpose != policy.ToChange })
}

// purposeOf returns the purpose of the requested attempt. A request to continue keeps the purpose.
func (s *State) purposeOf(f Feedback) policy.Purpose {
	command := policy.CommandNamed(f.Command)
	if a, running := s.Running(); command.Joins && running {
		return a.Decision.Purpose
	}
	if !command.Forces {
		return command.Purpose
	}
	if fresh := s.Fresh(); len(fresh) > 0 {
		return fresh[len(fresh)-1].Purpose
	}
	return s.Purpose()
}

// Purpose returns the purpose of the running attempt, or else of the undecided request or the last decision.
func (s State) Purpose() policy.Purpose {
	if a, running := s.Running(); running {
		return a.Decision.Purpose
	}
	if r, ok := s.undecided(); ok {
		return r.Purpose
	}
	if s.Decision != nil {
		return s.Decision.Purpose
	}
	return policy.ToChange
}

// undecided returns the request that began the run if no decision followed.
func (s State) undecided() (_ Request, ok bool) {
	if d := s.Decision; d != nil && !ending(d.Action) {
		return Request{}, false
	}
	fresh := s.Fresh()
	if len(fresh) == 0 || !s.Open() {
		return Request{}, false
	}
	return fresh[0], true
}

// Before returns the state before a run that changes nothing, such as a question. Otherwise it returns s and false.
func (s State) Before() (_ State, ok bool) {
	if s.worked == nil || s.Run == s.workedRun {
		return s, false
	}
	if s.runChanges() {
		return s, false
	}
	s.Decision, s.Run, s.Ended = s.worked, s.workedRun, true
	s.Attempts = slices.DeleteFunc(slices.Clone(s.Attempts), func(a Attempt) bool { return a.Run > s.Run })
	s.Feedback = slices.DeleteFunc(slices.Clone(s.Feedback), func(r Request) bool { return r.Seq > s.worked.Seen })
	return s, true
}

func (s State) runChanges() bool {
	if s.Purpose() == policy.ToChange {
		return true
	}
	return slices.ContainsFunc(s.Attempts, func(a Attempt) bool {
		return a.Run == s.Run && a.Decision.Purpose == policy.ToChange
	})
}

// Plan returns the last plan, and the command to carry it out; each may be nil.
func (s State) Plan() (made *Attempt, order *Request) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Decision.Purpose == policy.ToPlan && a.Receipt.Outcome == policy.Planned {
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
