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

// maxPullTitle limits a pull request's title, in bytes; GitHub takes 256 characters.
const maxPullTitle = 200

// refsSettle is how long after a push GitHub may refuse a pull request (422) because it does not see the branch yet.
const refsSettle = time.Minute

// openPull opens the draft pull request for an issue's work, once. Every step retries a failed call.
func (p *publisher) openPull(ctx context.Context) error {
	if !p.owesPull() {
		return nil
	}
	if ok, err := p.may(ctx); !ok {
		return err
	}
	v, err := p.solver.view(ctx, p.thread, p.state)
	if err != nil {
		return err
	}
	title := attempt.Subject(p.state, p.thread, p.state.LastChange().Receipt, maxPullTitle)
	body := checkrun.PullBody(v)
	p.logOwnText(ctx, body)
	begun := p.state.Acts[thread.ActPull].At // by an earlier try
	if begun.IsZero() {
		if err := p.begin(ctx, thread.Act{Key: thread.ActPull}); err != nil {
			return err
		}
	}
	crash.Point("pull_begun")
	opened, err := p.createPull(ctx, forge.NewPull{
		Title: title,
		Body:  body,
		Head:  p.solver.Host.branch(p.state, p.thread),
		Base:  p.state.Snapshot.DefaultBranch,
		Begun: begun,
	})
	if err != nil {
		return err
	}
	crash.Point("pull_opened")
	p.env.Log.Info().Str("url", opened.HTMLURL).Msg("pull request opened")
	act := thread.Act{
		Key:   thread.ActPull,
		ID:    int64(opened.Number),
		URL:   opened.HTMLURL,
		Node:  opened.Node,
		Hash:  thread.Hash(body),
		Title: title.String(),
	}
	if opened.DraftRefused {
		act.Note = "the repository's plan has no draft pull requests"
	}
	event := thread.NewEvent{Kind: thread.KindActDone, At: p.env.Now(), Data: act}
	if err := p.lease.Append(ctx, thread.Batch{Alias: opened.Number, Events: []thread.NewEvent{event}}); err != nil {
		return err
	}
	return p.load(ctx)
}

func (p *publisher) owesPull() bool {
	if p.Forge == nil || p.state.Snapshot.Pull {
		return false
	}
	if p.state.Pull != 0 || p.state.Closed != "" {
		return false
	}
	return p.state.Head != ""
}

// createPull opens a pull request, or returns an earlier try's.
func (p *publisher) createPull(ctx context.Context, pull forge.NewPull) (opened forge.OpenedPull, err error) {
	err = forge.ErrInvalid // stands if no event named the default branch
	if pull.Base != "" {
		opened, err = p.Forge.PullRequests.Create(ctx, p.repo(), pull)
	}
	if errors.Is(err, forge.ErrInvalid) {
		// The default branch may have been renamed since the last event.
		info, lookErr := p.Forge.Repositories.Get(ctx, p.repo())
		if lookErr != nil {
			return opened, lookErr
		}
		if info.DefaultBranch != pull.Base {
			pull.Base = info.DefaultBranch
			opened, err = p.Forge.PullRequests.Create(ctx, p.repo(), pull)
		}
	}
	if errors.Is(err, forge.ErrInvalid) && p.justPushed() {
		return opened, fmt.Errorf("GitHub may not see the branch yet: %s", err) // hide ErrInvalid, so that the step retries
	}
	return opened, err
}

func (p *publisher) justPushed() bool {
	n := len(p.state.Attempts)
	if n == 0 {
		return false
	}
	return p.env.Now().Sub(p.state.Attempts[n-1].EndedAt).Abs() < refsSettle
}

