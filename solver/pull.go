package solver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// refsSettle is how long after an attempt a refusal of its pull request (422) may be
// GitHub's own lag: what was pushed is not at once what its API sees.
const refsSettle = time.Minute

// openPull opens the draft pull request for what was pushed for an issue, once.
// It is a part of every step, so one that could not be opened is opened later.
func (s *step) openPull(ctx context.Context) error {
	n := s.state.Snapshot
	if s.Forge == nil || n.Pull || s.state.Pull != 0 || s.state.Head == "" || s.state.Closed != "" {
		return nil
	}
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	title := clip(oneLine(policy.Visible(n.Title)), 200)
	if title == "" {
		title = fmt.Sprintf("Work on #%d", s.thread.Number)
	}
	base := n.DefaultBranch
	if base == "" {
		info, err := s.Forge.RepoInfo(ctx, s.repo())
		if err != nil {
			return err
		}
		base = info.DefaultBranch
	}
	if err := s.record(ctx, KindActStarted, Act{Key: actPull}); err != nil {
		return err
	}
	crash.Point("pull_begun")
	// An open pull request of the branch is returned, so a repetition is safe.
	opened, err := s.Forge.CreatePull(ctx, s.repo(), forge.NewPull{Title: title, Body: checkrun.PullBody(v, ""), Head: s.branch(), Base: base, Draft: true})
	if a := s.state.Attempts; errors.Is(err, forge.ErrInvalid) && len(a) > 0 && s.Now().Sub(a[len(a)-1].EndedAt).Abs() < refsSettle {
		return fmt.Errorf("GitHub may not see the branch yet: %s", err) // without its kind: the step is tried again
	}
	if err != nil {
		return err
	}
	crash.Point("pull_opened")
	act := Act{Key: actPull, ID: int64(opened.Number), URL: opened.HTMLURL}
	if opened.DraftRefused {
		act.Note = "the repository's plan has no draft pull requests"
	}
	if err := s.append(ctx, Batch{Alias: opened.Number, Events: []NewEvent{{Kind: KindActDone, At: s.Now(), Data: act}}}); err != nil {
		return err
	}
	return s.load(ctx)
}

// pushed returns the commit that an attempt pushed before it was cut off; empty
// when it pushed none. A push that began may have been done, so the branch is
// looked at.
func (s *step) pushed(ctx context.Context, a Attempt) (string, error) {
	if s.staged != nil {
		return s.staged.pushed(ctx, s, a)
	}
	branch, begun := s.branch(), ActState{}
	for key, act := range s.state.Acts {
		if strings.HasPrefix(key, pushKey(branch, "")) && !act.At.Before(a.At) && act.At.After(begun.At) {
			begun = act
		}
	}
	if begun.SHA == "" || begun.Done {
		return begun.SHA, nil
	}
	p := &prepared{branch: branch}
	var err error
	if p.remote, err = s.remote(ctx); err != nil {
		return "", err
	}
	if p.cache, err = git.Open(ctx, s.cacheDir(s.thread)); err != nil {
		return "", err
	}
	tip, err := s.tip(ctx, p)
	if tip == "" || err != nil {
		return "", err
	}
	there, err := p.cache.IsAncestor(ctx, begun.SHA, tip)
	if !there || err != nil {
		return "", err
	}
	return begun.SHA, nil
}

// interrupt ends an attempt that was cut off with the process that ran it.
func (s *step) interrupt(ctx context.Context, a Attempt) error {
	why := "the node that ran it stopped"
	sha, err := s.pushed(ctx, a)
	if errors.Is(err, git.ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		// It is as if nothing was pushed: the next attempt starts from the branch.
		s.log.Warn().Err(err).Msg("whether the attempt pushed its work is not known")
	}
	s.log.Warn().Str("commit", sha).Msg("attempt interrupted: " + why)
	used, err := s.spentBefore(ctx, a.N)
	if err != nil {
		return err
	}
	r := Ended{N: a.N, Outcome: policy.Interrupted, Detail: why, Reasons: []string{why}, Commit: sha, Pushed: sha != "",
		Tokens: used.Tokens, CostUSD: used.CostUSD, Limit: used.Limit}
	now := s.Now()
	batch := Batch{Events: []NewEvent{{Kind: KindAttemptEnded, At: now, Data: r}}}
	if l := used.Limit; l != nil && !used.Told && (policy.Ending(l.Kind) == policy.UsageLimit || policy.Ending(l.Kind) == policy.Auth) {
		// What the provider said of the account counts whatever ended the attempt.
		batch.Account = a.Account
		batch.Breaker = func(b policy.Breaker) policy.Breaker { return b.After(policy.Ending(l.Kind), l.usable(), a.At, now) }
	}
	crash.Point("interrupting")
	if err := s.append(ctx, batch); err != nil {
		return err
	}
	if s.OnAttempt != nil {
		s.OnAttempt(a.Backend, "", policy.Interrupted)
	}
	return nil
}
