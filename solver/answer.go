package solver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// maxPullTitle is how long the title of a pull request may be, in bytes; GitHub takes 256 characters.
const maxPullTitle = 200

// refsSettle is how long after an attempt a refusal of its pull request (422) may be
// GitHub's own lag: what was pushed is not at once what its API sees.
const refsSettle = time.Minute

// openPull opens the draft pull request for what was pushed for an issue, once.
// It is a part of every step, so one that could not be opened is opened later.
func openPull(ctx context.Context, p *publisher) error {
	n := p.state.Snapshot
	if p.Forge == nil || n.Pull || p.state.Pull != 0 || p.state.Head == "" || p.state.Closed != "" {
		return nil
	}
	if ok, err := p.may(ctx); !ok {
		return err
	}
	v, err := p.view(ctx, p.thread, p.state)
	if err != nil {
		return err
	}
	title := attempt.Subject(p.state, p.thread, thread.LastChange(p.state).Receipt.Title, maxPullTitle)
	body := checkrun.PullBody(v)
	p.says(ctx, body)
	begun := p.state.Acts[thread.ActPull].At // by an earlier try
	if begun.IsZero() {
		if err := p.begin(ctx, thread.Act{Key: thread.ActPull}); err != nil {
			return err
		}
	}
	crash.Point("pull_begun")
	// What an earlier try opened is returned, so a repetition is safe.
	pull := forge.NewPull{Title: title, Body: body, Head: p.Host.branch(p.state, p.thread), Base: n.DefaultBranch, Begun: begun}
	opened, err := forge.OpenedPull{}, forge.ErrInvalid
	if pull.Base != "" {
		opened, err = p.Forge.PullRequests.Create(ctx, p.repo(), pull)
	}
	if errors.Is(err, forge.ErrInvalid) {
		// No event may have told the default branch, or it has got another name since the last one.
		info, lookErr := p.Forge.Repositories.Get(ctx, p.repo())
		if lookErr != nil {
			return lookErr
		}
		if info.DefaultBranch != pull.Base {
			pull.Base = info.DefaultBranch
			opened, err = p.Forge.PullRequests.Create(ctx, p.repo(), pull)
		}
	}
	if a := p.state.Attempts; errors.Is(err, forge.ErrInvalid) && len(a) > 0 && p.Now().Sub(a[len(a)-1].EndedAt).Abs() < refsSettle {
		return fmt.Errorf("GitHub may not see the branch yet: %s", err) // without its kind: the step is tried again
	}
	if err != nil {
		return err
	}
	crash.Point("pull_opened")
	p.Log.Info().Str("url", opened.HTMLURL).Msg("pull request opened")
	act := thread.Act{Key: thread.ActPull, ID: int64(opened.Number), URL: opened.HTMLURL, Node: opened.Node, Hash: thread.Hash(body), Title: title.String()}
	if opened.DraftRefused {
		act.Note = "the repository's plan has no draft pull requests"
	}
	if err := p.lease.Append(ctx, thread.Batch{Alias: opened.Number, Events: []thread.NewEvent{{Kind: thread.KindActDone, At: p.Now(), Data: act}}}); err != nil {
		return err
	}
	return p.load(ctx)
}

// acknowledge puts a 👀 reaction on everything that Pawl listens to and has not acknowledged.
func (p *publisher) acknowledge(ctx context.Context) error {
	if p.state.Closed != "" {
		return nil
	}
	var targets []thread.Feedback
	for _, r := range p.state.Feedback {
		if r.Withdrawn == "" {
			targets = append(targets, r.Feedback)
		}
	}
	_, answers := p.answered("")
	for _, q := range p.state.Questions[:min(len(p.state.Questions), max(0, maxAnswers-answers))] {
		if q.Command != feedback.Refused {
			targets = append(targets, q.Feedback)
		}
	}
	targets = append(targets, p.state.Controls...)
	seen := map[thread.Target]bool{} // of a comment that is edited again and again one 👀 is enough
	for _, f := range targets {
		if f.Target.Kind == "" || f.Target.ID == 0 || seen[f.Target] {
			continue
		}
		seen[f.Target] = true
		if err := p.react(ctx, thread.ReactKey(f.Seq), f.Target, forge.Eyes); err != nil {
			return err
		}
	}
	return nil
}

// deleted reports whether an error says that a single thing is gone while the repository is still there.
func (p *publisher) deleted(ctx context.Context, err error) bool {
	if !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrGone) {
		return false
	}
	_, err = p.Forge.Repositories.Get(ctx, p.repo())
	return err == nil
}

