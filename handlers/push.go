package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/thread"
)

// Push logs a push for its branch's thread, for /pawl why. A push to another branch may move a pull request's base; a
// push to the default branch may revert Pawl's work. A changed repository configuration is checked.
type Push struct{ handler }

func push(p *payload) (all []Activity) {
	branch, isBranch := strings.CutPrefix(p.Ref, "refs/heads/")
	if !isBranch || p.Deleted {
		return nil
	}
	if p.changesConfig() {
		all = append(all, Activity{Repo: p.repo(), What: configured{commit: p.After}})
	}
	moved := thread.Change{What: "head_moved", By: p.Sender.Login, Detail: p.After}
	if n, own := issueOfBranch(branch); own {
		return append(all, Activity{Repo: p.repo(), Number: n, URL: p.Compare, What: Changed{Change: &moved}})
	}
	if branch == p.Repo.DefaultBranch {
		all = append(all, revertingPush(p)...)
	}
	moved.What = "base_moved"
	return append(all, Activity{Repo: p.repo(), What: baseMoved{base: branch, main: branch == p.Repo.DefaultBranch, change: moved}})
}

// decide wakes the threads of open pull requests whose base has moved, if they are Pawl's own or watched. It wakes a
// thread at most once per policy.update_every.
func (b baseMoved) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	every := h.Solver.Env.Current().Policy.UpdateEvery
	if every <= 0 {
		return "bases are not followed (policy.update_every)", nil
	}
	known, err := h.Store.ThreadsOf(ctx, it.Repo.Owner, it.Repo.Name)
	if err != nil || len(known) == 0 {
		return "Pawl does not work on " + it.Repo.FullName(), err
	}
	if !b.concerns(ctx, h, known) {
		return "Pawl follows no pull request into " + b.base, nil
	}
	pulls, err := h.Forge.PullRequests.Into(ctx, it.Repo, b.base)
	if isAny(err, forge.ErrNotFound, forge.ErrForbidden, forge.ErrUninstalled) {
		return "its pull requests cannot be read: " + err.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("open pull requests into %s: %w", b.base, err)
	}
	logged := 0
	for _, p := range pulls {
		t, follows, err := h.followed(ctx, it.Repo, p, known)
		if err != nil {
			return "", err
		}
		if !follows {
			continue
		}
		c, now := b.change, h.Now()
		c.Number, c.Delivery = p.Number, guid
		key := fmt.Sprintf("base_moved:%d:%s", p.Number, now.UTC().Truncate(every).Format(time.RFC3339Nano))
		n, err := h.Store.Append(ctx, t, true, thread.NewEvent{Key: key, Kind: thread.KindThread, At: now, Data: c})
		if err != nil {
			return "", err
		}
		logged += n
	}
	return fmt.Sprintf("base_moved: logged for %d threads", logged), nil
}

// concerns reports whether a thread may have the branch as its base, to spare GitHub a request after most pushes. The
// base of Pawl's own pull request is not in its thread's log: a user may have changed it.
func (b baseMoved) concerns(ctx context.Context, h *Handlers, known []thread.ID) bool {
	return b.main || slices.ContainsFunc(known, func(t thread.ID) bool {
		_, state, err := thread.Load(ctx, h.Store, t)
		return err != nil || state.Pull != 0 || state.Snapshot.BaseRef == b.base
	})
}

// followed returns the thread of a pull request whose base Pawl follows: its own, or a watched one.
func (h *Handlers) followed(ctx context.Context, repo forge.Repo, p forge.Pull, known []thread.ID) (t thread.ID, is bool, err error) {
	t, err = h.Store.Resolve(ctx, thread.ID{Owner: repo.Owner, Name: repo.Name, Number: p.Number})
	if err != nil {
		return t, false, err
	}
	if _, own := issueOfBranch(p.Head.Ref); own && t.Number != p.Number { // it resolves to its issue's thread
		return t, true, nil
	}
	if !slices.Contains(known, t) {
		return t, false, nil
	}
	_, state, err := thread.Load(ctx, h.Store, t)
	return t, err == nil && state.Watching(), nil
}
