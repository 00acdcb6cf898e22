package solver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// publishRemarks answers remarks on lines in their threads with what the last attempt said of each, else with the commit
// that changed their lines. Those whose remark was done (the agent says so, the attempt changed the lines, and the work
// was verified) are resolved once the checks of others are over (step.resolve). What the agent declined stays open.
// Whoever made an answered remark is asked for another review.
func (p *publisher) publishRemarks(ctx context.Context, v checkrun.View) error {
	number := p.state.Pull
	if p.state.Snapshot.Pull {
		number = p.thread.Number
	}
	if number == 0 || p.state.Closed != "" || v.State == checkrun.Running || len(p.state.Attempts) == 0 {
		return nil
	}
	last := thread.LastChange(p.state)
	owed := slices.DeleteFunc(p.remarked(last), func(a policy.RemarkAnswer) bool {
		return p.state.Acts[thread.RemarkKey(last.N, a.ID)].Done
	})
	if last.EndedAt.IsZero() || len(owed) == 0 {
		return nil
	}
	d, err := p.Forge.Discussions.Read(ctx, p.repo(), number, 0)
	if err != nil {
		return err
	}
	_, verified := last.Receipt.Verified()
	verified = verified && v.State == checkrun.Done
	answered, err := p.answerRemarks(ctx, number, last, owed, d.Threads.Nodes, verified)
	if err != nil || v.State != checkrun.Done {
		return err
	}
	var reviewers []string
	for _, t := range answered {
		if by := t.Opening.Nodes[0].By; !by.Bot() && by.Account() != "" {
			reviewers = append(reviewers, by.Account())
		}
	}
	if len(reviewers) == 0 {
		return nil
	}
	if ok, err := p.may(ctx); !ok {
		return err
	}
	slices.Sort(reviewers)
	for _, login := range slices.Compact(reviewers) {
		if err := p.askReview(ctx, thread.ReviewAgainKey(last.N, login), number, login); err != nil {
			return err
		}
	}
	return nil
}

// answerRemarks answers what is owed after an attempt, and returns the threads that were answered. A thread whose remark
// was done is noted with the answer.
func (p *publisher) answerRemarks(ctx context.Context, number int, last thread.Attempt, owed []policy.RemarkAnswer, threads []forge.ReviewThread, verified bool) (answered []forge.ReviewThread, err error) {
	for _, a := range owed {
		var said error
		done, i := thread.Act{}, threadOf(threads, a.ID)
		if i < 0 { // an id that names no remark of this pull request is the agent's mistake
			done.Note = "no such remark"
		} else {
			t := threads[i]
			changed := last.Receipt.Pushed && t.Outdated && slices.ContainsFunc(last.Receipt.Open, func(id int64) bool { return threadOf(threads[i:i+1], id) == 0 })
			body := checkrun.RemarkAnswer(a, changed && verified, render.When(changed, last.Receipt.Commit))
			if t.Resolved && a.Words == "" || body == "" && !p.ordered(last.N, t) {
				done.Note = "nothing was said or done about it"
			} else {
				answered = append(answered, t)
				said = p.reply(ctx, number, t, cmp.Or(body, checkrun.RemarkIgnored), fmt.Sprintf("<!-- pawl:remark %s %d %d -->", p.thread, last.N, a.ID))
			}
			if changed && verified && a.Words != "" && !a.Declined && !t.Resolved {
				done.Node = t.ID
			}
		}
		if err := p.settled(ctx, thread.RemarkKey(last.N, a.ID), done, said); err != nil {
			return nil, err
		}
	}
	return answered, nil
}

// reply answers in the thread of a remark, unless it did.
func (p *publisher) reply(ctx context.Context, number int, t forge.ReviewThread, body, mark string) error {
	if slices.ContainsFunc(t.Comments.Nodes, func(s forge.Said) bool {
		return s.By.Account() == p.app.BotLogin && strings.Contains(s.Text, mark)
	}) {
		return nil
	}
	p.says(ctx, body)
	return p.Forge.PullRequests.Reply(ctx, p.repo(), number, int64(t.Opening.Nodes[0].ID), body+"\n\n"+mark)
}

// threadOf is the thread that holds a remark, -1 for none.
func threadOf(threads []forge.ReviewThread, id int64) int {
	return slices.IndexFunc(threads, func(t forge.ReviewThread) bool {
		return len(t.Opening.Nodes) > 0 && slices.ContainsFunc(append(t.Opening.Nodes[:1:1], t.Comments.Nodes...), func(s forge.Said) bool { return int64(s.ID) == id })
	})
}

