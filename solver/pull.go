package solver

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// publishPull keeps the pull request that Pawl opened as the work is: its block of the description, and, once the work
// is verified, that it is no draft and who is asked for a review. Each of these can be done again without harm.
func (p *publisher) publishPull(ctx context.Context, v checkrun.Facts) error {
	if p.state.Snapshot.Pull || p.state.Pull == 0 || p.state.Closed != "" || v.State == checkrun.Running {
		return nil
	}
	if err := p.describePull(ctx, v); err != nil {
		return fmt.Errorf("keep the description of the pull request: %w", err)
	}
	if a := v.Attempts; v.State != checkrun.Done || len(a) == 0 {
		return nil
	} else if _, ok := a[len(a)-1].Verified(); !ok {
		return nil
	}
	ready := p.state.Acts[thread.PullReadyKey(p.state.Pull)].Done || !p.state.Repo.PullRequest.Ready() || p.state.Acts[thread.ActPull].Note != ""
	reviewer := v.RequestedBy
	if p.state.Acts[thread.PullReviewKey(p.state.Pull)].Done || !p.state.Repo.PullRequest.Review() || p.bot(reviewer) { // others cannot review
		reviewer = ""
	}
	if ready && reviewer == "" {
		return nil
	}
	if ok, err := p.may(ctx); !ok {
		return err
	}
	if !ready {
		if err := p.readyPull(ctx); err != nil {
			return fmt.Errorf("take the pull request out of draft: %w", err)
		}
	}
	if reviewer == "" {
		return nil
	}
	return p.askReview(ctx, thread.PullReviewKey(p.state.Pull), p.state.Pull, reviewer)
}

// maxDescription is how long a description may be, in bytes; GitHub takes 65,536 characters.
const maxDescription = 60_000

// describePull writes Pawl's block anew where it says something else than before, and the title where a later attempt has
// another one and people left Pawl's. Where people took the block out, it stays out.
func (p *publisher) describePull(ctx context.Context, v checkrun.Facts) error {
	key, block := thread.PullBodyKey(p.state.Pull), checkrun.PullBody(v)
	last, opened := p.state.Acts[key], p.state.Acts[thread.ActPull]
	had := cmp.Or(last.Title, opened.Title)
	title := p.retitled(had)
	done := thread.Act{Hash: thread.Hash(block), Title: cmp.Or(title.String(), had)}
	if last.Note != "" || done.Hash == cmp.Or(last.Hash, opened.Hash) && done.Title == had {
		return nil
	}
	pull, err := p.Forge.Issue(ctx, p.repo(), p.state.Pull)
	if p.deleted(ctx, err) {
		return nil
	}
	if err != nil {
		return err
	}
	body, ok := checkrun.WithBlock(pull.Body, block)
	if !ok {
		return p.acted(ctx, key, thread.Act{Note: "the description has no place for Pawl's part any more"})
	}
	if len(body) > maxDescription {
		return p.acted(ctx, key, thread.Act{Note: "the description is too long for Pawl's part"})
	}
	if pull.Title != had {
		title = text.Title{}
	}
	p.says(ctx, block)
	err = forge.Pulls{Client: p.Forge}.Edit(ctx, p.repo(), p.state.Pull, title, body)
	crash.Point("pull_described")
	return p.settled(ctx, key, done, err)
}

// retitled is the title that the last attempt's work has; empty where that says nothing new, or where Pawl does not know
// which it gave.
func (p *publisher) retitled(had string) text.Title {
	a := p.state.Attempts
	if had == "" || len(a) == 0 || a[len(a)-1].Receipt.Title == "" || !a[len(a)-1].Receipt.Pushed {
		return text.Title{}
	}
	return attempt.Subject(p.state, p.thread, a[len(a)-1].Receipt.Title, maxPullTitle)
}

// settled logs that something was done with the pull request, also where GitHub refuses it for good.
func (p *publisher) settled(ctx context.Context, key string, done thread.Act, err error) error {
	if p.refused(ctx, err) {
		p.log.Warn().Err(err).Str("act", key).Msg("GitHub refuses it; it is not tried again")
		done, err = thread.Act{Note: err.Error()}, nil
	}
	if err != nil {
		return err
	}
	return p.acted(ctx, key, done)
}

func (p *publisher) readyPull(ctx context.Context) error {
	node := p.state.Acts[thread.ActPull].Node
	if node == "" { // an earlier version opened it
		pull, err := p.Forge.Pull(ctx, p.repo(), p.state.Pull)
		if err != nil {
			return err
		}
		node = pull.Node
	}
	err := forge.Pulls{Client: p.Forge}.Ready(ctx, p.repo(), node)
	crash.Point("pull_ready")
	return p.settled(ctx, thread.PullReadyKey(p.state.Pull), thread.Act{}, err)
}

// askReview asks somebody for a review, once for a key.
func (p *publisher) askReview(ctx context.Context, key string, number int, login string) error {
	if p.state.Acts[key].Done {
		return nil
	}
	err := forge.Pulls{Client: p.Forge}.RequestReview(ctx, p.repo(), number, login)
	crash.Point("review_asked")
	return p.settled(ctx, key, thread.Act{}, err)
}

// bot reports whether nobody but bots asked under a login.
func (p *publisher) bot(login string) bool {
	return slices.ContainsFunc(p.state.Feedback, func(f thread.Request) bool { return f.By.Login == login && f.By.Bot() })
}
