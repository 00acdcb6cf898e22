package solver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
)

// shownFeedback is how many judged remarks `why` can look back on.
const shownFeedback = 20

// view is the thread as the pages, comments and check runs show it.
func (s *step) view(ctx context.Context) (checkrun.Facts, error) {
	return s.Solver.view(ctx, s.thread, s.state)
}

// View renders nothing itself: it is the fold of a thread in the words of
// checkrun, with what the shared tables hold against its last backend.
func (s *Solver) View(ctx context.Context, t Thread) (checkrun.Facts, error) {
	events, err := s.Store.Events(ctx, t, 0)
	if err != nil {
		return checkrun.Facts{}, err
	}
	state, err := Fold(events)
	if err != nil {
		return checkrun.Facts{}, err
	}
	return s.view(ctx, t, state)
}

func (s *Solver) view(ctx context.Context, t Thread, st State) (checkrun.Facts, error) {
	effective, problems := s.Config.Narrow(st.Repo)
	if len(problems) > 0 {
		effective, _ = s.Config.Narrow(config.Repo{})
	}
	l := Limits(effective.Policy)
	f := checkrun.Facts{
		Thread: t.String(), Number: t.Number, IsPull: st.Snapshot.Pull, Title: st.Snapshot.Title,
		Now: s.Now(), Run: st.Run, State: state(st), IssueURL: st.Snapshot.URL, Branch: st.branch(t), DetailsURL: s.threadURLOf(t),
	}
	if s.Local != nil {
		f.Branch = s.Local.Branch
	}
	if a := st.Acts[actPull]; a.Done {
		f.PullURL = a.URL
	}
	if a, running := st.Running(); running {
		f.Rule, f.Reasons = a.Decision.Rule, a.Decision.Reasons
	} else if d := st.Decision; d != nil {
		f.Rule, f.Reasons, f.Hint, f.Until = d.Rule, d.Reasons, d.Hint, d.Until
		for _, p := range d.Problems {
			f.Problems = append(f.Problems, checkrun.Problem{Path: p.Path, Line: p.Line, Message: p.Message})
		}
	}
	if n := len(st.Attempts); n > 0 && st.Attempts[n-1].Run < st.Run && !st.Open() {
		// A run that ended before its first attempt: what matters are the
		// attempts that made it so.
		f.Run = st.Attempts[n-1].Run
	}
	request(&f, st)
	shown(&f, t, st, effective.Policy)
	verdicts(&f, st, l)
	if err := s.held(ctx, &f, t, st); err != nil {
		return f, err
	}
	judged(&f, st)
	return f, nil
}

// state names where a thread stands.
func state(st State) checkrun.State {
	d := st.Decision
	if _, running := st.Running(); running || d == nil || st.Open() && d.Action != policy.DoWait {
		return checkrun.Running
	}
	switch {
	case st.Open():
		return checkrun.Waiting
	case d.Failed:
		return checkrun.Failed
	case len(d.Problems) > 0:
		return checkrun.ConfigError
	case d.Action == policy.DoDone:
		return checkrun.Done
	}
	return checkrun.Stopped
}

// request is what the current run was asked for last.
func request(f *checkrun.Facts, st State) {
	for _, r := range st.Feedback {
		if r.Withdrawn == "" {
			f.RequestedBy = r.By.Login
			f.Request = r.Text
			if f.Request == "" {
				f.Request = st.Snapshot.Title
			}
		}
	}
}

// shown are the attempts with the similarity to the one before in the same run.
func shown(f *checkrun.Facts, t Thread, st State, p config.Policy) {
	l := Limits(p)
	var before time.Time
	for i, a := range st.Attempts {
		r := a.Receipt
		v := checkrun.Attempt{
			N: a.N, Run: a.Run, Backend: a.Backend, Effort: a.Effort, Ending: string(r.Ending), Outcome: string(r.Outcome),
			Progress: policy.Progress(r.StartTree, r.EndTree),
			Edits:    checkrun.Edits{Operations: r.Edits.Operations, Files: r.Edits.Files, MaxRepeat: r.Edits.MaxRepeat, MaxRepeatPath: r.Edits.MaxRepeatPath},
			Detail:   r.Detail, FinalMessage: r.Final, Rung: a.Decision.Rung, Escalated: a.Decision.Escalated, Different: a.Decision.Different,
			Tokens:  checkrun.Tokens{Input: r.Tokens.Input, CachedInput: r.Tokens.CachedInput, Output: r.Tokens.Output},
			CostUSD: r.CostUSD, LeftOut: r.LeftOut, Verify: verified(r.Verify), ToolCalls: r.ToolCalls, Turns: r.Turns,
			Session: a.Continues, Failing: r.Tests, Rungs: rungs(r.Rungs),
		}
		for _, w := range r.Verify {
			v.Known = append(v.Known, w.Known...)
		}
		if !a.EndedAt.IsZero() {
			v.Grade = graded(st.graded(t, i, p).Grade())
		}
		if c := a.Decision.Choice; c != nil {
			v.Chosen = strings.Join(c.Reasons, "; ")
		}
		if r.Pushed {
			v.Commit = r.Commit
		}
		if !a.EndedAt.IsZero() {
			v.Duration = a.EndedAt.Sub(a.At)
		}
		if i > 0 && st.Attempts[i-1].Run == a.Run {
			v.Waited = a.At.Sub(before)
			s := policy.Stagnation([]policy.Attempt{st.fact(st.Attempts[i-1]), st.fact(a)}, l)
			v.Similarity, v.SimilarKind = s.Similarity, s.Kind
		}
		before = a.EndedAt
		f.Attempts = append(f.Attempts, v)
	}
}

