package solver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver/thread"
)

const shownFeedback = 20

// View returns a thread's fold with the shared state of its last backend.
func (s *Solver) View(ctx context.Context, t thread.ID) (checkrun.View, error) {
	_, state, err := thread.Load(ctx, s.Env.Store, t)
	if err != nil {
		return checkrun.View{}, err
	}
	return s.view(ctx, t, state)
}

func (s *Solver) view(ctx context.Context, t thread.ID, st thread.State) (checkrun.View, error) {
	l := effective(s.Env.Current(), st.Repo).Policy.Limits
	f := checkrun.View{
		Thread: t.String(), Number: t.Number, IsPull: st.Snapshot.Pull, Title: st.Snapshot.Title,
		Now: s.Env.Now(), Run: st.Run, State: State(st), IssueURL: st.Snapshot.URL, Unwalled: s.Env.Config.Sandbox.Unwalled(), Branch: st.Branch(t), Base: cmp.Or(st.Snapshot.BaseRef, st.Snapshot.DefaultBranch), Head: st.ChecksOn(), Pull: st.Pull, DayUSD: l.Budget.USDPerRepositoryPerDay, Checked: st.Checked.On(st.ChecksOn()), DetailsURL: s.threadURLOf(t),
	}
	if a := st.Acts[thread.ActPull]; a.Done {
		f.PullURL = a.URL
	}
	if a, running := st.Running(); running {
		f.Decision = a.Decision
	} else if st.Decision != nil {
		f.Decided = *st.Decision
	}
	if n := len(st.Attempts); n > 0 && !st.Open() {
		// A run may end before its first attempt because of earlier attempts, which are then shown.
		f.Run = min(f.Run, st.Attempts[n-1].Run)
	}
	f.Purpose, f.Watch = st.Purpose(), watchView(st, f.Now)
	for _, r := range st.Feedback {
		if r.Withdrawn == "" && r.Source != policy.FromBase {
			f.RequestedBy, f.Request = r.By.Login, cmp.Or(r.Text, feedback.Visible(st.Snapshot.Body))
		}
	}
	shown(&f, t, st, l)
	judged(&f, st)
	for _, a := range st.Attempts {
		if a.Run != f.Run {
			continue
		}
		if posted := st.Acts[thread.SaidKey(a.N)]; posted.Done {
			f.AnswerURL, f.PostError = posted.URL, posted.Note
		}
	}
	if was, ok := st.Before(); ok {
		before, err := s.view(ctx, t, was)
		if err != nil {
			return f, err
		}
		f.Before = &before
	}
	return f, s.verdicts(ctx, &f, l)
}

// State returns a thread's state for check runs.
func State(st thread.State) checkrun.State {
	d := st.Decision
	_, running := st.Running()
	switch {
	case running, d == nil:
		return checkrun.Running
	case st.Open():
		if d.Action != policy.DoWait {
			return checkrun.Running
		}
		return checkrun.Waiting
	case d.Failed:
		return checkrun.Failed
	case len(d.Problems) > 0:
		return checkrun.ConfigError
	case d.Rule == policy.RuleAnswered:
		return checkrun.Answered
	case d.Rule == policy.RulePlanned:
		return checkrun.Planned
	case d.Action == policy.DoDone:
		return checkrun.Done
	}
	return checkrun.Stopped
}

// shown lists the attempts and their similarity to earlier ones of the run.
func shown(f *checkrun.View, t thread.ID, st thread.State, l policy.Limits) {
	for i, a := range st.Attempts {
		v := checkrun.Attempt{Attempt: st.Fact(a), Effort: a.Effort, Continues: a.Continues, Proposal: a.Proposal, NoAgent: a.NoAgent}
		if c := a.Decision.Choice; c != nil {
			v.Chosen = strings.Join(c.Reasons, "; ")
		}
		if !a.EndedAt.IsZero() {
			v.Grade = "none: it was to change nothing"
			if a.Decision.Purpose == policy.ToChange {
				v.Grade = gradeText(st.Grade(t, i, l.Severity).Grade())
			}
			v.Duration = a.EndedAt.Sub(a.At)
		}
		if a.NoAgent {
			v.Backend, v.Grade = "no agent", "none: no agent was asked"
		}
		if i > 0 && st.Attempts[i-1].Run == a.Run {
			before := f.Attempts[i-1].Attempt
			v.Waited = a.At.Sub(before.EndedAt)
			s := policy.Stagnation([]policy.Attempt{before, v.Attempt}, a.Run, l)
			v.Similarity, v.SimilarKind = s.Similarity, s.Kind
		}
		f.Attempts = append(f.Attempts, v)
	}
}

func gradeText(g learning.Grade) string {
	if !g.Known {
		return "none: " + g.Missing
	}
	var from []string
	for _, source := range g.From {
		from = append(from, string(source))
	}
	return fmt.Sprintf("%.2f, from %s", g.Value, strings.Join(from, ", "))
}

// verdicts adds the verdicts on the run and on its last finished attempt.
func (s *Solver) verdicts(ctx context.Context, f *checkrun.View, l policy.Limits) error {
	var all []policy.Attempt
	for _, a := range f.Attempts {
		if !a.EndedAt.IsZero() {
			all = append(all, a.Attempt)
		}
	}
	if len(all) == 0 || all[len(all)-1].Run != f.Run {
		return nil
	}
	last := all[len(all)-1]
	f.Severity, f.Stagnation = l.Severity.Loop(last.Receipt), policy.Stagnation(all, f.Run, l)
	if f.Severity.Class != policy.None {
		f.CooldownUntil = last.EndedAt.Add(f.Severity.Cooldown)
	}
	if f.Severity.Class == policy.Severe {
		repo, _, _ := strings.Cut(f.Thread, "#")
		cooldowns, err := s.Env.Store.Cooldowns(ctx, repo)
		if err != nil {
			return fmt.Errorf("cooldowns: %w", err)
		}
		runaway := func(c thread.Cooldown) bool { return c.Backend == last.Backend && c.Class == policy.Runaway }
		f.Runaway = slices.ContainsFunc(cooldowns[repo], runaway)
	}
	if last.Limit == nil {
		return nil
	}
	breakers, err := s.Env.Store.Breakers(ctx)
	if err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	f.Limit = &checkrun.AccountLimit{Account: last.Account, Message: last.Limit.Message, ResetsAt: last.Limit.Usable(),
		Consecutive: breakers[last.Account].For(f.Thread).Consecutive}
	return nil
}

func judged(f *checkrun.View, st thread.State) {
	all := slices.Clone(st.Feedback)
	for _, r := range st.Ignored {
		if !r.Own {
			all = append(all, thread.Request{Feedback: r, Withdrawn: cmp.Or(r.Reason, "no reason was kept")})
		}
	}
	slices.SortFunc(all, func(a, b thread.Request) int { return cmp.Compare(a.Seq, b.Seq) })
	f.Feedback = all[max(0, len(all)-shownFeedback):]
}

func (s *Solver) threadURLOf(t thread.ID) string {
	if s.Env.Config.HTTP.PublicURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/threads/%s/%s/%d", s.Env.Config.HTTP.PublicURL, t.Owner, t.Name, t.Number)
}
