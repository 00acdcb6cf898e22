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

// publishRemarks answers review comments with the last attempt's words about each, else with the commit that changed
// their lines. A remark is done if the agent says so, its lines changed, and the work was verified. step.resolve
// resolves the threads of done remarks; declined ones stay open. Authors of answered remarks are asked for another
// review.
func (p *publisher) publishRemarks(ctx context.Context, v checkrun.View) error {
	number := p.remarksOn(v)
	if number == 0 {
		return nil
	}
	last := p.state.LastChange()
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
	answered, err := p.answerRemarks(ctx, number, last, owed, d.Threads.Nodes, v.State)
	if err != nil || v.State != checkrun.Done {
		return err
	}
	return p.askReviewers(ctx, number, last.N, answered)
}

// remarksOn returns the open pull request whose remarks may be answered; 0 for none, or while an attempt runs.
func (p *publisher) remarksOn(v checkrun.View) int {
	if len(p.state.Attempts) == 0 || p.state.Closed != "" {
		return 0
	}
	if v.State == checkrun.Running {
		return 0
	}
	if p.state.Snapshot.Pull {
		return p.thread.Number
	}
	return p.state.Pull
}

// askReviewers requests another review from the authors of answered remarks.
func (p *publisher) askReviewers(ctx context.Context, number, attempt int, answered []forge.ReviewThread) error {
	var reviewers []string
	for _, t := range answered {
		by := t.Opening.Nodes[0].By
		if by.Bot() || by.Account() == "" {
			continue
		}
		reviewers = append(reviewers, by.Account())
	}
	if len(reviewers) == 0 {
		return nil
	}
	if ok, err := p.may(ctx); !ok {
		return err
	}
	slices.Sort(reviewers)
	for _, login := range slices.Compact(reviewers) {
		if err := p.askReview(ctx, thread.ReviewAgainKey(attempt, login), number, login); err != nil {
			return err
		}
	}
	return nil
}

// answerRemarks posts an attempt's outstanding answers and returns their threads. For a done remark, the logged act
// names the thread.
func (p *publisher) answerRemarks(ctx context.Context, number int, last thread.Attempt, owed []policy.RemarkAnswer, threads []forge.ReviewThread, now checkrun.State) (answered []forge.ReviewThread, err error) {
	verified := last.Receipt.CommandsPassed()
	for _, a := range owed {
		r := remark{RemarkAnswer: a, verified: verified && now == checkrun.Done}
		i := threadOf(threads, a.ID)
		if i >= 0 {
			r.thread = &threads[i]
			r.changed = changedLines(last, threads[i])
		}
		act, replies, err := p.answerRemark(ctx, number, last, r)
		if replies {
			answered = append(answered, *r.thread)
		}
		if err := p.finishAct(ctx, thread.RemarkKey(last.N, a.ID), act, err); err != nil {
			return nil, err
		}
	}
	return answered, nil
}

// remark is an attempt's answer to a review comment, and what the attempt did about it.
type remark struct {
	policy.RemarkAnswer
	thread   *forge.ReviewThread // nil if the agent named an id that does not exist
	changed  bool                // the attempt changed the lines
	verified bool
}

func (r remark) done() bool {
	if !r.changed || !r.verified {
		return false
	}
	answered := r.Words != "" && !r.Declined
	return answered && !r.thread.Resolved
}

// answerRemark answers one remark in its thread, if there is something to say. The act notes the result.
func (p *publisher) answerRemark(ctx context.Context, number int, last thread.Attempt, r remark) (act thread.Act, replies bool, err error) {
	if r.thread == nil {
		return thread.Act{Note: "no such remark"}, false, nil
	}
	if r.done() {
		act.Node = r.thread.ID
	}
	commit := ""
	if r.changed {
		commit = last.Receipt.Commit
	}
	body := checkrun.RemarkAnswer(r.RemarkAnswer, r.changed && r.verified, commit)
	silent := r.thread.Resolved && r.Words == ""
	if body == "" && !p.requested(last.N, *r.thread) {
		silent = true
	}
	if silent {
		act.Note = "no answer and no change"
		return act, false, nil
	}
	mark := fmt.Sprintf("<!-- pawl:remark %s %d %d -->", p.thread, last.N, r.ID)
	return act, true, p.reply(ctx, number, *r.thread, cmp.Or(body, checkrun.RemarkIgnored), mark)
}

func changedLines(a thread.Attempt, t forge.ReviewThread) bool {
	if !a.Receipt.Pushed || !t.Outdated {
		return false
	}
	return slices.ContainsFunc(a.Receipt.Open, func(id int64) bool { return holds(t, id) })
}

// reply answers in a remark's thread, once.
func (p *publisher) reply(ctx context.Context, number int, t forge.ReviewThread, body, mark string) error {
	if slices.ContainsFunc(t.Comments.Nodes, func(s forge.Post) bool {
		return s.By.Account() == p.app.BotLogin && strings.Contains(s.Text, mark)
	}) {
		return nil
	}
	p.logOwnText(ctx, body)
	return p.Forge.PullRequests.Reply(ctx, p.repo(), number, int64(t.Opening.Nodes[0].ID), body+"\n\n"+mark)
}

// threadOf returns the index of a remark's thread, or -1.
func threadOf(threads []forge.ReviewThread, id int64) int {
	return slices.IndexFunc(threads, func(t forge.ReviewThread) bool { return holds(t, id) })
}