// acknowledge adds a 👀 reaction to each request, once.
func (p *publisher) acknowledge(ctx context.Context) error {
	if p.state.Closed != "" {
		return nil
	}
	seen := map[thread.Target]bool{} // one 👀 for a comment that is edited repeatedly
	for _, f := range p.toAcknowledge() {
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

// toAcknowledge lists what gets a reaction: feedback, questions that Pawl will answer, and commands.
func (p *publisher) toAcknowledge() []thread.Feedback {
	var all []thread.Feedback
	for _, r := range p.state.Feedback {
		if r.Withdrawn == "" {
			all = append(all, r.Feedback)
		}
	}
	_, answers := p.answered("")
	for _, q := range p.state.Questions[:min(len(p.state.Questions), max(0, maxAnswers-answers))] {
		if q.Command != feedback.Refused {
			all = append(all, q)
		}
	}
	return append(all, p.state.Controls...)
}

// deleted reports whether err means that an object is gone while its repository still exists.
func (p *publisher) deleted(ctx context.Context, err error) bool {
	if !isAny(err, forge.ErrNotFound, forge.ErrGone) {
		return false
	}
	_, err = p.Forge.Repositories.Get(ctx, p.repo())
	return err == nil
}

// maxAnswers limits a thread's answers per hour. Our choice.
const maxAnswers = 10

// answered returns the last answer on a page, and the number of the thread's answers in the last hour.
func (p *publisher) answered(page string) (last thread.ActState, n int) {
	for _, a := range p.state.Acts {
		if a.Page != "" && p.env.Now().Sub(a.At).Abs() < time.Hour { // a clock may have been ahead
			n++
		}
		if a.Page != page || a.ID == 0 {
			continue
		}
		if a.At.After(last.At) {
			last = a
		}
	}
	return last, n
}

// questions lists unanswered questions, including commands for an excluded backend.
func (p *publisher) questions() []thread.Feedback {
	if !p.owesPinned() {
		return p.state.Questions
	}
	q := p.state.PinnedBy
	q.Command, q.Word = "use", p.state.Pinned
	return append(slices.Clone(p.state.Questions), q)
}

// owesPinned reports whether a user chose an excluded backend and got no answer.
func (p *publisher) owesPinned() bool {
	s := p.state
	if s.PinnedBy.Command == "use" { // a use command is answered in any case
		return false
	}
	if s.Pinned == "" || !p.solver.HasBackend(s.Pinned) {
		return false
	}
	if p.state.Acts[thread.AnswerKey(s.PinnedBy.Seq)].Done {
		return false
	}
	return attempt.BackendNamed(effective(p.Config, s.Repo).Backends, s.Pinned).Name == ""
}

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

// answer answers a question and edits an earlier answer to the same question on the same page.
func (p *publisher) answer(ctx context.Context, q thread.Feedback) error {
	number := cmp.Or(q.Number, p.thread.Number)
	page := fmt.Sprintf("%s %d", q.Command, number)
	last, n := p.answered(page)
	if n >= maxAnswers {
		return p.acted(ctx, thread.AnswerKey(q.Seq), thread.Act{Note: fmt.Sprintf("not answered: %d answers in an hour are enough", n)})
	}
	if q.Command == feedback.Refused && !q.Private { // anyone may comment on a public repository, so a reaction is enough
		return p.puzzle(ctx, q)
	}
	v, err := p.solver.view(ctx, p.thread, p.state)
	if err != nil {
		return err
	}
	var backends []string
	for _, b := range effective(p.Config, p.state.Repo).Backends {
		backends = append(backends, b.Name)
	}
	body := checkrun.Answer(v, q, p.app.Slug, backends, p.solver.HasBackend(q.Word))
	p.logOwnText(ctx, body)
	mark := fmt.Sprintf("<!-- pawl:answer %s %d -->", p.thread, q.Seq)
	return p.comment(ctx, thread.AnswerKey(q.Seq), number, last.ID, body, mark, thread.Act{Page: page})
}

func (p *publisher) puzzle(ctx context.Context, q thread.Feedback) error {
	if q.Target.Kind == "" {
		return p.acted(ctx, thread.AnswerKey(q.Seq), thread.Act{Note: "there is nothing to react to"})
	}
	return p.react(ctx, thread.AnswerKey(q.Seq), q.Target, forge.Confused)
}

// comment creates or edits a comment and logs it. If done has a hash, later calls update the same comment.
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

func (p *publisher) refused(ctx context.Context, err error) bool {
	if isAny(err, forge.ErrForbidden, forge.ErrInvalid) {
		return true
	}
	return p.deleted(ctx, err)
}

// attend acknowledges and answers new events during an attempt, under its lease. The step after the attempt retries
// failures. The publisher must be a copy, since the attempt uses the original.
func (p *publisher) attend(ctx context.Context) {
	if err := p.load(ctx); err != nil {
		p.log.Warn().Err(err).Msg("read the log during an attempt")
		return
	}
	if err := p.acknowledge(ctx); err != nil {
		p.log.Warn().Err(err).Msg("acknowledge during an attempt")
	}
	for _, q := range p.questions() {
		if err := p.answer(ctx, q); err != nil {
			p.log.Warn().Err(err).Msg("answer during an attempt")
			return
		}
	}
}

// publishAnswers posts agents' answers and plans where users asked.
func (p *publisher) publishAnswers(ctx context.Context) error {
	for _, a := range p.state.Attempts {
		key := thread.SaidKey(a.N)
		if o := a.Receipt.Outcome; (o != policy.Answered && o != policy.Planned) || p.state.Acts[key].Done {
			continue
		}
		number, body := p.askedOn(a.N), checkrun.AnswerComment(p.state.Fact(a))
		p.logOwnText(ctx, body)
		mark := fmt.Sprintf("<!-- pawl:said %s %d -->", p.thread, a.N)
		if err := p.comment(ctx, key, number, 0, body, mark, thread.Act{}); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) askedOn(n int) (number int) {
	for _, r := range p.state.Feedback {
		if r.Taken == n {
			number = r.Number
		}
	}
	return cmp.Or(number, p.thread.Number)
}

// plan returns the plan for the next attempt: after a failure the previous attempt's, else the comment on GitHub.
// refused says why the plan cannot be used.
func (s *step) plan(ctx context.Context, purpose policy.Purpose) (plan string, refused *thread.Decided, err error) {
	made, order := s.pub.state.Plan()
	if purpose != policy.ToChange || order == nil {
		return "", nil, nil
	}
	if order.Taken != 0 {
		for _, a := range slices.Backward(s.pub.state.Attempts) {
			if a.N >= order.Taken && a.Plan != "" {
				return a.Plan, nil, nil
			}
		}
	}
	if made == nil {
		return "", refusePlan("there is no plan"), nil
	}
	act := s.pub.state.Acts[thread.SaidKey(made.N)]
	if act.ID == 0 { // it could not be posted, so nobody could edit it
		return made.Receipt.Final, nil, nil
	}
	d, err := s.pub.Forge.Discussions.Read(ctx, s.pub.repo(), s.pub.askedOn(made.N), math.MaxInt)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(d.Comments.Nodes, func(c forge.Post) bool { return int64(c.ID) == act.ID })
	if i < 0 {
		return "", refusePlan("the comment with the plan is gone"), nil
	}
	c := d.Comments.Nodes[i]
	if c.Edited.IsZero() {
		return made.Receipt.Final, nil, nil
	}
	if c.Edited.After(order.Made()) {
		return "", refusePlan("the plan was edited after the command to carry it out"), nil
	}
	writes, err := s.editorWrites(ctx, c)
	if err != nil {
		return "", nil, err
	}
	if !writes {
		by := cmp.Or(c.Editor.Account(), "an unknown account")
		return "", refusePlan(fmt.Sprintf("the plan was edited by %s, who may not write to the repository", by)), nil
	}
	return checkrun.PlanIn(c.Text), nil, nil
}

func refusePlan(why string) *thread.Decided {
	d := thread.Refuse(policy.RulePlan, "Comment /pawl go again to carry out the plan as it is now, or /pawl plan for another one.", why)
	d.Action = policy.DoAsk
	return d
}

func (s *step) editorWrites(ctx context.Context, c forge.Post) (bool, error) {
	by := c.Editor.Account()
	if by == "" || c.Editor.Bot() {
		return false, nil
	}
	permission, err := s.pub.Forge.Repositories.Permission(ctx, s.pub.repo(), by)
	return feedback.Writes(permission), err
}
