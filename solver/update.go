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

// update merges the base into the attempt's start. If there is nothing to merge, the request is answered and done.
func (s *step) update(ctx context.Context, g *attempt.Ground) error {
	behind, err := g.Update(ctx)
	if behind || err != nil {
		return err
	}
	done := thread.Withdrawn{Reason: "there is nothing to merge: the branch holds all of " + g.Base + ", or has no history in common with it"}
	var events []thread.NewEvent
	for _, r := range s.pub.state.Pending() {
		if r.Command != "update" || feedback.Visible(r.Text) != "" {
			continue
		}
		done.Seqs = append(done.Seqs, r.Seq)
		if r.Target.Kind != "" {
			question := r.Feedback
			question.Word = g.Base
			events = append(events, thread.NewEvent{Kind: thread.KindQuestion, At: s.pub.env.Now(), Data: question})
		}
	}
	if len(done.Seqs) == 0 {
		return nil
	}
	events = append(events, thread.NewEvent{Kind: thread.KindWithdrawn, At: s.pub.env.Now(), Data: done})
	if err := s.pub.lease.Append(ctx, thread.Batch{Events: events}); err != nil {
		return err
	}
	return s.pub.load(ctx)
}

// GitHub computes on request whether a pull request can be merged. follow asks every mergeableAgain for mergeableWait.
const (
	mergeableWait  = time.Hour
	mergeableAgain = 5 * time.Second
)

// follow requests a merge of the base into Pawl's own pull request if both conflict, or if the pull request must be up
// to date. After a push to the base, follow looks when the current policy.update_every interval ends. It ignores
// stopped work, which waits for a user. next is when to look again; zero for never.
func (s *step) follow(ctx context.Context) (asked bool, next time.Time, err error) {
	if !s.follows() {
		return false, time.Time{}, nil
	}
	st := s.pub.state
	if reason := mended(st); reason != "" {
		asked, err := s.askUpdate(ctx, reason, st.Head, "")
		return asked, time.Time{}, err
	}
	if st.BaseMoved.IsZero() {
		return false, time.Time{}, nil
	}
	every, now := s.pub.Config.Policy.UpdateEvery, s.pub.env.Now()
	due := st.BaseMoved.Truncate(every).Add(every)
	switch {
	case now.After(due.Add(mergeableWait)):
		return false, time.Time{}, nil
	case now.Before(due):
		return false, due, nil
	}
	pull, err := s.pub.Forge.PullRequests.Get(ctx, s.pub.repo(), st.Pull)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return false, time.Time{}, nil
	case err != nil:
		return false, time.Time{}, fmt.Errorf("whether pull request #%d can be merged: %w", st.Pull, err)
	case pull.State != "open":
		return false, time.Time{}, nil
	case pull.Mergeable == nil:
		return false, now.Add(mergeableAgain), nil
	}
	why := "conflicts with"
	if *pull.Mergeable {
		if pull.MergeableState != "behind" {
			return false, time.Time{}, nil
		}
		why = "must be up to date with"
	}
	reason := fmt.Sprintf("pull request #%d %s %s", st.Pull, why, pull.Base.Ref)
	asked, err = s.askUpdate(ctx, reason, pull.Head.SHA, pull.HTMLURL)
	return asked, time.Time{}, err
}

// follows reports whether the pull request is Pawl's own, its work is done, and base updates are on.
func (s *step) follows() bool {
	st := s.pub.state
	if st.Pull == 0 || !s.mergesBase(st.Repo.Triggers) {
		return false
	}
	switch {
	case st.Open(), s.pub.ended(), st.Watching(): // watch does the same
		return false
	}
	was, _ := st.Before() // a later question does not concern the work
	if was.Decision == nil || was.Decision.Action != policy.DoDone {
		return false
	}
	// A pending request for a merge was ignored, because the repository's triggers exclude it.
	pending := func(r thread.Request) bool { return r.Source == policy.FromBase }
	return !slices.ContainsFunc(st.Pending(), pending)
}

// mergesBase reports whether Pawl merges the base without being asked.
func (s *step) mergesBase(triggers []string) bool {
	if s.pub.Config.Policy.UpdateEvery <= 0 {
		return false
	}
	return feedback.Triggers(policy.FromBase, feedback.Command{Name: "update"}, triggers)
}

// mended names a failing check of the head that the base has fixed since the work began. It is empty for none, or if
// a merge was already requested for that head.
func mended(st thread.State) string {
	if slices.ContainsFunc(st.Feedback, func(r thread.Request) bool { return r.Source == policy.FromBase && r.SHA == st.Head }) {
		return ""
	}
	for _, c := range st.Checked.On(st.Head) {
		if c.Update {
			return fmt.Sprintf("check run %q: %s", c.Name, c.Reason)
		}
	}
	return ""
}

// askUpdate requests a merge of the base, unless a limit would stop the work.
func (s *step) askUpdate(ctx context.Context, reason, head, url string) (bool, error) {
	st := s.pub.state
	facts, err := s.facts(ctx, effective(s.pub.Config, st.Repo))
	if err != nil {
		return false, err
	}
	facts.Run++
	facts.Fresh = []policy.Request{{
		Seq:        st.Seq + 1,
		At:         s.pub.env.Now(),
		Command:    "update",
		Source:     policy.FromBase,
		Generation: st.Generation,
		Cause:      st.Cause,
	}}
	if d := policy.Next(facts); d.Action == policy.DoStop { // do not request the merge, so that the work stays done
		s.pub.log.Info().Str("rule", string(d.Rule)).Strs("reasons", d.Reasons.Texts()).Msg("the base is no longer merged automatically")
		return false, nil
	}
	return true, s.pub.lease.Record(ctx, thread.KindFeedback, s.pub.baseRequest(reason, head, url))
}

// baseRequest requests a merge of the base.
func (p *publisher) baseRequest(reason, head, url string) thread.Feedback {
	return thread.Feedback{
		Source:     policy.FromBase,
		By:         feedback.Actor{Login: "github", Type: "Bot"},
		Command:    "update",
		Number:     p.pullNumber(),
		SHA:        head,
		Reason:     reason,
		Generation: p.state.Generation,
		Cause:      p.state.Cause,
		URL:        url,
	}
}

// updateAsked reports whether a merge of the base was requested for a head.
func (p *publisher) updateAsked(head string) bool {
	return slices.ContainsFunc(p.state.Feedback, func(r thread.Request) bool {
		found := r.Source == policy.FromBase && r.SHA == head
		return found && r.Withdrawn == ""
	})
}
