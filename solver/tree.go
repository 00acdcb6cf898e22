package solver

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// maxDiff bounds the diff that a change is fingerprinted by, in bytes.
const maxDiff = 4 << 20

// commitTree looks at what the agent left in the files and commits it without
// the protected paths. Without a change there is no commit.
func (s *step) commitTree(ctx context.Context, a Started, b config.Backend, p *prepared, ws *git.Workspace, r *Ended) error {
	snap, err := ws.Snapshot(ctx)
	if errors.Is(err, git.ErrUnsafe) || errors.Is(err, git.ErrTooLarge) {
		return unusable(r, err)
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
	// What is verified is what is pushed, as far as the files tell.
	if _, err := ws.Restore(ctx, protected); err != nil {
		return unusable(r, err)
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
	return err
}

// unusable records that what the agent left cannot be used. That is its failure.
func unusable(r *Ended, err error) error {
	r.Ending, r.Detail = policy.Crashed, tail(oneLine(err.Error()), 500)
	r.Reasons = append(r.Reasons, err.Error())
	return nil
}

// author is the App's bot user, the way GitHub links a commit to it.
func (s *step) author() (name, email string) {
	if s.Forge == nil {
		return "pawl", "pawl@localhost"
	}
	if s.app.BotID == 0 {
		return s.app.BotLogin, s.app.BotLogin + "@users.noreply.github.com"
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

// pushRaces is how often an attempt merges what others pushed meanwhile before
// it gives up: somebody pushes every few seconds then.
const pushRaces = 3

// push moves the thread's branch forward. Where somebody else pushed meanwhile
// both are merged; where that conflicts, the work is kept on a branch of its
// own and the attempt is to be done again on top of theirs.
func (s *step) push(ctx context.Context, p *prepared, r *Ended) (err error) {
	if s.staged != nil {
		return s.staged.push(ctx, s, p, r)
	}
	ctx, end := s.span(ctx, "push")
	defer func() { end(err) }()
	if err := s.spare(ctx, p); err != nil {
		return err
	}
	old := p.tip
	for race := 0; ; race++ {
		if err := s.record(ctx, KindActStarted, Act{Key: pushKey(p.branch, r.Commit), SHA: r.Commit}); err != nil {
			return err
		}
		crash.Point("push_begun")
		err := s.authorised(ctx, p, func() error {
			if err := s.unasked(ctx); err != nil {
				return err
			}
			return p.cache.Push(ctx, p.remote, r.Commit, p.branch, old)
		})
		if err == nil {
			break
		}
		if !errors.Is(err, git.ErrRejected) || race == pushRaces {
			return err
		}
		if old, err = s.merge(ctx, p, r); err != nil {
			return err
		}
	}
	r.Pushed = true
	crash.Point("pushed")
	err = s.record(ctx, KindActDone, Act{Key: pushKey(p.branch, r.Commit), SHA: r.Commit})
	crash.Point("push_logged")
	return err
}

// unasked is an error once a person has asked to stop or the thread was closed: a
// push may come long after its agent ended, where the store or GitHub was away.
func (s *step) unasked(ctx context.Context) (why error) {
	err := s.lease.outlast(ctx, func(ctx context.Context) error {
		events, err := s.Store.Events(ctx, s.thread, s.state.Seq)
		_, _, why = s.tell(events, s.state.Seq)
		return err
	})
	return errors.Join(why, err)
}

// spare refuses the default branch. It is asked for right before the push: it may
// have moved since the payload that named it.
func (s *step) spare(ctx context.Context, p *prepared) error {
	def := ""
	err := s.authorised(ctx, p, func() (err error) {
		def, err = p.cache.DefaultBranch(ctx, p.remote)
		return err
	})
	if err != nil {
		return err
	}
	if p.branch == def || p.branch == p.base || p.branch == s.state.Snapshot.DefaultBranch {
		return fmt.Errorf("branch %s is the default branch, which is never pushed to: %w", p.branch, git.ErrInvalid)
	}
	return nil
}

// merge joins what somebody else pushed with what the attempt made, and returns
// the commit of theirs.
func (s *step) merge(ctx context.Context, p *prepared, r *Ended) (theirs string, err error) {
	if theirs, err = s.tip(ctx, p); err != nil {
		return "", err
	}
	if theirs == "" {
		return "", fmt.Errorf("branch %s was deleted during the attempt", p.branch)
	}
	tree, conflicts, err := p.cache.Merge(ctx, theirs, r.Commit)
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 {
		kept := s.keptBranch(r.N)
		if err := s.authorised(ctx, p, func() error { return p.cache.Push(ctx, p.remote, r.Commit, kept, "") }); err != nil {
			return "", err
		}
		return "", fmt.Errorf("somebody pushed to %s during the attempt and it conflicts (%s); the work is kept on %s", p.branch, conflicts[0], kept)
	}
	name, email := s.author()
	r.Commit, err = p.cache.Commit(ctx, git.CommitSpec{Tree: tree, Parents: []string{theirs, r.Commit}, Name: name, Email: email, When: s.Now(),
		Message: fmt.Sprintf("Merge what was pushed to %s during the attempt", p.branch)})
	if err != nil {
		return "", err
	}
	r.EndTree, r.Merged = tree, true
	r.Reasons = append(r.Reasons, "somebody pushed to "+p.branch+" during the attempt; both were merged")
	return theirs, nil
}

// tip fetches the branch that is worked on; empty when it does not exist.
func (s *step) tip(ctx context.Context, p *prepared) (string, error) {
	var tips map[string]string
	err := s.authorised(ctx, p, func() (err error) {
		tips, err = p.cache.Fetch(ctx, p.remote, p.branch)
		return err
	})
	return tips[p.branch], err
}