// graded says what an attempt's grade is and where it comes from, before anybody
// asks whether it is plausible.
func graded(g policy.Grade) string {
	if !g.Known {
		return "none: " + g.Missing
	}
	var from []string
	for _, part := range g.Parts {
		if part.Share > 0 {
			from = append(from, string(part.Source))
		}
	}
	return fmt.Sprintf("%.2f, from %s", g.Value, strings.Join(from, ", "))
}

func rungs(all []Rung) []checkrun.Rung {
	var out []checkrun.Rung
	for _, r := range all {
		out = append(out, checkrun.Rung{Rung: r.Rung, Times: r.Times, Trigger: r.Trigger, Response: r.Response, Recovered: r.Recovered,
			Tokens: r.Tokens, CostUSD: r.CostUSD, Took: time.Duration(r.MS) * time.Millisecond})
	}
	return out
}

// verified picks the command that a person wants to see: the first that failed,
// else the last.
func verified(all []Verified) *checkrun.Verify {
	for i, v := range all {
		if !v.Passed || i == len(all)-1 {
			return &checkrun.Verify{Command: v.Command, Output: v.Output, ExitCode: v.Exit, Passed: v.Passed}
		}
	}
	return nil
}

// verdicts are those on the last attempt that ended and on the run.
func verdicts(f *checkrun.Facts, st State, l policy.Limits) {
	facts := st.Facts(f.Now)
	var run []policy.Attempt
	for _, a := range facts.Attempts {
		if a.Run == f.Run {
			run = append(run, a)
		}
	}
	if len(run) == 0 {
		return
	}
	last := run[len(run)-1]
	v := l.Severity.Judge(last.Edits)
	f.Severity = checkrun.Severity{Class: string(v.Class), Cooldown: v.Cooldown, Grade: v.Grade, Reasons: v.Reasons, Backend: last.Backend}
	if v.Class != policy.None {
		f.Severity.CooldownUntil = last.EndedAt.Add(v.Cooldown)
	}
	g := policy.Stagnation(run, l)
	f.Stagnation = checkrun.Stagnation{Kind: g.Kind, Similar: g.Similar, Similarity: g.Similarity, Escalated: g.Escalated, Reasons: g.Reasons}
}

// held tells the limit that the last attempt's account hit.
func (s *Solver) held(ctx context.Context, f *checkrun.Facts, t Thread, st State) error {
	for i := len(st.Attempts) - 1; i >= 0; i-- {
		a := st.Attempts[i]
		if a.EndedAt.IsZero() {
			continue
		}
		if a.Receipt.Limit == nil || a.Run != f.Run {
			return nil
		}
		breakers, err := s.Store.Breakers(ctx)
		if err != nil {
			return fmt.Errorf("breakers: %w", err)
		}
		f.Limit = &checkrun.Limit{Account: a.Account, Message: a.Receipt.Limit.Message, ResetsAt: a.Receipt.Limit.usable(),
			Consecutive: breakers[a.Account].Consecutive}
		return nil
	}
	return nil
}

// judged are the last remarks of others than Pawl itself, oldest first.
func judged(f *checkrun.Facts, st State) {
	i, j := 0, 0
	for i < len(st.Feedback) || j < len(st.Ignored) {
		var r Feedback
		accepted := j == len(st.Ignored) || i < len(st.Feedback) && st.Feedback[i].Seq < st.Ignored[j].Seq
		reason := ""
		if accepted {
			r, reason = st.Feedback[i].Feedback, st.Feedback[i].Withdrawn
			i++
		} else {
			r = st.Ignored[j]
			j++
			if r.Own {
				continue
			}
		}
		v := checkrun.Feedback{When: r.At, By: r.By.Login, Source: string(r.Source), Reason: r.Reason, Excerpt: r.Raw, Accepted: accepted && reason == ""}
		if reason != "" {
			v.Reason = reason
		}
		f.Feedback = append(f.Feedback, v)
	}
	f.Feedback = f.Feedback[max(0, len(f.Feedback)-shownFeedback):]
}

func (s *step) threadURL() string { return s.threadURLOf(s.thread) }

// threadURLOf is the page of a thread; empty when the server has no public
// address.
func (s *Solver) threadURLOf(t Thread) string {
	if s.Config.HTTP.PublicURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/threads/%s/%s/%d", s.Config.HTTP.PublicURL, t.Owner, t.Name, t.Number)
}