// remarked are the remarks that an attempt answered, and, without words, those that it was told of and did not mention.
func (p *publisher) remarked(a thread.Attempt) []policy.RemarkAnswer {
	all := slices.Clone(a.Receipt.Remarks)
	for _, id := range a.Receipt.Open {
		if !slices.ContainsFunc(all, func(r policy.RemarkAnswer) bool { return r.ID == id }) {
			all = append(all, policy.RemarkAnswer{ID: id})
		}
	}
	return all
}

// ordered reports whether a remark or an answer to it asked for an attempt.
func (p *publisher) ordered(n int, t forge.ReviewThread) bool {
	return slices.ContainsFunc(p.state.Feedback, func(f thread.Request) bool {
		return f.Taken == n && f.Source == policy.FromReviewComment && threadOf([]forge.ReviewThread{t}, f.Target.ID) == 0
	})
}

// resolve resolves the threads of remarks that were done, once the checks of others have run on the head and none of
// them failed by the work. It is tried again with each check that ends, and by itself until settleMost after the push;
// next is when, zero for never. Checks that ran on earlier commits are awaited for so long, others that may come for quiet.
func resolve(ctx context.Context, s *step) (next time.Time, err error) {
	st, open := s.state, thread.Unresolved(s.state)
	if len(open) == 0 || st.Closed != "" || st.Stopped != "" || st.Head == "" {
		return time.Time{}, nil
	}
	last := thread.LastChange(st)
	was, _ := thread.Before(st)
	if _, verified := last.Receipt.Verified(); State(was) != checkrun.Done || !verified {
		return time.Time{}, nil
	}
	heard := last.EndedAt
	var ran []string // on earlier commits
	for _, c := range st.Checks {
		if c.SHA != st.Head {
			ran = append(ran, c.Name)
		} else {
			heard = policy.Later(heard, c.At)
		}
	}
	now, end := s.Now(), last.EndedAt.Add(settleMost)
	if next = heard.Add(quiet); now.Before(next) && now.Sub(heard) > -quiet {
		return next, nil
	}
	var all []forge.CheckResult
	pull, err := s.Forge.PullRequests.Get(ctx, s.repo(), cmp.Or(st.Pull, s.thread.Number))
	if err == nil && pull.Head.SHA == st.Head {
		all, err = others(ctx, s, st.Head)
	}
	if err != nil && !final(err) {
		return time.Time{}, fmt.Errorf("the checks of the commit: %w", err)
	}
	runs := slices.ContainsFunc(all, func(c forge.CheckResult) bool { return c.Status != completed })
	missing := slices.ContainsFunc(ran, func(name string) bool {
		return !slices.ContainsFunc(all, func(c forge.CheckResult) bool { return c.Name == name })
	})
	red := slices.ContainsFunc(all, func(c forge.CheckResult) bool {
		return feedback.Failing(c.Conclusion) && !slices.ContainsFunc(st.Checked.On(st.Head), func(r thread.RedCheck) bool { return r.Name == c.Name && !ours(r) })
	})
	switch {
	case err != nil, pull.Head.SHA != st.Head, red: // the next push of Pawl's may change that
		return time.Time{}, nil
	case runs && !now.Before(end):
		return time.Time{}, nil // the end of the check does
	case (runs || missing) && now.Before(end):
		return end, nil
	}
	if ok, err := s.may(ctx); !ok {
		return time.Time{}, err
	}
	for _, key := range slices.Sorted(maps.Keys(open)) {
		if err := s.settled(ctx, key, thread.Act{SHA: st.Head}, s.Forge.PullRequests.Resolve(ctx, s.repo(), open[key])); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

// onCommit says which commit something was said of, where that is known.
func onCommit(sha string) string {
	if sha == "" {
		return ""
	}
	return fmt.Sprintf(", said of commit %.10s", sha)
}

// suggests finds a block of GitHub's that offers other lines in place of those it stands on.
var suggests = regexp.MustCompile("(?m)^ {0,3}(```+|~~~+)[ \t]*suggestion[ \t]*\r?$")

// onLines says which lines a remark with these words stands on, and whether it offers others in their place.
func onLines(t forge.ReviewThread, words string) string {
	line, where := strconv.Itoa(t.Line), "on the line as it is now"
	switch {
	case t.Line == 0:
		line, where = strconv.Itoa(t.Was), "on the line as it was then"
	case t.StartLine > 0 && t.StartLine < t.Line:
		line, where = fmt.Sprintf("%d-%d", t.StartLine, t.Line), "on the lines as they are now"
	}
	if t.Side == "LEFT" {
		where += ", before the change"
	}
	if suggests.MatchString(feedback.Visible(words)) {
		where += ", with a suggestion of what to write there instead"
	}
	return render.Line(t.Path, 300) + ":" + line + ", " + where
}