// maxAnswers bounds the answers on a thread in an hour, so that questions leave room for
// other writes. 10 is our choice.
const maxAnswers = 10

// answered is the last answer on a page, and how many the thread had in the last hour.
func (p *publisher) answered(page string) (last thread.ActState, n int) {
	for _, a := range p.state.Acts {
		if a.Page != "" && p.Now().Sub(a.At).Abs() < time.Hour { // a clock may have been ahead
			n++
		}
		if a.Page == page && a.ID != 0 && a.At.After(last.At) {
			last = a
		}
	}
	return last, n
}

// questions are those without an answer, among them an order for a backend that turned out to be excluded.
func (p *publisher) questions() []thread.Question {
	s := p.state
	if s.Pinned == "" || p.state.Acts[thread.AnswerKey(s.PinnedBy.Seq)].Done || !p.HasBackend(s.Pinned) ||
		attempt.BackendNamed(effective(p.Config, s.Repo).Backends, s.Pinned).Name != "" {
		return s.Questions
	}
	q := thread.Question{Feedback: s.PinnedBy, Word: s.Pinned}
	q.Command = "use"
	return append(slices.Clone(s.Questions), q)
}

// react puts a reaction on what somebody wrote; GitHub's refusal is noted.
func (p *publisher) react(ctx context.Context, key string, on thread.Target, reaction string) error {
	return p.act(ctx, key, "", func() (thread.Act, bool, error) { return thread.Act{}, false, nil }, func(int64) (thread.Act, error) {
		var err error
		if on.Node == "" {
			err = p.Forge.Issues.React(ctx, p.repo(), on.Kind, on.ID, reaction)
		} else {
			err = p.Forge.PullRequests.React(ctx, p.repo(), on.Node, reaction)
		}
		crash.Point("reacted")
		if p.refused(ctx, err) {
			return thread.Act{Note: err.Error()}, nil
		}
		return thread.Act{}, err
	})
}

// answer answers a question, in the comment of the last answer to such a one there.
func (p *publisher) answer(ctx context.Context, q thread.Question) error {
	number := cmp.Or(q.Number, p.thread.Number)
	page := fmt.Sprintf("%s %d", q.Command, number)
	last, n := p.answered(page)
	if n >= maxAnswers {
		return p.acted(ctx, thread.AnswerKey(q.Seq), thread.Act{Note: fmt.Sprintf("not answered: %d answers in an hour are enough", n)})
	}
	if q.Command == feedback.Refused && !q.Private { // anybody may write to a public repository, and a reaction is seen by who wrote
		if q.Target.Kind == "" {
			return p.acted(ctx, thread.AnswerKey(q.Seq), thread.Act{Note: "there is nothing to react to"})
		}
		return p.react(ctx, thread.AnswerKey(q.Seq), q.Target, forge.Confused)
	}
	v, err := p.view(ctx, p.thread, p.state)
	if err != nil {
		return err
	}
	var backends []string
	for _, b := range effective(p.Config, p.state.Repo).Backends {
		backends = append(backends, b.Name)
	}
	body := checkrun.Answer(v, q, p.app.Slug, backends, p.HasBackend(q.Word))
	p.says(ctx, body)
	mark := fmt.Sprintf("<!-- pawl:answer %s %d -->", p.thread, q.Seq)
	return p.comment(ctx, thread.AnswerKey(q.Seq), number, last.ID, body, mark, thread.Act{Page: page})
}

// comment writes a comment, or a text in place of an earlier one, and logs it as done; one whose act has a hash is kept
// as it should be. A thread that takes none, as one that is locked, is noted.
func (p *publisher) comment(ctx context.Context, key string, number int, earlier int64, body, mark string, done thread.Act) error {
	return p.act(ctx, key, done.Hash, func() (thread.Act, bool, error) {
		c, ok, err := p.Forge.Issues.FindComment(ctx, p.repo(), number, mark)
		return thread.Act{ID: c.ID, URL: c.HTMLURL, Page: done.Page}, ok, err
	}, func(own int64) (thread.Act, error) {
		var c forge.Comment
		var err error
		id := cmp.Or(own, earlier)
		if id != 0 {
			c, err = p.Forge.Issues.EditComment(ctx, p.repo(), id, body, mark)
			crash.Point("comment_edited")
			if p.deleted(ctx, err) {
				own, id = 0, 0
			}
		}
		if id == 0 {
			c, err = p.Forge.Issues.CreateComment(ctx, p.repo(), number, body, mark)
			crash.Point("comment_written")
		}
		if own == 0 && p.refused(ctx, err) {
			return thread.Act{Note: err.Error(), Page: done.Page}, nil
		}
		done.ID, done.URL = c.ID, c.HTMLURL
		return done, err
	})
}

