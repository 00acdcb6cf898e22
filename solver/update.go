package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// update merges the base into what the attempt begins with. Whoever asked for that where there is nothing to merge is
// told so, and what they asked is done.
func (s *step) update(ctx context.Context, g *attempt.Ground) error {
	if behind, err := g.Update(ctx); behind || err != nil {
		return err
	}
	done := thread.Withdrawn{Reason: "there is nothing to merge: the branch holds all of " + g.Base + ", or has no history in common with it"}
	var events []thread.NewEvent
	for _, r := range s.state.Pending() {
		if r.Command != "update" || feedback.Visible(r.Text) != "" {
			continue
		}
		done.Seqs = append(done.Seqs, r.Seq)
		if r.Target.Kind != "" {
			events = append(events, thread.NewEvent{Kind: thread.KindQuestion, At: s.Now(), Data: thread.Question{Feedback: r.Feedback, Word: g.Base}})
		}
	}
	if len(done.Seqs) == 0 {
		return nil
	}
	events = append(events, thread.NewEvent{Kind: thread.KindWithdrawn, At: s.Now(), Data: done})
	if err := s.lease.Append(ctx, thread.Batch{Events: events}); err != nil {
		return err
	}
	return s.load(ctx)
}

// How long GitHub is asked whether a pull request can be merged, which it computes when somebody asks, and how often.
const (
	mergeableWait  = time.Hour
	mergeableAgain = 5 * time.Second
)

// follow asks for the base to be merged into Pawl's own pull request where that conflicts with it, or must hold all of
// it. It looks once the time is over in which the base moved, and only where the work is done: one that stopped waits
// for a person. Next is when it looks again; zero for never.
func (s *step) follow(ctx context.Context) (asked bool, next time.Time, err error) {
	st, every := s.state, s.Config.Policy.UpdateEvery
	d := st.Decision
	if was, ok := thread.Before(st); ok { // a question since says nothing of the work
		d = was.Decision
	}
	if st.BaseMoved.IsZero() || every <= 0 || st.Pull == 0 || st.Open() || d == nil || d.Action != policy.DoDone || st.Closed != "" || st.Stopped != "" ||
		!feedback.Triggers(policy.FromBase, feedback.Command{Name: "update"}, st.Repo.Triggers) {
		return false, time.Time{}, nil
	}
	if slices.ContainsFunc(st.Pending(), func(r thread.Request) bool { return r.Source == policy.FromBase }) {
		return false, time.Time{}, nil // the repository's file said meanwhile that it does not listen to this
	}
	due, now := st.BaseMoved.Truncate(every).Add(every), s.Now()
	if now.After(due.Add(mergeableWait)) {
		return false, time.Time{}, nil
	}
	if now.Before(due) {
		return false, due, nil
	}
	pull, err := s.Forge.Pull(ctx, s.repo(), st.Pull)
	switch {
	case errors.Is(err, forge.ErrNotFound), err == nil && pull.State != "open":
		return false, time.Time{}, nil
	case err != nil:
		return false, time.Time{}, fmt.Errorf("whether pull request #%d can be merged: %w", st.Pull, err)
	case pull.Mergeable == nil:
		return false, now.Add(mergeableAgain), nil
	}
	why := "conflicts with"
	if *pull.Mergeable {
		if why = "must be up to date with"; pull.MergeableState != "behind" {
			return false, time.Time{}, nil
		}
	}
	if refused, err := s.wouldRefuse(ctx, policy.Trigger{Seq: st.Seq + 1, At: now, Command: "update", Source: policy.FromBase, Generation: st.Generation, Cause: st.Cause}); refused || err != nil {
		return false, time.Time{}, err
	}
	f := thread.Feedback{Source: policy.FromBase, By: feedback.Actor{Login: "github", Type: "Bot"}, Command: "update", Number: st.Pull, SHA: pull.Head.SHA,
		Reason: fmt.Sprintf("pull request #%d %s %s", st.Pull, why, pull.Base.Ref), Generation: st.Generation, Cause: st.Cause, URL: pull.HTMLURL}
	return true, time.Time{}, s.lease.Record(ctx, thread.KindFeedback, f)
}

// wouldRefuse reports whether a bound would stop the work if that were asked now: then it is not asked, and what is done
// stays done.
func (s *step) wouldRefuse(ctx context.Context, t policy.Trigger) (bool, error) {
	f, err := s.facts(ctx, s.effective(s.state.Repo))
	f.Run++
	f.Fresh = []policy.Trigger{t}
	d := policy.Next(f)
	if d.Action == policy.DoStop {
		s.log.Info().Str("rule", string(d.Rule)).Strs("reasons", d.Reasons.Texts()).Msg("the base is not merged by itself any more")
	}
	return d.Action == policy.DoStop, err
}
