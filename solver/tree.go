package solver

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// maxDiff bounds the diff that a change is fingerprinted by, in bytes.
const maxDiff = 4 << 20

// takeTree looks at what the agent left in the files, commits it without the
// protected paths, pushes it and opens the pull request.
func (s *step) takeTree(ctx context.Context, a Started, b config.Backend, p *prepared, ws *git.Workspace, r *Ended) error {
	snap, err := ws.Snapshot(ctx)
	if errors.Is(err, git.ErrUnsafe) || errors.Is(err, git.ErrTooLarge) {
		// What the agent left cannot be committed. That is its failure.
		r.Ending, r.Detail = policy.Crashed, err.Error()
		r.Reasons = append(r.Reasons, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	for _, l := range snap.Left {
		r.LeftOut = append(r.LeftOut, l.Path+" ("+l.Reason+")")
	}
	tree, protected, err := ws.Without(ctx, snap.Tree, ws.StartTree, func(path string) bool {
		_, ok := p.effective.Protects(path)
		return ok
	})
	if err != nil {
		return err
	}
	for _, path := range protected {
		r.LeftOut = append(r.LeftOut, path+" (protected)")
	}
	r.EndTree = tree
	if !policy.Progress(r.StartTree, r.EndTree) {
		return nil
	}
	diff, _, err := ws.Diff(ctx, r.StartTree, r.EndTree, maxDiff)
	if err != nil {
		return err
	}
	r.Change = policy.Fingerprint(diff)
	name, email := s.author()
	r.Commit, err = ws.Commit(ctx, git.CommitSpec{
		Tree: tree, Parents: []string{p.start}, Name: name, Email: email, When: s.Now(), Message: s.message(a, b),
	})
	if err != nil {
		return err
	}
	return s.push(ctx, p, r)
}

// author is the App's bot user, the way GitHub links a commit to it.
func (s *step) author() (name, email string) {
	if s.Forge == nil {
		return "pawl", "pawl@localhost"
	}
	return s.app.BotLogin, fmt.Sprintf("%d+%s@users.noreply.github.com", s.app.BotID, s.app.BotLogin)
}

func (s *step) message(a Started, b config.Backend) string {
	title := oneLine(policy.Visible(s.state.Snapshot.Title))
	if title == "" {
		title = "Work on " + s.thread.String()
	}
	title = clip(title, 60)
	if s.Forge == nil {
		return fmt.Sprintf("%s\n\nAttempt %d by backend %s.\n", title, a.N, b.Name)
	}
	return fmt.Sprintf("%s (#%d)\n\nAttempt %d by backend %s.\n", title, s.thread.Number, a.N, b.Name)
}

// push moves the thread's branch forward. Where somebody else pushed meanwhile
// both are merged; where that conflicts, the work is kept on a branch of its
// own and the attempt says so.
func (s *step) push(ctx context.Context, p *prepared, r *Ended) error {
	if p.branch == p.base || p.branch == s.state.Snapshot.DefaultBranch {
		return fmt.Errorf("branch %s is the default branch, which is never pushed to", p.branch)
	}
	key := "push:" + p.branch + ":" + r.Commit
	if err := s.record(ctx, KindActStarted, Act{Key: key, SHA: r.Commit}); err != nil {
		return err
	}
	err := s.authorised(ctx, p, func() error { return p.cache.Push(ctx, p.remote, r.Commit, p.branch, p.tip) })
	if errors.Is(err, git.ErrRejected) {
		err = s.mergePush(ctx, p, r)
	}
	switch {
	case errors.Is(err, git.ErrProtected):
		r.Ending, r.Detail = policy.Misconfigured, err.Error()
		r.Reasons = append(r.Reasons, "GitHub refused the push: "+err.Error())
		return nil
	case err != nil:
		return err
	}
	r.Pushed = true
	if err := s.record(ctx, KindActDone, Act{Key: key, SHA: r.Commit}); err != nil {
		return err
	}
	return s.openPull(ctx, p, r)
}

// mergePush merges what somebody else pushed with what the attempt made, once.
func (s *step) mergePush(ctx context.Context, p *prepared, r *Ended) error {
	var tips map[string]string
	err := s.authorised(ctx, p, func() (err error) {
		tips, err = p.cache.Fetch(ctx, p.remote, p.branch)
		return err
	})
	if err != nil {
		return err
	}
	theirs := tips[p.branch]
	if theirs == "" {
		return fmt.Errorf("branch %s was deleted during the attempt", p.branch)
	}
	tree, conflicts, err := p.cache.Merge(ctx, theirs, r.Commit)
	if err != nil {
		return err
	}
	name, email := s.author()
	if len(conflicts) == 0 {
		merged, err := p.cache.Commit(ctx, git.CommitSpec{Tree: tree, Parents: []string{theirs, r.Commit}, Name: name, Email: email, When: s.Now(),
			Message: fmt.Sprintf("Merge what was pushed to %s during the attempt", p.branch)})
		if err != nil {
			return err
		}
		r.Commit, r.EndTree = merged, tree
		r.Reasons = append(r.Reasons, "somebody pushed to "+p.branch+" during the attempt; both were merged")
		return s.authorised(ctx, p, func() error { return p.cache.Push(ctx, p.remote, merged, p.branch, theirs) })
	}
	kept := fmt.Sprintf("pawl/kept-%d-%d", s.thread.Number, r.N)
	r.Reasons = append(r.Reasons, fmt.Sprintf("somebody pushed to %s during the attempt and it conflicts (%s); the work is kept on %s", p.branch, conflicts[0], kept))
	p.branch = kept
	return s.authorised(ctx, p, func() error { return p.cache.Push(ctx, p.remote, r.Commit, kept, "") })
}

// openPull opens the draft pull request for an issue, once.
func (s *step) openPull(ctx context.Context, p *prepared, r *Ended) error {
	if s.Forge == nil || s.state.Snapshot.Pull || s.state.Pull != 0 || p.branch != s.branch() {
		return nil
	}
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	title := clip(oneLine(policy.Visible(s.state.Snapshot.Title)), 200)
	if title == "" {
		title = fmt.Sprintf("Work on #%d", s.thread.Number)
	}
	if err := s.record(ctx, KindActStarted, Act{Key: actPull}); err != nil {
		return err
	}
	// An open pull request of the branch is returned, so a repetition is safe.
	opened, err := s.Forge.CreatePull(ctx, s.repo(), forge.NewPull{Title: title, Body: checkrun.PullBody(v, ""), Head: p.branch, Base: p.base, Draft: true})
	if err != nil {
		return err
	}
	act := Act{Key: actPull, ID: int64(opened.Number), URL: opened.HTMLURL}
	if opened.DraftRefused {
		act.Note = "the repository's plan has no draft pull requests"
		r.Reasons = append(r.Reasons, "the pull request is no draft: "+act.Note)
	}
	s.state.Acts[actPull] = ActState{Act: act, Done: true, At: s.Now()}
	s.state.Pull = opened.Number
	return s.append(ctx, Batch{Alias: opened.Number, Events: []NewEvent{{Kind: KindActDone, At: s.Now(), Data: act}}})
}