// refused reports whether GitHub will never do something to a single thing.
func (p *publisher) refused(ctx context.Context, err error) bool {
	return errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrInvalid) || p.deleted(ctx, err)
}

// attend answers and acknowledges what came while an attempt runs, in the attempt's own lease. What it cannot
// do now is done after the attempt. The publisher must be a copy of the step's.
func (p *publisher) attend(ctx context.Context) {
	if err := p.load(ctx); err != nil {
		p.log.Warn().Err(err).Msg("read the log beside an attempt")
		return
	}
	if err := p.acknowledge(ctx); err != nil {
		p.log.Warn().Err(err).Msg("acknowledge beside an attempt")
	}
	for _, q := range p.questions() {
		if err := p.answer(ctx, q); err != nil {
			p.log.Warn().Err(err).Msg("answer beside an attempt")
			return
		}
	}
}

// publishSaid posts what agents answered and planned, each in a comment of its own, where it was asked for.
func (p *publisher) publishSaid(ctx context.Context) error {
	for _, a := range p.state.Attempts {
		key := thread.SaidKey(a.N)
		if a.Receipt.Outcome != policy.Answered || p.state.Acts[key].Done {
			continue
		}
		number, body := p.askedOn(a.N), checkrun.Said(p.state.Fact(a))
		p.says(ctx, body)
		mark := fmt.Sprintf("<!-- pawl:said %s %d -->", p.thread, a.N)
		if err := p.comment(ctx, key, number, 0, body, mark, thread.Act{}); err != nil {
			return err
		}
	}
	return nil
}

// askedOn is the issue or pull request on which an attempt was asked for.
func (p *publisher) askedOn(n int) (number int) {
	for _, r := range p.state.Feedback {
		if r.Taken == n {
			number = r.Number
		}
	}
	return cmp.Or(number, p.thread.Number)
}

// plan is the plan that the next attempt is to work by, if it is to work by one: as its comment reads at GitHub, or, after
// a failure, as the attempt before it had it. Refused says why it cannot be taken.
func (s *step) plan(ctx context.Context, purpose policy.Purpose) (plan string, refused *thread.Decided, err error) {
	made, order := thread.Plan(s.state)
	if purpose != policy.ToChange || order == nil {
		return "", nil, nil
	}
	for _, a := range slices.Backward(s.state.Attempts) {
		if order.Taken != 0 && a.N >= order.Taken && a.Plan != "" {
			return a.Plan, nil, nil
		}
	}
	again := func(why string) (string, *thread.Decided, error) {
		d := thread.Refuse(policy.RulePlan, "Comment /pawl go once more to have the plan worked off as it stands now, or /pawl plan for another one.", why)
		d.Action = policy.DoAsk
		return "", d, nil
	}
	if made == nil {
		return again("there is no plan")
	}
	act := s.state.Acts[thread.SaidKey(made.N)]
	if act.ID == 0 { // it could not be posted, so nobody could change it
		return made.Receipt.Final, nil, nil
	}
	d, err := s.Forge.Discussions.Read(ctx, s.repo(), s.askedOn(made.N), math.MaxInt)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(d.Comments.Nodes, func(c forge.Said) bool { return int64(c.ID) == act.ID })
	if i < 0 {
		return again("the comment with the plan is gone")
	}
	c := d.Comments.Nodes[i]
	if c.Edited.IsZero() {
		return made.Receipt.Final, nil, nil
	}
	if c.Edited.After(order.Made()) {
		return again("the plan was edited after the order to work by it")
	}
	by, permission := c.Editor.Account(), ""
	if by != "" && !c.Editor.Bot() {
		if permission, err = s.Forge.Repositories.Permission(ctx, s.repo(), by); err != nil {
			return "", nil, err
		}
	}
	if !feedback.Writes(permission) {
		return again(fmt.Sprintf("the plan was edited by %s, who is no person with the permission to write", cmp.Or(by, "an unknown account")))
	}
	return checkrun.PlanIn(c.Text), nil, nil
}