// holds reports whether a remark opens a thread or replies in it.
func holds(t forge.ReviewThread, id int64) bool {
	if len(t.Opening.Nodes) == 0 {
		return false
	}
	all := append(t.Opening.Nodes[:1:1], t.Comments.Nodes...)
	return slices.ContainsFunc(all, func(s forge.Post) bool { return int64(s.ID) == id })
}

// remarked returns an attempt's answers to remarks, and empty answers to those that it received but did not mention.
func (p *publisher) remarked(a thread.Attempt) []policy.RemarkAnswer {
	all := slices.Clone(a.Receipt.Remarks)
	for _, id := range a.Receipt.Open {
		if !slices.ContainsFunc(all, func(r policy.RemarkAnswer) bool { return r.ID == id }) {
			all = append(all, policy.RemarkAnswer{ID: id})
		}
	}
	return all
}

// requested reports whether a remark or an answer to it asked for an attempt.
func (p *publisher) requested(n int, t forge.ReviewThread) bool {
	return slices.ContainsFunc(p.state.Feedback, func(f thread.Request) bool {
		return f.Taken == n && f.Source == policy.FromReviewComment && holds(t, f.Target.ID)
	})
}

// resolve resolves the threads of done remarks, once other checks have run on the head without a failure of the work.
// Each check's result leads to another call; so does a timer at next, unless zero. It waits up to settleMost for checks
// that ran on earlier commits, and `quiet` for others.
func (s *step) resolve(ctx context.Context) (next time.Time, err error) {
	open := s.pub.state.Unresolved()
	if len(open) == 0 || !s.verifiedWork() {
		return time.Time{}, nil
	}
	green, next, err := s.headGreen(ctx)
	if err != nil || !green {
		return next, err
	}
	if ok, err := s.pub.may(ctx); !ok {
		return time.Time{}, err
	}
	for _, key := range slices.Sorted(maps.Keys(open)) {
		err := s.pub.Forge.PullRequests.Resolve(ctx, s.pub.repo(), open[key])
		if err := s.pub.finishAct(ctx, key, thread.Act{SHA: s.pub.state.Head}, err); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

// headGreen reports whether other checks have run on the head without a failure of the work. Otherwise next is when
// to look again; zero if an event will wake the thread.
func (s *step) headGreen(ctx context.Context) (green bool, next time.Time, err error) {
	last := s.pub.state.LastChange()
	ran, reported := s.checksReported(last.EndedAt)
	now, end := s.pub.env.Now(), last.EndedAt.Add(settleMost)
	if next, quiet := quietAt(reported, now); !quiet {
		return false, next, nil
	}
	all, moved, err := s.checksOfHead(ctx)
	if err != nil && !final(err) {
		return false, time.Time{}, fmt.Errorf("the checks of the commit: %w", err)
	}
	if err != nil || moved || s.anyRed(all) {
		return false, time.Time{}, nil // no timer: only another push can change this
	}
	runs := slices.ContainsFunc(all, func(c forge.CheckResult) bool { return c.Status != completed })
	if !runs && !missing(all, ran) {
		return true, time.Time{}, nil
	}
	if now.Before(end) {
		return false, end, nil
	}
	return !runs, time.Time{}, nil // the end of a running check wakes the thread
}

// verifiedWork reports whether the thread's work is done, verified and on the head, and not stopped.
func (s *step) verifiedWork() bool {
	if s.pub.ended() || s.pub.state.Head == "" {
		return false
	}
	was, _ := s.pub.state.Before()
	if State(was) != checkrun.Done {
		return false
	}
	return s.pub.state.LastChange().Receipt.CommandsPassed()
}

// checksReported returns the names of checks on earlier commits, and the time of the head's last report, but at least
// since.
func (s *step) checksReported(since time.Time) (earlier []string, last time.Time) {
	last = since
	for _, c := range s.pub.state.Checks {
		if c.SHA != s.pub.state.Head {
			earlier = append(earlier, c.Name)
		} else {
			last = policy.Later(last, c.At)
		}
	}
	return earlier, last
}

// checksOfHead returns other Apps' checks on the head. moved means that the pull request has another head.
func (s *step) checksOfHead(ctx context.Context) (all []forge.CheckResult, moved bool, err error) {
	pull, err := s.pub.Forge.PullRequests.Get(ctx, s.pub.repo(), cmp.Or(s.pub.state.Pull, s.pub.thread.Number))
	if err != nil {
		return nil, false, err
	}
	if pull.Head.SHA != s.pub.state.Head {
		return nil, true, nil
	}
	all, _, err = s.pub.others(ctx, s.pub.state.Head)
	return all, false, err
}

// anyRed reports whether a check failed, possibly because of the work.
func (s *step) anyRed(all []forge.CheckResult) bool {
	known := s.pub.state.Checked.On(s.pub.state.Head)
	return slices.ContainsFunc(all, func(c forge.CheckResult) bool {
		if !feedback.Failing(c.Conclusion) {
			return false
		}
		innocent := func(r thread.RedCheck) bool { return r.Name == c.Name && !ours(r) }
		return !slices.ContainsFunc(known, innocent)
	})
}

func missing(all []forge.CheckResult, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(all, func(c forge.CheckResult) bool { return c.Name == name })
	})
}

// onCommit names the commit that was reviewed, if it is known.
func onCommit(sha string) string {
	if sha == "" {
		return ""
	}
	return fmt.Sprintf(", said of commit %.10s", sha)
}

// suggests matches GitHub's suggestion blocks.
var suggests = regexp.MustCompile("(?m)^ {0,3}(```+|~~~+)[ \t]*suggestion[ \t]*\r?$")

// onLines describes a remark's lines, and whether the remark suggests a replacement.
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
